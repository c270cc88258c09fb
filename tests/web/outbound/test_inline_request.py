"""web/outbound/inline_request.py: requests that are made on the spot, beside those that have a task from the
beginning."""

import asyncio
import gc
import os
import re
import socket

import pytest

from interlock.transport.http.client.link import HttpLink
from interlock.web.outbound import client as outbound
from interlock.web.outbound.endpoint import endpoint_of
from interlock.web.outbound.inline_request import Begun
from interlock.wire.channel import Patience
from interlock.wire.errors import CallTimeout, ConnectionLost, InterlockError
from interlock.wire.limits import Limits
from interlock.wire.meta import PROTOCOL_VERSION
from support.http_handshake import ended, final, handshake, sse
from support.http_peer import HttpPeer, answer, chunk, chunked, events, http, refusal, result
from support.http_session_talk import of, ok, talking, until

PATIENT = Patience(idle=None, total=20)
META = {PROTOCOL_VERSION: "2026-07-28"}


async def call(link, method="tools/call", patience=PATIENT):
    return await link.call(method, {"name": "t"}, META, patience=patience)


class warm:
    """A link with a connection that waits, as after a first call; `script` is for what comes then."""

    def __init__(self, script):
        self.peer = HttpPeer(lambda r, s: result(r, {}) if len(self.peer.requests) == 1 else script(r, s))

    async def __aenter__(self):
        await self.peer.start()
        self.link = HttpLink(endpoint_of(self.peer.url))
        await call(self.link)
        assert self.link._outbound._pool.plain._idle
        return self.link, self.peer

    async def __aexit__(self, *_):
        await self.link.close()
        assert not self.link._readers and not self.link._outbound._used
        assert self.link._outbound._lane._value == outbound._CONNECTIONS
        await self.peer.stop()
        if self.peer.failures:
            raise self.peer.failures[0]


async def under_way(link, peer):
    """A call that has reached the peer, and how it is made."""
    task = asyncio.ensure_future(call(link))
    await until(lambda: len(peer.requests) == 2)
    return task, link._readers[2]


async def silence(request, stream):
    await stream.gone()


async def test_a_call_on_a_connection_that_waits_has_no_task():
    async with warm(lambda r, s: result(r, {"a": 1})) as (link, peer):
        before = asyncio.all_tasks()
        calling = call(link)
        calling.send(None)  # up to where it waits: all of it is written
        made = link._readers[2]
        assert isinstance(made, Begun) and asyncio.all_tasks() == before
        await until(lambda: made.over)
        with pytest.raises(StopIteration) as found:
            calling.send(None)
        assert b'"a":1' in bytes(found.value.value.result).replace(b" ", b"")
    assert peer.connections == 1


async def in_pieces(request, stream):
    await stream.write(result(request, {}), cut=7)


async def cut_off(request, stream):
    await stream.write(result(request, {})[:-3])
    stream.close()


async def closed(request, stream):
    stream.close()


def redirected(request, stream):
    return http(307, b"", "Location: /there") if request.path == "/mcp" else result(request, {"there": True})


@pytest.mark.parametrize(
    "script",
    [
        lambda r, s: result(r, {}),
        lambda r, s: answer(r, {"result": {}}).replace(b"application/json", b"Application/JSON; charset=utf-8"),
        lambda r, s: events(r),
        lambda r, s: chunked("application/json") + chunk(b'{"jsonrpc":"2.0","id":%d,"result":{}}' % r.id) + ended,
        lambda r, s: refusal(r, -32601, 404),
        lambda r, s: refusal(r, -32602, 200),
        lambda r, s: http(200, b'{"jsonrpc":"2.0","id":99,"result":{}}'),
        lambda r, s: http(200, b"{}"),
        lambda r, s: http(200, b"no JSON"),
        lambda r, s: http(200, b'{"jsonrpc":"2.0","id":1,"method":"ping"}'),
        lambda r, s: http(200, b'{"jsonrpc":"2.0","id":1,"result":{}}', "Content-Encoding: gzip"),
        lambda r, s: http(200, b"<html>", kind="text/html"),
        lambda r, s: http(202),
        lambda r, s: http(401, b"", "WWW-Authenticate: Bearer"),
        lambda r, s: http(503, b"", "Retry-After: 7"),
        lambda r, s: b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
        redirected,
        in_pieces,
        cut_off,
        closed,
    ],
)
async def test_it_makes_no_difference_to_the_caller(script):
    """What comes of a call by a task, and of one that is begun on the spot."""

    async def outcome(link):
        try:
            frame = await call(link)
            return bytes(frame.result) if frame.result else bytes(frame.error)
        except InterlockError as error:
            return type(error), re.sub(r":\d+| \(\d\)", "", str(error)), getattr(error, "sent", None)

    async with HttpPeer(script) as peer:
        link = HttpLink(endpoint_of(peer.url))
        by_task = await outcome(link)
        await link.close()
    async with warm(script) as (link, _):
        assert await outcome(link) == by_task


