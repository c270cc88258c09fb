"""server/resources/uri_matcher.py: a path is cut at its literals from both ends, once."""

import pytest

from interlock.server.resources.uri_matcher import Shape, Slot
from interlock.wire.errors import LocalError


def slot(name="x", *, wide=False, many="", banned="", unchecked=False):
    return Slot(name=name, wide=wide, many=many, banned=banned, unchecked=unchecked)


def shape(*steps, end=""):
    return Shape("t", [(literal, held) for literal, held in steps], end)


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("a/1-2.", {"x": "1", "y": "2"}),
        ("a/1-2-3.", {"x": "1", "y": "2-3"}),
        ("a/1.", None),
        ("a/-2.", None),
        ("a/1-.", None),
        ("b/1-2.", None),
        ("a/1-2", None),
    ],
)
def test_the_first_takes_as_little_as_it_can(path, values):
    assert shape(("a/", slot("x")), ("-", slot("y")), end=".").match(path) == values


def test_what_is_wide_takes_what_the_others_leave():
    found = shape(("a/", slot("x")), ("/", slot("p", wide=True)), ("/", slot("y")))
    assert found.match("a/1/2/3/4") == {"x": "1", "p": "2/3", "y": "4"}
    assert found.match("a/1/2") is None
    as_list = shape(("a/", slot("p", wide=True, many="/")))
    assert as_list.match("a/1/2") == {"p": ["1", "2"]}


def test_a_shape_may_be_a_literal_alone():
    assert shape(end="a/b").match("a/b") == {}
    assert shape(end="a/b").match("a/c") is None


def test_a_banned_mark_ends_a_value():
    assert slot(banned=";").read("a;b") is None
    assert slot(banned=",", many=",").read("a,b") == ["a", "b"]


def test_what_is_unchecked_is_only_decoded():
    assert slot(unchecked=True, wide=True).read("/a/../%2e") == "/a/../."
    assert slot(unchecked=True, many=",").read("a,..") == ["a", ".."]
    assert slot(unchecked=True).read("%FF") is None


@pytest.mark.parametrize(
    ("steps", "end"),
    [
        ([("a", slot("x")), ("", slot("y"))], ""),
        ([("a", slot("x", wide=True)), ("/", slot("y", wide=True))], ""),
        ([("a", slot("x", many=","))], ",b"),
        ([("a", slot("x", many=".")), (".", slot("y"))], ""),
    ],
)
def test_what_cannot_be_told_apart_is_refused(steps, end):
    with pytest.raises(LocalError, match="'t'"):
        Shape("t", steps, end)
