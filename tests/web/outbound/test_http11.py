"""web/outbound/http11.py: HTTP/1.1 without TLS, byte by byte; the sockets are those of test_socket_pool.py."""

import asyncio
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.web.outbound.http11 import Broken, Improper, Place, PlainConnection, PlainHeaders, place_of
from support.properties import many

PLACE = Place("127.0.0.1", 8000, "127.0.0.1:8000", "/mcp")
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
WHOLE = HEAD + b"Content-Length: 2\r\n\r\n{}"


class Wire(asyncio.Transport):
    """Keeps what is written, and notes what is done to it."""

    def __init__(self):
        super().__init__()
        self.written, self.done = b"", []

    def write(self, data):
        self.written += data

    def is_closing(self):
        return bool({"abort", "close"} & set(self.done))

    def abort(self):
        self.done.append("abort")

    def close(self):
        self.done.append("close")

    def pause_reading(self):
        self.done.append("pause")

    def resume_reading(self):
        self.done.append("resume")

    def get_extra_info(self, name, default=None):
        return ("127.0.0.1", 8000) if name == "peername" else default


def connection():
    found = PlainConnection()
    found.connection_made(Wire())
    return found


async def asked(found, verb="POST", body=b"{}", headers=None):
    """The task that asks, which has written all it has to say."""
    task = asyncio.ensure_future(found.ask(verb, PLACE, "http://127.0.0.1:8000/mcp", body, headers or {}))
    await asyncio.sleep(0)
    return task


async def answered(said, verb="POST"):
    """A connection that was asked and has said this, and what came of it."""
    found = connection()
    task = await asked(found, verb)
    for piece in said if isinstance(said, list) else [said]:
        found.data_received(piece)
    return found, await task


# --- what is written ---


@pytest.mark.parametrize(
    "url, authority, target",
    [
        ("http://127.0.0.1:8000/mcp", "127.0.0.1:8000", "/mcp"),
        ("http://localhost", "localhost", "/"),
        ("http://localhost:80?a=1", "localhost", "/?a=1"),
        ("http://[::1]:9/a%20b?q=%2F", "[::1]:9", "/a%20b?q=%2F"),
    ],
)
def test_a_url_says_what_is_asked_of_whom(url, authority, target):
    place = place_of(url)
    assert (place.authority, place.target) == (authority, target)


@pytest.mark.parametrize(
    "verb, body, length",
    [("POST", b"{}", b"Content-Length: 2\r\n"), ("DELETE", None, b"Content-Length: 0\r\n"), ("GET", None, b"")],
)
async def test_a_request_is_one_write(verb, body, length):
    found = connection()
    task = await asked(found, verb, body, {"Accept": "a"})
    head = f"{verb} /mcp HTTP/1.1\r\nHost: 127.0.0.1:8000\r\nAccept: a\r\n".encode()
    assert found.transport.written == head + length + b"\r\n" + (body or b"")
    found.data_received(WHOLE)
    assert (await task).status == 200


@pytest.mark.parametrize(
    "name, value", [("A", "b\r\nC: d"), ("A", "b\nC: d"), ("A\r\nB", "c"), ("A", "b\rc"), ("A", "\0")]
)
async def test_no_value_becomes_a_header_of_its_own(name, value):
    found = connection()
    task = await asked(found, headers={name: value})
    with pytest.raises(ValueError, match="line break"):
        await task
    assert found.transport.written == b""


async def test_a_large_body_is_written_as_fast_as_it_is_taken():
    found, body = connection(), b"x" * (1024 * 1024)
    found.pause_writing()
    task = await asked(found, body=body)
    assert len(found.transport.written) < len(body)
    found.resume_writing()
    await asyncio.sleep(0)
    assert found.transport.written.endswith(body)
    found.data_received(WHOLE)
    await task
    assert found.usable


