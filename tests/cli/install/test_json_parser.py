"""cli/install/json_parser.py: every value is where it is said to be; what cannot be followed is refused."""

import json

import pytest
from hypothesis import given

from interlock.cli.install.json_parser import places, skip_on_line
from interlock.client.config.parser import ConfigError
from support.growth import assert_linear
from support.properties import JSON_OBJECTS, many


def meaning(text, node):
    """What the places say, put together again."""
    if node.kind == "object":
        return {member.name: meaning(text, member.value) for member in node.members}
    if node.kind == "array":
        return [meaning(text, item) for item in node.items]
    return json.loads(text[node.start : node.end])


@many(200)
@given(JSON_OBJECTS)
def test_the_places_are_those_of_the_values(members):
    for text in (json.dumps(members), json.dumps(members, ensure_ascii=False, indent="\t").replace("\n", "\r\n")):
        root = places(text, "x")
        assert (root.start, root.end) == (0, len(text))
        assert meaning(text, root) == members


def test_comments_and_last_commas_are_passed_over():
    text = '// one {\n{ /* " */ "a": /* } */ [1, 2, ], // "b": 2\r\n "c" : {"d": "//"}, }\n/* * ** */'
    root = places(text, "x")
    assert meaning(text, root) == {"a": [1, 2], "c": {"d": "//"}}
    a, c = root.members
    assert text[a.start :].startswith('"a"') and text[a.comma] == "," and text[c.comma] == ","
    assert c.value.members[0].comma is None


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "1", "{", "}", '{"a"}', '{"a":}', "{a: 1}", '{"a": 1 "b": 2}', '{"a": [1 2]}', "{,}", "[,]"),
        *('{"a": 1,, "b": 2}', '{"a": 1} x', '{"a": 1}{}', '{"a": "\n"}', "{} /*", '{"\\q": 1}', "{'a': 1}"),
        '{"a":' * 70 + "1" + "}" * 70,
    ],
)
def test_what_cannot_be_followed_is_refused_with_its_line(text):
    with pytest.raises(ConfigError, match="line 1 is no JSON"):
        places(text, "x")


def test_the_line_of_a_mistake_is_named():
    with pytest.raises(ConfigError, match="settings: line 3 is"):
        places('{\n"a": 1,\n"b" 2}', "settings")


@pytest.mark.parametrize(
    ("rest", "behind"),
    [
        ("", ""),
        ("  \n", "  \n"),
        (" // note  \n  x", "\n  x"),
        (" // note\r\n  x", "\r\n  x"),
        (" /* a */ /* b */ // c\n", "\n"),
        (" /* a\n b */ x", " /* a\n b */ x"),
        (" x // y", " x // y"),
    ],
)
def test_comments_on_the_line_belong_to_what_is_before_them(rest, behind):
    text = "1," + rest
    assert text[skip_on_line(text, 2) :] == behind


@pytest.mark.parametrize("piece", ["/*", "/* ", "/**", "*", "//", '\\"', "\\", " ", "/* */", "//\n", "//\r", "/", "a"])
@pytest.mark.parametrize("before", ['{"a', "{", '{"a": 1, /*', '{"a": 1, //'])
def test_a_text_made_to_be_slow_is_not(before, piece):
    def follow(text):
        skip_on_line(text, len(before))
        with pytest.raises(ConfigError):
            places(text, "x")

    assert_linear(follow, lambda size: before + piece * (size // len(piece)), 2_000)
