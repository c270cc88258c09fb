"""cli/errors.py: what is told when a command cannot go on."""

import pytest

from interlock.cli import errors
from interlock.cli.errors import CODES, Failure


def test_every_code_has_a_meaning_and_none_has_two():
    codes = [getattr(errors, name) for name in errors.__all__ if name.isupper() and name != "CODES"]
    assert sorted(codes) == sorted(CODES) and len(set(CODES.values())) == len(CODES)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({}, "no"),
        ({"cause": "dark"}, "no\n  cause: dark"),
        ({"cause": "dark", "hint": "light"}, "no\n  cause: dark\n  hint: light"),
    ],
)
def test_a_failure_is_one_sentence_its_cause_and_a_hint(more, told):
    assert Failure("no", **more).told() == told
    assert Failure("no").code == errors.FAILED