async def test_who_answers_before_all_was_said_wants_no_more():
    found = connection()
    found.pause_writing()
    task = await asked(found, body=b"x" * (1024 * 1024))
    found.data_received(HEAD.replace(b"200 OK", b"413 No") + b"Content-Length: 0\r\n\r\n")
    assert (await task).status == 413
    assert len(found.transport.written) < 1024 * 1024
    assert found.transport.done == ["abort"] and not found.usable


# --- what comes ---


async def test_a_whole_response_leaves_the_connection_to_the_next():
    found, response = await answered(WHOLE)
    assert response.is_eof() and response.read_nowait() == b"{}"
    assert response.content_length == 2 and response.headers.get("Content-Type") == "application/json"
    assert response.connection is None and found.usable
    task = await asked(found)
    found.data_received(WHOLE)
    assert (await task).read_nowait() == b"{}"


@many(40)
@given(st.lists(st.integers(0, 400), max_size=8))
def test_it_does_not_matter_how_it_is_cut(cuts):
    said = HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n" + b"6\r\n world\r\n0\r\n\r\n"
    places = sorted({0, len(said), *(each % len(said) for each in cuts)})

    async def main():
        found, response = await answered([said[a:b] for a, b in pairwise(places)])
        assert b"".join([part async for part in response.iter_any()]) == b"hello world"
        assert found.usable

    asyncio.run(main())


async def test_interim_responses_are_passed_over():
    _, response = await answered(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + WHOLE)
    assert response.status == 200 and response.headers.get("link") is None


@pytest.mark.parametrize("status", [202, 204])
async def test_a_response_may_have_no_body(status):
    length = b"" if status == 204 else b"Content-Length: 0\r\n"
    found, response = await answered(b"HTTP/1.1 %d Fine\r\n%s\r\n" % (status, length))
    assert response.is_eof() and await response.readany() == b"" and found.usable


async def test_a_body_is_read_as_it_comes():
    found, response = await answered(HEAD + b"Content-Length: 4\r\n\r\nab")
    assert not response.is_eof() and await response.readany() == b"ab"
    reading = asyncio.ensure_future(response.readany())
    await asyncio.sleep(0)
    found.data_received(b"cd")
    assert await reading == b"cd" and response.is_eof() and await response.readany() == b""


async def test_a_body_nobody_reads_is_not_taken_from_the_socket():
    found, response = await answered(HEAD + b"Content-Length: 1000000\r\n\r\n")
    found.data_received(b"x" * 200_000)
    assert found.transport.done == ["pause"]
    assert len(await response.readany()) == 200_000
    assert found.transport.done == ["pause", "resume"]


async def test_a_connection_that_held_back_reads_again_for_the_next():
    found, response = await answered(HEAD + b"Content-Length: 200000\r\n\r\n" + b"x" * 200_000)
    assert response.is_eof() and len(response.read_nowait()) == 200_000
    assert found.transport.done == ["pause", "resume"] and found.usable


async def test_two_headers_of_a_name_are_both_there():
    _, response = await answered(
        b"HTTP/1.1 401 No\r\nWWW-Authenticate: a\r\nwww-authenticate: b\r\nContent-Length: 0\r\n\r\n"
    )
    assert response.headers.getall("WWW-Authenticate", []) == ["a", "b"]
    assert response.headers.getall("x", []) == [] and PlainHeaders([]).get("x", 1) == 1


# --- what ends it ---


@pytest.mark.parametrize("more", [b"x", WHOLE, b"HTTP/1.1 200"])
async def test_who_says_more_than_was_asked_is_not_asked_again(more):
    found, response = await answered(WHOLE + more)
    assert response.is_eof() and response.read_nowait() == b"{}"
    assert not found.usable and found.transport.is_closing()


async def test_who_speaks_unasked_is_not_asked_again():
    found, _ = await answered(WHOLE)
    found.data_received(b"x")
    assert not found.usable and found.transport.done == ["abort"]


