"""transport/http/client/legacy_sse.py: a whole client against a scripted server of the first HTTP transport."""

import asyncio

import pytest

from interlock.transport.http.client import legacy_sse
from interlock.web.outbound import client as outbound
from interlock.wire.errors import (
    ConnectionClosed,
    ConnectionEnded,
    ConnectionLost,
    HandshakeFailed,
    HttpStatus,
    PeerClosed,
)
from interlock.wire.limits import Limits
from support.http_handshake import asked, ended, final, old_server, sse
from support.http_peer import chunk, chunked, http
from support.http_session_talk import talking as talking_to_a_peer
from support.http_session_talk import until

OLDEST = "2024-11-05"


class talking(talking_to_a_peer):
    """An open client and its old server; both are closed at the end."""

    def __init__(self, server=None, *, revision=None, **options):
        self.server = server if server is not None else old_server()
        super().__init__(self.server, revision=revision, **options)

    async def __aenter__(self):
        client, peer = await super().__aenter__()
        return client, self.server, peer


async def test_closing_ends_the_stream():
    async with talking() as (client, server, _):
        await client.close()
        await asyncio.wait_for(server.over.wait(), 20)


@pytest.mark.parametrize("endpoint", ["/messages", "messages?x=1", "//127.0.0.1:{port}/m", "http://127.0.0.1:{port}/m"])
async def test_an_address_of_the_same_origin_is_taken(endpoint):
    server = old_server()
    peer = talking(server)
    await peer.peer.start()
    server.endpoint = endpoint.format(port=peer.peer.port)
    await peer.peer.stop()
    async with peer as (client, _, _):
        assert (await client.call_tool("t")).text == "ok"


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://example.com/m",
        "//evil.example/m",
        "https://127.0.0.1/m",
        "http://127.0.0.1:1/m",
        "file:///etc",
        "http://[",
        "/a b",
    ],
)
async def test_an_address_of_another_origin_gets_nothing(endpoint):
    server = old_server(endpoint)
    with pytest.raises(HandshakeFailed, match="no address of its own origin"):
        async with talking(server):
            pass
    assert server.posts == []


async def test_what_comes_before_the_address_is_not_heard():
    heard = []
    server = old_server(first=sse({"jsonrpc": "2.0", "method": "early"}))
    async with talking(server, on_notification=lambda method, params: heard.append(method)) as (client, server, _):
        await server.say({"jsonrpc": "2.0", "method": "late"})
        await server.stream.write(sse("/other", name="endpoint") + sse({"jsonrpc": "2.0"}, name="other"))
        assert (await client.call_tool("t")).text == "ok"
    assert heard == ["late"]
    assert {request.path for request in server.posts} == {"/messages?session=1"}


async def test_a_question_is_answered_by_a_post():
    async with talking() as (client, server, _):
        await server.say(asked("q", "ping"))
        async with asyncio.timeout(20):
            while not [request for request in server.posts if request.method == "answer"]:
                await asyncio.sleep(0.005)
        assert client.revision == OLDEST
    [told] = [request for request in server.posts if request.method == "answer"]
    assert told.message == {"jsonrpc": "2.0", "id": "q", "result": {}}


@pytest.mark.parametrize("end", ["ended", "reset"])
async def test_the_end_of_the_stream_is_the_end_of_the_session(end):
    async with talking() as (client, server, peer):
        server.accept = 200  # taken, and never answered
        waiting = asyncio.ensure_future(client.call_tool("t"))
        async with asyncio.timeout(20):
            while len(server.posts) < 3:
                await asyncio.sleep(0.005)
        await (server.stream.write(ended) if end == "ended" else asyncio.sleep(0))
        if end == "reset":
            server.stream.reset()
        with pytest.raises(PeerClosed if end == "ended" else ConnectionEnded):
            await waiting
        server.accept = 202
        assert (await client.call_tool("t")).text == "ok"  # a new session, with the next call
    assert len([request for request in peer.requests if request.verb == "GET"]) == 2


async def test_a_post_that_is_refused_fails_its_call_alone():
    async with talking() as (client, server, _):
        server.accept = 503
        with pytest.raises(HttpStatus):
            await client.call_tool("t")
        server.accept = 202
        assert (await client.call_tool("t")).text == "ok"


