"""What rules say about arguments, and that doubt tightens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.client.config.parser import ConfigError
from interlock.host.gate.conditions import Condition, conditions_of
from support.properties import many


def one(name: str, told: object) -> Condition:
    [condition] = conditions_of({name: told}, "rules[0]")
    return condition


def ways(condition: Condition, arguments: object) -> tuple[bool, bool]:
    return condition.surely(arguments), condition.perhaps(arguments)


YES, NO, DOUBT = (True, True), (False, False), (False, True)


@pytest.mark.parametrize(
    ("told", "value", "outcome"),
    [
        ("main", "main", YES),
        ("main", "Main", NO),
        (1, True, NO),
        (1, 1.0, YES),
        (True, 1, NO),
        (["a", "b"], "b", YES),
        (["a", "b"], "c", NO),
        ({"equals": {"x": [1]}}, {"x": [1]}, YES),
        ({"like": "read_*"}, "read_file", YES),
        ({"like": ["x*", "y*"]}, "yes", YES),
        ({"like": "read_*"}, "write", NO),
        ({"like": "read_*"}, ["read_file"], DOUBT),
        ({"at_most": 10}, 10, YES),
        ({"at_most": 10}, 11, NO),
        ({"at_most": 10}, True, DOUBT),
        ({"at_most": 10}, "5", DOUBT),
        ({"at_least": 10}, 9.5, NO),
        ({"present": True}, None, YES),
        ({"present": False}, 0, NO),
    ],
)
def test_one_argument_and_one_condition(told, value, outcome):
    assert ways(one("a", told), {"a": value}) == outcome


@pytest.mark.parametrize(
    ("path", "outcome"),
    [
        ("/srv/me/notes", YES),
        ("/srv/me/notes/a/b.txt", YES),
        ("/srv/me/./notes//a", YES),
        ("file:///srv/me/notes/a%20b", YES),
        ("file://localhost/srv/me/notes/a", YES),
        ("/srv/me/notesshop", NO),
        ("/home/me", NO),
        ("/etc/passwd", NO),
        ("/srv/me/notes/../../../etc/passwd", DOUBT),
        ("/srv/me/notes/..\\..\\x", DOUBT),
        ("file:///srv/me/notes/%2e%2e/x", DOUBT),
        ("file://elsewhere/srv/me/notes/x", DOUBT),
        ("file://[/srv/me/notes", DOUBT),
        ("//srv/me/notes", DOUBT),
        ("notes/a", DOUBT),
        ("~/notes", DOUBT),
        ("/srv/me/notes/${env:X}", DOUBT),
        ("/srv/me/notes/a\0b", DOUBT),
        ("", DOUBT),
        (["/srv/me/notes"], DOUBT),
    ],
)
def test_inside_of_a_folder(path, outcome):
    assert ways(one("path", {"within": "/srv/me/notes"}), {"path": path}) == outcome


@pytest.mark.parametrize(
    ("url", "outcome"),
    [
        ("https://example.com/a", YES),
        ("http://EXAMPLE.com:8080", YES),
        ("https://example.com./", YES),
        ("https://api.example.com", NO),
        ("https://example.com.evil.test/", NO),
        ("https://example.com@evil.test/", DOUBT),
        ("https://evil.test\\@example.com/", DOUBT),
        ("https://exämple.com/", DOUBT),
        ("ftp://example.com/", DOUBT),
        ("https://[::1", DOUBT),
        ("https://example.com/${env:TOKEN}/mcp", YES),
        ("https://${env:HOST}/", DOUBT),
        ("https://${file:/host}/", DOUBT),
        ("example.com", DOUBT),
    ],
)
def test_at_a_host(url, outcome):
    assert ways(one("url", {"host": "example.com"}), {"url": url}) == outcome


def test_hosts_below_a_name_are_not_the_name_itself():
    below = one("url", {"host": "*.example.com"})
    assert ways(below, {"url": "https://a.b.example.com/"}) == YES
    assert ways(below, {"url": "https://example.com/"}) == NO
    assert ways(below, {"url": "https://evilexample.com/"}) == NO
    assert ways(below, {"url": "https://${X}.example.com/"}) == DOUBT


def test_an_argument_that_is_not_there_passes_nothing():
    assert ways(one("a", {"like": "*"}), {"b": "x"}) == NO
    assert ways(one("a", {"present": False}), {"b": "x"}) == YES
    assert ways(one("a", {"present": True}), {}) == NO


def test_every_member_of_a_list_must_pass_to_be_sure_and_one_is_enough_to_doubt():
    each = one("/paths/*", {"within": "/notes"})
    assert ways(each, {"paths": ["/notes/a", "/notes/b"]}) == YES
    assert ways(each, {"paths": ["/notes/a", "/etc/b"]}) == DOUBT
    assert ways(each, {"paths": ["/etc/b"]}) == NO
    assert ways(each, {"paths": []}) == NO
    assert ways(each, {"paths": "/notes/a"}) == DOUBT
    assert ways(each, {"paths": ["/notes/a"] * 10_001}) == DOUBT


def test_pointers_lead_into_objects_and_lists():
    assert ways(one("/options/force", True), {"options": {"force": True}}) == YES
    assert ways(one("/list/1", "b"), {"list": ["a", "b"]}) == YES
    assert ways(one("/list/5", "b"), {"list": ["a", "b"]}) == NO
    assert ways(one("/list/name", "b"), {"list": ["a", "b"]}) == DOUBT
    assert ways(one("/a~1b/c~0d", 1), {"a/b": {"c~d": 1}}) == YES
    assert ways(one("a/b", 1), {"a/b": 1}) == YES
    assert ways(one("/*", "x"), {"a": "x", "b": "x"}) == YES
    assert ways(one("/a/b", {"present": False}), {"a": "text"}) == DOUBT


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20) | st.sampled_from(["/notes", "/notes/../x", "a"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "*"]), inner, max_size=3),
    max_leaves=10,
)
ANY_CONDITION = st.builds(
    one,
    st.sampled_from(["a", "/a/*", "/a/b", "/*/0"]),
    st.sampled_from(
        [{"like": "*a*"}, {"within": "/notes"}, {"host": "a.b"}, {"at_most": 3}, {"present": True}, "a", 1],
    ),
)


@given(ANY_CONDITION, ANY)
@many(200)
def test_what_is_sure_is_possible_and_nothing_raises(condition, arguments):
    sure, possible = ways(condition, arguments)
    assert possible or not sure


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({}, "says nothing"),
        ({"regex": ".*"}, "no such test 'regex'; there are: equals, like"),
        ({"like": 5}, "like must be a pattern"),
        ({"like": []}, "like has no alternatives"),
        ({"within": "relative"}, "within must be an absolute path"),
        ({"within": "/a/../b"}, "within must be an absolute path"),
        ({"host": "https://example.com"}, "host must be the name of a host"),
        ({"host": "*"}, "host must be the name of a host"),
        ({"host": "a.*.b"}, "host must be the name of a host"),
        ({"at_most": "5"}, "at_most must be a number"),
        ({"at_least": True}, "at_least must be a number"),
        ({"present": 1}, "present must be true or false"),
    ],
)
def test_a_condition_that_means_nothing_is_refused_by_its_place(told, message):
    with pytest.raises(ConfigError, match=r"rules\[0\], arguments.path: ") as caught:
        conditions_of({"path": told}, "rules[0]")
    assert message in str(caught.value)
