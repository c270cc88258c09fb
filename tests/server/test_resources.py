"""server/resources.py: a resource at a fixed URI, as text, bytes or JSON."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from interlock.server.context import Context
from interlock.server.resources import RegisteredResource, contents_of
from interlock.server.threads import Threads
from interlock.wire.errors import LocalError
from interlock.wire.types.content import ResourceContents
from support.doubles import Spoken
from support.properties import many


def resource(function, uri="note://one", **facts):
    return RegisteredResource(uri, function, threads=Threads(2), **facts)


async def read(value, **facts):
    async def function():
        return value

    [contents] = await resource(function, **facts).read(Spoken("resources/read", None))
    return contents


def test_a_resource_says_what_it_is():
    async def one(ctx: Context):
        """A note."""

    registered = resource(one, title="T", mime_type="text/plain", meta={"a": 1})
    noun = registered.noun
    assert (noun.uri, noun.name, noun.title, noun.description) == ("note://one", "one", "T", "A note.")
    assert (noun.mime_type, noun.meta) == ("text/plain", {"a": 1})
    assert registered.takes_context


def test_what_is_not_said_is_left_out():
    async def one(): ...

    noun = resource(one, name="N").noun
    assert (noun.name, noun.title, noun.description, noun.mime_type) == ("N", UNSET, UNSET, UNSET)


@pytest.mark.parametrize(
    ("value", "member", "held", "mime_type"),
    [
        ("text", "text", "text", "text/plain"),
        ("", "text", "", "text/plain"),
        (b"\x00\xff", "blob", "AP8=", "application/octet-stream"),
        (bytearray(b"hi"), "blob", "aGk=", "application/octet-stream"),
        ({"a": [1]}, "text", '{"a":[1]}', "application/json"),
        (None, "text", "null", "application/json"),
    ],
)
async def test_a_value_is_read_in_its_own_form(value, member, held, mime_type):
    contents = await read(value)
    assert getattr(contents, member) == held
    assert getattr(contents, "blob" if member == "text" else "text") is UNSET
    assert (contents.uri, contents.mime_type) == ("note://one", mime_type)


async def test_the_type_that_was_said_counts():
    for value in ("x", b"x", {"x": 1}):
        assert (await read(value, mime_type="x/y")).mime_type == "x/y"


@many(50)
@given(st.binary(max_size=100))
def test_any_bytes_come_back(data):
    [contents] = contents_of(data, "note://one", UNSET)
    assert base64.b64decode(contents.blob, validate=True) == data


@pytest.mark.parametrize(
    "uri", ["a:", "note://one", "file:///a%20b", "urn:isbn:1", "x+y-z.1:a?b=c#d", "https://[::1]/", "data:,a'b"]
)
def test_uris_are_accepted(uri):
    async def function(): ...

    assert resource(function, uri).noun.uri == uri


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "note",
        "/a",
        "1a:b",
        "a b:c",
        "a:b c",
        "a:é",
        "a:<b>",
        'a:"b"',
        "a:b\n",
        "a:{b}",
        "a:b\\c",
        "a:^",
        "a:%",
        "a:%4g",
    ],
)
def test_what_is_no_uri_is_refused(uri):
    async def function(): ...

    with pytest.raises(LocalError):
        resource(function, uri)


def test_a_fixed_uri_has_no_arguments():
    async def function(a: int): ...

    with pytest.raises(LocalError, match="no arguments"):
        resource(function)


async def test_contents_of_the_author_go_out_as_they_are():
    one, two = ResourceContents(uri="a:1", text="x", mime_type="x/y"), ResourceContents(uri="a:2", blob="AA==")
    assert contents_of(one, "a:", "text/plain") == [one]
    assert contents_of([one, two], "a:", UNSET) == [one, two]
    [mixed] = contents_of([one, "text"], "a:", UNSET)
    assert mixed.mime_type == "application/json"
    [empty] = contents_of([], "a:", UNSET)
    assert empty.text == "[]"
