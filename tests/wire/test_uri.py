"""wire/uri.py: what is a URI by RFC 3986, and what only has its characters."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.wire.uri import has_uri_characters, is_uri
from support.growth import assert_linear
from support.properties import many

GOOD = [
    "a:",
    "A1+.-:x",
    "note://one",
    "file:///a%20b",
    "urn:isbn:1",
    "x+y-z.1:a?b=c#d",
    "https://[::1]/",
    "https://[2001:db8::7]:8080/x",
    "a://[v1.x:y]/",
    "http://user:word@host:80/p;q?r=/?#s/?",
    "a://",
    "a:///",
    "a://h?x",
    "a://h#x",
    "a://h:/",
    "data:,a'b",
    "a:/b//c",
    "mailto:a@b.example",
]
BAD = ["", "a", "/a", ":a", "1a:b", "a b:c", "a:b c", "a:é", "a:<b>", "a:{b}", "a:b\n", "a:\\", "a:^", "a:`", "a:|"]
BAD += ["a:%", "a:%4", "a:%4g", 'a:"', "\na:b", " a:b"]
ONLY_CHARACTERS = [
    "a:b[",
    "a:b]",
    "a://h:8x/",
    "a://[::1]x/",
    "a://[::1",
    "a://[",
    "a:b#c#d",
    "a:?[1]",
    "note://item:a",
]


@pytest.mark.parametrize("text", GOOD)
def test_a_uri(text):
    assert is_uri(text) and has_uri_characters(text)


@pytest.mark.parametrize("text", BAD)
def test_no_uri_by_its_characters(text):
    assert not is_uri(text) and not has_uri_characters(text)


@pytest.mark.parametrize("text", ONLY_CHARACTERS)
def test_no_uri_by_its_order(text):
    assert not is_uri(text) and has_uri_characters(text)


# RFC 3986, appendix B: how a URI falls into parts; each part is judged here by a rule of its own.
PARTS = re.compile(r"([^:/?#]+):(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.S)
PCHAR = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})*")


def is_uri_by_parts(text):
    found = PARTS.fullmatch(text)
    if found is None or not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*", found[1]):
        return False
    user, _, host = (found[2] or "").rpartition("@")
    name, _, port = host.partition(":")
    rest = [found[3].replace("/", "-"), *(re.sub("[/?]", "-", found[part] or "") for part in (4, 5)), user, name]
    return all(PCHAR.fullmatch(part) for part in rest) and "@" not in user and port.isdigit() | (port == "")


@many(500)
@given(st.text("ab1:/?#@%2f.-é{ ", max_size=14).map("a:{}".format) | st.text("a:/@1?#", max_size=10))
def test_the_parts_decide(text):
    assert is_uri(text) == is_uri_by_parts(text)


@pytest.mark.parametrize(
    ("before", "piece", "after"),
    [
        ("a:", "b", "\n"),
        ("a://", "b:", "^"),
        ("a://", "%41", "%"),
        ("a://", "b@", "^"),
        ("a://[", "1", "^"),
        ("a://b/", "?", "\n"),
        ("a:?", "#", ""),
        ("a:", "%", ""),
        ("", "a", ""),
    ],
)
@pytest.mark.parametrize("check", [is_uri, has_uri_characters])
def test_a_long_text_that_fails_at_its_end_costs_its_length(check, before, piece, after):
    assert_linear(check, lambda size: before + piece * (size // len(piece)) + after, 4_000)