async def test_the_end_of_a_connection_ends_a_body_without_a_length():
    found, response = await answered(HEAD + b"\r\nall")
    assert not response.is_eof()
    found.eof_received()
    found.connection_lost(None)
    assert response.is_eof() and response.read_nowait() == b"all" and not found.usable


@pytest.mark.parametrize(
    "length", [b"Content-Length: 9\r\n\r\nhalf", b"Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"]
)
async def test_an_end_in_the_middle_is_no_end(length):
    found, response = await answered(HEAD + length)
    found.eof_received()
    found.connection_lost(None)
    assert await response.readany() == b"half"
    with pytest.raises(Broken, match="middle"):
        await response.readany()


async def test_what_we_cut_off_ourselves_is_no_end():
    found, response = await answered(HEAD + b"\r\nhalf")
    found.connection_lost(None)
    assert not response.is_eof()


@pytest.mark.parametrize("error, told", [(None, "before it answered"), (ConnectionResetError("reset"), "reset")])
async def test_a_connection_that_goes_before_it_answers_is_told(error, told):
    found = connection()
    task = await asked(found)
    found.connection_lost(error)
    with pytest.raises(Broken, match=told):
        await task


@pytest.mark.parametrize(
    "said, told",
    [
        (b"SSH-2.0-x\r\n", None),
        (b"HTTP/1.1 200 OK\r\nA: " + b"x" * 9000 + b"\r\n\r\n", "longer than 8190"),
        (b"HTTP/1.1 200 OK\r\n" + b"A" * 9000 + b": x\r\n\r\n", "longer than 8190"),
        (b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 129 + b"\r\n", "more than 128"),
        ([b"HTTP/1.1 200 " + b"x" * 5_000, b"x" * 5_000], "first line is longer than 8190"),
        ([b"HTTP/1.1 200 OK\r\nA: " + b"x" * 40_000, b"x" * 40_000], "longer than 65536"),
        (b"HTTP/1.1 101 Switch\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", "another protocol"),
        (b"HTTP/1.1 101 Switch\r\n\r\n", "another protocol"),
        (HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", None),
        (HEAD + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}", None),
    ],
)
async def test_what_is_no_proper_http_is_refused(said, told):
    found = connection()
    task = await asked(found)
    for piece in said if isinstance(said, list) else [said]:
        found.data_received(piece)
    with pytest.raises(Improper, match=told):
        await task
    assert not found.usable and "abort" in found.transport.done


@pytest.mark.parametrize(
    "said", [HEAD + b"Connection: close\r\nContent-Length: 0\r\n\r\n", b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"]
)
async def test_who_wants_to_close_is_not_asked_again(said):
    found, response = await answered(said)
    assert response.is_eof() and not found.usable and found.transport.done == ["close"]


async def test_who_gives_up_leaves_nothing_to_look_at():
    found = connection()
    task = await asked(found)
    task.cancel()
    await asyncio.wait([task])
    assert not found.usable
    found.connection_lost(ConnectionResetError())


async def test_closing_a_response_cuts_its_connection():
    found, response = await answered(HEAD + b"Content-Length: 4\r\n\r\n")
    response.close()
    assert found.transport.done == ["abort"] and not found.usable


async def test_what_was_read_makes_room_for_as_much_again():
    found, response = await answered(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    for _ in range(3):
        found.data_received(b"%x\r\n%s\r\n" % (100_000, b"x" * 100_000))
        assert len(response.read_nowait()) == 100_000
    assert found.transport.done == []


async def test_what_is_over_is_not_read_on():
    found, response = await answered(HEAD + b"Content-Length: 999999\r\n\r\n")
    found.data_received(b"x" * 200_000)
    found.abort()
    assert len(response.read_nowait()) == 200_000
    assert found.transport.done == ["pause", "abort"]


def test_of_two_headers_the_first_one_counts():
    headers = PlainHeaders([("a", "1"), ("b", "2"), ("a", "3")])
    assert (headers.get("A"), headers.getall("A", [])) == ("1", ["1", "3"])