async def test_giving_up_tells_the_server():
    async with talking() as (client, server, _):
        server.accept = 200
        task = asyncio.ensure_future(client.call_tool("t"))
        async with asyncio.timeout(20):
            while len(server.posts) < 3:
                await asyncio.sleep(0.005)
            task.cancel()
            while server.posts[-1].method != "notifications/cancelled":
                await asyncio.sleep(0.005)
        assert server.posts[-1].params["requestId"] == server.posts[-2].id
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_nothing_is_said_for_a_call_that_ends_with_its_loop():
    """Its POST was accepted long ago: the stream alone tells that all ends."""
    async with talking() as (client, server, _):
        server.accept = 200  # and never an answer
        posting = client._edge.link._posting
        task = asyncio.ensure_future(client.call_tool("t"))
        await until(lambda: len(server.posts) == 3 and not posting._requests)
        posting._standing.cancel()  # as all tasks are
        task.cancel()
        await asyncio.wait([task])
        assert not posting._aside
    assert [each.method for each in server.posts[2:]] == ["tools/call"]


async def test_closing_fails_what_waits():
    async with talking() as (client, server, _):
        server.accept = 200
        task = asyncio.ensure_future(client.call_tool("t"))
        async with asyncio.timeout(20):
            while len(server.posts) < 3:
                await asyncio.sleep(0.005)
        await client.close()
        with pytest.raises(ConnectionClosed):
            await task


@pytest.mark.parametrize(
    "reply",
    [
        http(405),
        http(401),
        http(200, b"{}"),
        http(500),
        chunked() + ended,
        chunked() + sse("x") + ended,
        b"",
        b"HTTP/1.1",
    ],
)
async def test_a_server_without_such_a_stream_says_what_it_said_first(reply):
    def script(request, stream):
        if request.verb != "GET":
            return http(404)
        stream.writer.write(reply)
        stream.close()
        return None

    with pytest.raises(HttpStatus) as caught:
        async with talking(script):
            pass
    assert caught.value.status == 404


async def test_an_address_that_never_comes_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(legacy_sse, "_ENDPOINT_WITHIN", 0.1)

    async def script(request, stream):
        if request.verb != "GET":
            return http(405)
        await stream.write(chunked())
        while True:
            await stream.write(chunk(b":\n\n"))
            await asyncio.sleep(0.01)

    with pytest.raises(HttpStatus) as caught:
        async with talking(script):
            pass
    assert "where to post" in str(caught.value.__cause__)


async def test_an_event_without_end_ends_the_session():
    async with talking(limits=Limits(message_bytes=2000)) as (client, server, _):
        await server.stream.write(chunk(b"data: " + b"x" * 3000))
        async with asyncio.timeout(20):
            while client._lost is None:
                await asyncio.sleep(0.005)
        assert "more than 2000 bytes" in str(client._lost)


async def test_only_messages_are_heard():
    async with talking() as (client, server, _):
        server.accept = 200  # taken, and answered here
        waiting = asyncio.ensure_future(client.call_tool("t"))
        await until(lambda: len(server.posts) == 3)
        told = final(server.posts[-1], content=[{"type": "text", "text": "hidden"}])
        await server.stream.write(sse(told, name="other") + sse(final(server.posts[-1])))
        assert (await waiting).text == "ok"


async def test_an_address_stands_beside_the_place_that_named_it():
    server = old_server("messages?x=1")

    def script(request, stream):
        if request.verb == "GET" and request.path == "/mcp":
            return http(307, b"", "Location: /deep/sse")
        return server(request, stream)

    async with talking(script) as (client, _, _):
        assert (await client.call_tool("t")).text == "ok"
    assert {request.path for request in server.posts} == {"/deep/messages?x=1"}


async def test_the_stream_takes_the_place_of_no_call(monkeypatch):
    monkeypatch.setattr(outbound, "_CONNECTIONS", 1)
    async with talking() as (client, _, _):
        assert (await client.call_tool("t")).text == "ok"


async def test_an_event_without_an_end_loses_the_session():
    async with talking(limits=Limits(message_bytes=1000)) as (client, server, _):
        server.accept = 200  # taken, and never answered
        waiting = asyncio.ensure_future(client.call_tool("t"))
        await until(lambda: len(server.posts) == 3)
        await server.stream.write(chunk(b"data: " + b"x" * 2000))
        with pytest.raises(ConnectionLost, match="an event of more than 1000 bytes"):
            await waiting
