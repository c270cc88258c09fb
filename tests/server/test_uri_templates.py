"""server/uri_templates.py: from a URI back to the values that made it, strictly and without going back."""

import sys
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.server.uri_templates import UriTemplate, is_uri
from interlock.wire.errors import LocalError
from interlock.wire.limits import LONGEST_URI
from support.properties import many


def match(template, uri):
    return UriTemplate(template).match(uri)


# --- one segment ---


@pytest.mark.parametrize(
    ("template", "uri", "values"),
    [
        ("notes://{id}", "notes://7", {"id": "7"}),
        ("test://template/{id}/data", "test://template/123/data", {"id": "123"}),
        ("a:{x}-{y}.txt", "a:1-2-3.txt", {"x": "1", "y": "2-3"}),  # the first variable takes as little as it can
        ("a:{x}", "a:b%20c%C3%A4", {"x": "b cä"}),
        ("a:{x}", "a:b+c", {"x": "b+c"}),  # a plus is a plus
        ("a:{x}", "a:%252e", {"x": "%2e"}),  # decoded once
        ("a:{x}", "a:b@c:d,e;f=g", {"x": "b@c:d,e;f=g"}),
        ("a:?x={x}&y={y}", "a:?x=1&y=2", {"x": "1", "y": "2"}),
        ("a:{x}2{y}", "a:%2b2c", {"x": "+", "y": "c"}),  # the 2 of %2b is no literal
        ("a:{x}/%20/{y}", "a:1/%20/2", {"x": "1", "y": "2"}),
    ],
)
def test_values_are_read_back(template, uri, values):
    assert match(template, uri) == values


@pytest.mark.parametrize(
    "uri",
    [
        "notes://",
        "notes://a/b",
        "notes://a?b",
        "notes://a#b",
        "notes://a&b",
        "Notes://a",
        "notes:/a",
        "x",
        "notes://ä",
        "notes://%",
        "notes://%4",
        "notes://%GG",
        "notes://%FF",
        "notes://{id}",
    ],
)
@pytest.mark.parametrize("more", ["", " ", "\n"])
def test_another_shape_is_no_match(uri, more):
    assert match("notes://{id}", uri + more) is None
    assert match("notes://{id}", "notes://a" + (more or "/")) is None


@pytest.mark.parametrize(
    "value", [".", "..", "%2e%2e", ".%2E", "%2F", "a%2fb", "..%2Fetc", "%5C", "..%5cx", "%00", "a%00", "%0a", "%7F"]
)
def test_a_value_that_climbs_or_hides_is_no_match(value):
    assert match("file:///{name}", f"file:///{value}") is None
    assert match("file:///{+path}", f"file:///a/{value}") is None
    assert match("file:///{+path}", f"file:///{value}/a") is None


def test_dots_inside_of_a_name_are_fine():
    assert match("file:///{name}", "file:///...") == {"name": "..."}
    assert match("file:///{name}", "file:///a..b") == {"name": "a..b"}


# --- the rest of a path ---


@pytest.mark.parametrize(
    ("template", "uri", "values"),
    [
        ("file:///{+path}", "file:///a/b/c.txt", {"path": "a/b/c.txt"}),
        ("file:///{+path}", "file:///a%20b/c", {"path": "a b/c"}),
        ("r:{owner}/{+path}/{name}.md", "r:me/a/b/c.md", {"owner": "me", "path": "a/b", "name": "c"}),
        ("r:{+path}/x/{name}", "r:a/x/b/x/c", {"path": "a/x/b", "name": "c"}),
        ("r:{+path}2{name}", "r:a2b%2bc", {"path": "a", "name": "b+c"}),
    ],
)
def test_a_path_keeps_its_slashes(template, uri, values):
    assert match(template, uri) == values


@pytest.mark.parametrize("path", ["", "/etc/passwd", "a//b", "a/", "/", "a/../b", "a/./b", "a?b", "a/b#c", "a&b"])
def test_a_path_is_relative_and_whole(path):
    assert match("file:///{+path}", f"file:///{path}") is None


# --- a query ---


@pytest.mark.parametrize(
    ("uri", "values"),
    [
        ("s:find", {}),
        ("s:find?a=1", {"a": "1"}),
        ("s:find?b=2&a=1", {"a": "1", "b": "2"}),
        ("s:find?a=", {"a": ""}),
        ("s:find?a=x%2Fy/z?%26", {"a": "x/y/z?&"}),
        ("s:find?a=b=c", {"a": "b=c"}),
        ("s:find?", None),
        ("s:find?a", None),
        ("s:find?c=1", None),
        ("s:find?a=1&a=2", None),
        ("s:find?a=1&b=2&", None),
        ("s:find?a=1&b=2&c=3", None),
        ("s:find?a=%00", None),
        ("s:find?a=%C3", None),
        ("s:find#a=1", None),
        ("s:found", None),
    ],
)
def test_a_query_holds_what_was_declared_once_each(uri, values):
    assert match("s:find{?a,b}", uri) == values