async def test_a_connection_is_used_again_and_again():
    async with warm(lambda r, s: result(r, {})) as (link, peer):
        for _ in range(3):
            await call(link)
    assert peer.connections == 1 and len(peer.requests) == 4


async def test_who_gives_up_closes_it_and_leaves_nothing():
    gone = asyncio.Event()

    async def until_gone(request, stream):
        await stream.gone()
        gone.set()

    async with warm(until_gone) as (link, peer):
        task, made = await under_way(link, peer)
        assert isinstance(made, Begun)
        task.cancel()
        await asyncio.wait([task])
        await gone.wait()
        assert made.over and not link._readers


async def test_a_deadline_closes_it():
    async with warm(silence) as (link, peer):
        with pytest.raises(CallTimeout):
            await call(link, patience=Patience(idle=None, total=0.05))
        assert not link._readers
        peer.script = lambda r, s: result(r, {})
        await call(link)
    assert peer.connections == 2


async def test_closing_the_link_ends_it():
    async with warm(silence) as (link, peer):
        task, made = await under_way(link, peer)
        await link.close()
        with pytest.raises(InterlockError):
            await task
        assert made.over


async def test_a_task_that_ends_before_it_takes_over_gives_everything_back():
    async with warm(lambda r, s: chunked() + chunk(b": nothing\n\n")) as (link, _):
        taken, start = [], link._start

        def start_and_end(*given):
            taken.append(task := start(*given))
            task.cancel()
            return task

        link._start = start_and_end
        calling = asyncio.ensure_future(call(link))
        await until(lambda: taken)
        await asyncio.wait(taken)
        calling.cancel()
        await asyncio.wait([calling])


async def test_a_task_factory_that_knows_no_context_can_go_on_with_it():
    async with warm(lambda r, s: events(r)) as (link, _):
        asyncio.get_running_loop().set_task_factory(lambda loop, work: asyncio.Task(work, loop=loop))
        try:
            await call(link)
        finally:
            asyncio.get_running_loop().set_task_factory(None)


@pytest.mark.parametrize(
    "further",
    [
        lambda there: there.shutdown(socket.SHUT_WR),
        lambda there: os.write(there.fileno(), b"HTTP/1.1 200 OK\r\n"),
    ],
)
async def test_what_came_behind_an_answer_is_seen_before_the_loop_has_read_it(further):
    """The next call is made before the loop looks again; a connection that was closed would cost the user a call."""
    streams = []
    async with warm(lambda r, s: streams.append(s) or result(r, {})) as (link, peer):
        await call(link)
        further(streams[0].writer.get_extra_info("socket"))
        await call(link)
    assert peer.connections == 2


async def test_it_holds_a_place_among_those_with_a_socket(monkeypatch):
    monkeypatch.setattr(outbound, "_CONNECTIONS", 1)
    release = asyncio.Event()

    async def slowly(request, stream):
        await release.wait()
        return result(request, {})

    async with warm(slowly) as (link, peer):
        first, made = await under_way(link, peer)
        second = asyncio.ensure_future(call(link))
        while len(link._readers) < 2:
            await asyncio.sleep(0)
        for _ in range(5):
            await asyncio.sleep(0)
        assert isinstance(made, Begun) and len(peer.requests) == 2
        release.set()
        await asyncio.gather(first, second)
    assert peer.connections == 1


