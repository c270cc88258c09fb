"""cli/options.py: options, words and what follows the dashes."""

import pytest

from interlock.cli.errors import USAGE, Failure
from interlock.cli.options import Number, Words, read_words

KNOWN = {"json": "flag", "name": "text", "header": "texts", "count": Number(1, 9, whole=True), "for": Number(0.5, 2)}


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ([], Words([], {})),
        (["a", "--json", "b=-1"], Words(["a", "b=-1"], {"json": True})),
        (["--name", "x", "--header=a:b", "--header", "c"], Words([], {"name": "x", "header": ["a:b", "c"]})),
        (["--name", "--json"], Words([], {"name": "--json"})),
        (["--count", "9", "--for=0.5"], Words([], {"count": 9, "for": 0.5})),
        (["-"], Words(["-"], {})),
        (["a", "--", "b", "--json", "--"], Words(["a"], {}, ["b", "--json", "--"])),
    ],
)
def test_words_are_sorted(words, found):
    assert read_words(words, KNOWN) == found


def test_what_was_not_given_is_not_there():
    words = read_words([], KNOWN)
    assert (words.flag("json"), words.texts("header")) == (False, [])
    assert read_words(["--json"], KNOWN).flag("json")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--jsn"], "there is no option '--jsn'\n  hint: did you mean --json?"),
        (["-x"], "there is no option '-x'\n  hint: --help shows all options"),
        (["--json=1"], "there is no option '--json=1'"),
        (["--name"], "--name needs a value"),
        (["--name", "--", "x"], "--name needs a value"),
        (["--name", "a", "--name", "b"], "--name is given twice"),
        (["--count", "10"], "--count '10': this is a whole number from 1 to 9"),
        (["--count", "1.5"], "a whole number"),
        (["--count", "-1"], "a whole number"),
        (["--count", "٣"], "a whole number"),
        (["--count", "9" * 5000], "a whole number"),
        (["--for", "nan"], "a number from 0.5 to 2"),
        (["--for", "1e9"], "a number from 0.5 to 2"),
        (["a", "--"], "after -- comes the command"),
    ],
)
def test_mistakes_are_said_with_the_nearest_word(words, told):
    with pytest.raises(Failure) as caught:
        read_words(words, KNOWN)
    assert caught.value.code == USAGE and told in caught.value.told()
