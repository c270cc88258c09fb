"""server/resources/resource.py: a resource at a fixed URI, as text, bytes or JSON."""

import base64
import functools
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from interlock.server.content import File, Image
from interlock.server.context import Context
from interlock.server.execution.thread_pool import Threads
from interlock.server.resources.resource import RegisteredResource, contents_of
from interlock.wire.errors import LocalError
from interlock.wire.limits import LONGEST_URI
from interlock.wire.types.common import Annotations, Icon
from interlock.wire.types.content import ResourceContents
from support.doubles import Spoken
from support.properties import many

PNG = b"\x89PNG\r\n\x1a\n"


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


def test_what_a_docstring_says_to_programmers_is_left_out():
    def one(ctx: Context, number: int):
        """A note.

        Args:
            number: Which one.

        Raises:
            KeyError: There is none.
        """

    assert resource(functools.partial(one, number=1)).noun.description == "A note."


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
        (MappingProxyType({"a": 1}), "text", '{"a":1}', "application/json"),
        (Image(PNG), "blob", "iVBORw0KGgo=", "image/png"),
        (File(b"hi", name="a.txt"), "text", "hi", "text/plain"),
        (File(b"\x00\xff", name="a", uri="b://c"), "blob", "AP8=", "application/octet-stream"),
    ],
)
async def test_a_value_is_read_in_its_own_form(value, member, held, mime_type):
    contents = await read(value)
    assert getattr(contents, member) == held
    assert getattr(contents, "blob" if member == "text" else "text") is UNSET
    assert (contents.uri, contents.mime_type) == ("note://one", mime_type)


async def test_the_type_that_was_said_counts():
    for value in ("x", b"x", {"x": 1}, Image(PNG), File(b"x", name="x")):
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
        "a://h:port/",
        "a:b[1]",
        "a:b#c#d",
        "a:" + "b" * LONGEST_URI,
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


async def nothing(): ...


def test_everything_that_can_be_said():
    icon, told = Icon(src="https://example.com/i.png"), Annotations(audience=["user"], priority=0.5)
    noun = resource(nothing, size=7, icons=[icon], annotations=told).noun
    assert (noun.size, noun.icons, noun.annotations) == (7, [icon], told)


@pytest.mark.parametrize("mime_type", ["text", "text/", "/plain", "text/plain\n", "text plain", "", "te xt/plain"])
def test_what_is_no_mime_type_is_refused(mime_type):
    with pytest.raises(LocalError, match="MIME"):
        resource(nothing, mime_type=mime_type)


@pytest.mark.parametrize(
    "mime_type", ["text/plain", "text/plain; charset=utf-8", "inode/directory", "application/ld+json"]
)
def test_mime_types(mime_type):
    assert resource(nothing, mime_type=mime_type).noun.mime_type == mime_type


@pytest.mark.parametrize("size", [-1, 1.5, "7"])
def test_a_size_counts_bytes(size):
    with pytest.raises(LocalError, match="bytes"):
        resource(nothing, size=size)


@pytest.mark.parametrize("time", ["2025-01-12T15:00:58Z", "2025-01-12", "2025-01-12T15:00:58.123+02:00"])
def test_times_of_change(time):
    assert resource(nothing, annotations=Annotations(last_modified=time)).noun.annotations.last_modified == time


@pytest.mark.parametrize(
    "told",
    [
        Annotations(audience=["everybody"]),
        Annotations(audience="user"),
        Annotations(priority=1.5),
        Annotations(priority=-0.1),
        Annotations(priority=float("nan")),
        Annotations(priority="high"),
        Annotations(last_modified="yesterday"),
        Annotations(last_modified="12/01/2025"),
        Annotations(last_modified=7),
        7,
    ],
)
def test_annotations_that_no_client_could_read_are_refused(told):
    with pytest.raises(LocalError, match="annotations"):
        resource(nothing, annotations=told)


@pytest.mark.parametrize("facts", [{"complete": {"a": ["b"]}}, {"unchecked": ("a",)}])
def test_a_fixed_uri_has_no_variables(facts):
    with pytest.raises(LocalError, match="no variables"):
        resource(nothing, **facts)


@pytest.mark.parametrize(
    "made",
    [
        ResourceContents(uri="no uri", text=""),
        ResourceContents(uri="a:b", blob="not base64"),
        ResourceContents(uri="a:", blob="AA="),
    ],
)
async def test_contents_that_no_client_could_read_are_an_error_of_the_server(made):
    with pytest.raises(ValueError, match=r"is no URI|base64"):
        await read(made)
    with pytest.raises(ValueError):
        await read([made])


def test_what_the_docstring_says_to_programmers_is_not_told():
    def read():
        """The rules.

        Returns:
            A text.
        """

    assert resource(read).noun.description == "The rules."


def test_a_generator_is_no_resource():
    async def lines():
        yield "x"

    def more():
        yield "x"

    for function in (lines, more):
        with pytest.raises(LocalError, match="cannot be a generator"):
            resource(function)