async def test_a_body_that_is_too_large_is_refused_either_way():
    large = http(200, b'{"jsonrpc":"2.0","id":2,"result":{"x":"' + b"x" * 5000 + b'"}}')
    async with warm(lambda r, s: large) as (link, _):
        link._limits = link._outbound.limits = Limits(message_bytes=1000)
        with pytest.raises(InterlockError, match="larger than 1000 bytes"):
            await call(link)


@pytest.mark.parametrize(
    "reason",
    [
        lambda out: setattr(out, "_begin", lambda: None),  # a token has to be fetched
        lambda out: out._pool.plain.close(),  # no connection waits
        lambda out: setattr(out, "_pool", None),
    ],
)
async def test_what_has_to_wait_is_not_begun(reason):
    async with warm(silence) as (link, _):
        pool = link._outbound._pool
        reason(link._outbound)
        assert link._outbound.begin(b"{}", {}, lambda *_: None) is None
        link._outbound._pool, link._outbound._begin = pool, None


async def test_a_header_that_cannot_be_said_gives_everything_back():
    async with warm(silence) as (link, _):
        with pytest.raises(ValueError, match="line break"):
            link._outbound.begin(b"{}", {"A": "b\r\nC: d"}, lambda *_: None)


async def test_nothing_of_it_stays_for_the_collector():
    async with warm(lambda r, s: result(r, {})) as (link, _):
        await call(link)
        gc.collect()
        gc.disable()
        try:
            await call(link)
            assert not [each for each in gc.get_objects() if isinstance(each, Begun)]
        finally:
            gc.enable()


# --- in a session ---


async def test_a_call_in_a_session_is_begun_too_and_let_go():
    async with talking(handshake(tools_call=silence)) as (client, peer):
        posting = client._edge.link._posting
        with pytest.raises(CallTimeout):
            task = asyncio.ensure_future(client.call_tool("t", timeout=0.1))
            await until(lambda: of(peer, "tools/call"))
            (made,) = posting._requests.values()
            await task
        assert isinstance(made, Begun) and made.over
        assert not posting._requests and not posting._unanswered
        await until(lambda: of(peer, "notifications/cancelled"))


async def test_a_stream_that_is_resumed_has_the_headers_of_its_own_call():
    """The task that goes on with it was begun by what came, not by the caller."""

    def broken(request, stream):
        return chunked() + sse(id="7") + ended

    def rest(request, stream):
        if request.header("last-event-id") is None:
            return http(405)
        return chunked() + sse(final(of(peer, "tools/call")[-1]), id="8") + ended

    async with talking(handshake(tools_call=ok, GET=rest)) as (client, peer):
        await client.call_tool("t", headers={"X-Who": "first"})
        peer.script = handshake(tools_call=broken, GET=rest)
        await client.call_tool("t", headers={"X-Who": "second"})
    resumed = [each for each in of(peer, "GET") if each.header("last-event-id") is not None]
    assert [each.header("x-who") for each in resumed] == ["second"]


async def test_closing_gives_the_place_of_a_call_to_the_goodbye(monkeypatch):
    monkeypatch.setattr(outbound, "_CONNECTIONS", 1)
    async with talking(handshake(tools_call=silence)) as (client, peer):
        posting = client._edge.link._posting
        task = asyncio.ensure_future(client.call_tool("t"))
        await until(lambda: of(peer, "tools/call"))
        (made,) = posting._requests.values()
        await client.close()
        with pytest.raises(InterlockError):
            await task
        assert isinstance(made, Begun) and made.over and not posting._requests and not posting._unanswered
    assert len(of(peer, "DELETE")) == 1


async def test_nothing_is_said_for_a_call_that_ends_with_its_loop():
    """Whoever ends the loop cancels the caller as well; a cancellation sent then would be a task without an end."""
    async with talking(handshake(tools_call=silence)) as (client, peer):
        posting = client._edge.link._posting
        task = asyncio.ensure_future(client.call_tool("t"))
        await until(lambda: of(peer, "tools/call"))
        assert isinstance(*posting._requests.values(), Begun)
        posting._standing.cancel()  # as all tasks are
        task.cancel()
        await asyncio.wait([task])
        assert not posting._aside
    assert not of(peer, "notifications/cancelled")


async def test_a_connection_that_broke_while_it_waited_is_told_like_any_other():
    async with warm(closed) as (link, _):
        with pytest.raises(ConnectionLost) as caught:
            await call(link)
        assert caught.value.sent is None