def test_a_query_joins_the_variables_before_it():
    assert match("s:{kind}{?a}", "s:x?a=1") == {"kind": "x", "a": "1"}
    assert match("s:{kind}{?a}", "s:?a=1") is None


# --- templates ---


def test_a_template_knows_its_variables():
    template = UriTemplate("s:{a}/{+b}{?c,d}")
    assert (template.text, template.names, template.query) == ("s:{a}/{+b}{?c,d}", ("a", "b"), ("c", "d"))


@pytest.mark.parametrize(
    "text",
    [
        "a:b",
        "{a}",
        "{a}:b",
        "x{a}:b",
        "a:{",
        "a:}",
        "a:{}",
        "a:{b",
        "a:b}",
        "a:{{b}}",
        "a:{b-c}",
        "a:{b*}",
        "a:{b:3}",
        "a:{/b}",
        "a:{#b}",
        "a:{&b}",
        "a:{.b}",
        "a:{;b}",
        "a:{b,c}",
        "a:{1}",
        "a:{b}{c}",
        "a:{+b}{c}",
        "a:{b}/{b}",
        "a:{b}{?b}",
        "a:{+b}/{+c}",
        "a:{?b}c",
        "a:{?b}/{c}",
        "a:{?b}{?c}",
        "a:x?y{?b}",
        "a:{?}",
        "a:{+}",
        "a:%{b}",
        "a:%2{b}F",
        "a:{b}%",
        "a:ä{b}",
        'a:"{b}',
        "a:{b}\n",
        "a:\t{b}",
    ],
)
def test_what_cannot_be_read_back_is_refused(text):
    with pytest.raises(LocalError):
        UriTemplate(text)


@pytest.mark.parametrize(
    ("text", "good"), [("a:", True), ("a:%41", True), ("a:%4", False), ("a", False), ("a:é", False)]
)
def test_a_uri_is_told_from_other_text(text, good):
    assert is_uri(text) is good


# --- properties ---

SEGMENTS = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc"], exclude_characters="/\\"), min_size=1
).filter(lambda text: text not in (".", ".."))


def encoded(text, safe=""):
    return quote(text, safe=safe)


@many(300)
@given(SEGMENTS, SEGMENTS)
def test_what_was_expanded_comes_back(first, second):
    uri = f"n://{encoded(first)}/x/{encoded(second)}"
    assert match("n://{first}/x/{second}", uri) == {"first": first, "second": second}


@many(300)
@given(SEGMENTS, st.lists(SEGMENTS, min_size=1, max_size=5), SEGMENTS)
def test_a_path_comes_back(first, path, last):
    uri = f"n:{encoded(first)}/{'/'.join(encoded(part) for part in path)}/{encoded(last)}"
    assert match("n:{a}/{+p}/{z}", uri) == {"a": first, "p": "/".join(path), "z": last}


@many(200)
@given(st.dictionaries(st.sampled_from("abc"), st.text(st.characters(codec="utf-8", exclude_characters="\0"))))
def test_a_query_comes_back(values):
    query = "&".join(f"{name}={encoded(value)}" for name, value in values.items())
    assert match("n:x{?a,b,c}", "n:x?" + query if query else "n:x") == values


@many(500)
@given(st.text("ab/%2Ff.-?&=\\", max_size=30))
def test_no_match_ever_climbs(text):
    for template in ("f:{v}", "f:{v}-{w}", "f:{+v}", "f:{v}/{+w}", "f:{+v}/{w}{?q}"):
        values = match(template, "f:" + text)
        for name in ("v", "w"):
            value = (values or {}).get(name, "a")
            parts = value.split("/")
            assert "" not in parts and ".." not in parts and "." not in parts and "\\" not in value
            assert len(parts) == 1 or f"+{name}" in template


def steps_of(template, uri):
    """How many lines of the file run for one match: a count, not a time."""
    steps = 0

    def trace(frame, event, argument):
        nonlocal steps
        if frame.f_code.co_filename.endswith("uri_templates.py"):
            steps += event == "line"
            return trace
        return None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        assert template.match(uri) is None
    finally:
        sys.settrace(before)
    return steps


def test_matching_never_goes_back():
    template = UriTemplate("a:{a}-{b}-{c}-{d}-{e}-{f}!")
    short, long = (steps_of(template, "a:" + "-x" * size + "?!") for size in (100, 3000))
    assert long == short
    evil = UriTemplate("a:{a}2{b}")
    few, many_ = (steps_of(evil, "a:" + "%22" * size + "") for size in (100, 1000))
    assert many_ < 12 * few


def test_a_uri_has_a_longest():
    assert match("a:{x}", "a:" + "b" * (LONGEST_URI - 2)) is not None
    assert match("a:{x}", "a:" + "b" * (LONGEST_URI - 1)) is None
