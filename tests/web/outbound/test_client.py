"""web/outbound/client.py: the guards that stand around every request, whoever makes it."""

import asyncio
import errno
import gc
import socket
import warnings
import weakref

import aiohttp
import pytest

from interlock.transport.http.client import post
from interlock.transport.http.client.post import post_accepted
from interlock.web.outbound import client
from interlock.web.outbound import pool as socket_pool
from interlock.web.outbound.client import Errands, Outbound, drain
from interlock.web.outbound.endpoint import endpoint_of
from interlock.web.outbound.http11 import NotReached
from interlock.wire.errors import (
    BadResult,
    CallTimeout,
    ConnectionClosed,
    ConnectionLost,
    HttpStatus,
    MethodNotFound,
    RemoteError,
    SessionGone,
)
from interlock.wire.limits import Limits
from support.http_peer import HttpPeer, chunk, chunked, http
from support.idle import until_idle


async def ask(out, verb="GET", body=None, **options):
    async with out.sent(verb, body, {}, **options) as (reply, response):
        return reply, await out.whole(response, "x")


async def silence(request, stream):
    await stream.gone()


# --- where requests go ---


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_get_is_led_on_within_the_origin(status):
    def script(request, stream):
        return http(status, b"", "Location: /there") if request.path == "/mcp" else http(200, b"here")

    async with HttpPeer(script) as peer:
        out = Outbound(endpoint_of(peer.url))
        assert (await ask(out))[1] == b"here"
        await out.close()


@pytest.mark.parametrize("status", [301, 302, 303])
@pytest.mark.parametrize("verb", ["POST", "DELETE"])
async def test_another_verb_is_not_turned_into_a_get(verb, status):
    async with HttpPeer(lambda r, s: http(status, b"", "Location: /there")) as peer:
        out = Outbound(endpoint_of(peer.url))
        assert (await ask(out, verb))[0].status == status
        await out.close()
    assert len(peer.requests) == 1


@pytest.mark.parametrize("verb", ["GET", "POST", "DELETE"])
async def test_nothing_leaves_for_another_origin(verb):
    def script(request, stream):
        return http(307, b"", f"Location: {other.url}")

    async with HttpPeer(lambda r, s: http(200)) as other, HttpPeer(script) as peer:
        out = Outbound(endpoint_of(peer.url))
        assert (await ask(out, verb))[0].status == 307
        await out.close()
    assert other.connections == 0


class Recording:
    """Credentials that are made for one URL each, and renewed once."""

    def __init__(self):
        self.made, self.judged, self.mended = [], [], 0

    async def headers(self, verb, url):
        self.made.append((verb, url))
        return {"Authorization": f"Bearer {len(self.made)}"}

    def refused(self, reply, url):
        self.judged.append((reply.status, url))
        return reply.status == 401

    async def mend(self):
        self.mended += 1


async def test_credentials_are_made_for_the_url_that_is_asked_and_mended_there():
    def script(request, stream):
        if request.path == "/mcp":
            return http(307, b"", "Location: /there")
        return http(401 if request.header("authorization") == "Bearer 2" else 200, b"{}")

    async with HttpPeer(script) as peer:
        credentials, there = Recording(), peer.url.replace("/mcp", "/there")
        out = Outbound(endpoint_of(peer.url), begin=lambda: credentials)
        assert (await ask(out, "POST", b"{}"))[0].status == 200
        await out.close()
    assert credentials.made == [("POST", peer.url), ("POST", there), ("POST", there)]
    assert (credentials.judged, credentials.mended) == ([(401, there), (200, there)], 1)


# --- one pool ---


async def test_all_of_one_loop_share_their_sockets():
    async with HttpPeer(lambda r, s: http(200, b"{}")) as peer:
        first, second = Outbound(endpoint_of(peer.url)), Outbound(endpoint_of(peer.url))
        await ask(first)
        await ask(second)
        await first.close()
        await ask(second)
        await second.close()
    assert peer.connections == 1
    assert id(asyncio.get_running_loop()) not in socket_pool.pools


async def test_closing_one_cuts_off_its_own_requests_alone():
    async def script(request, stream):
        if request.path == "/mcp":
            await stream.write(chunked())
        await stream.gone()

    async with HttpPeer(script) as peer:
        outs = [Outbound(endpoint_of(peer.url)) for _ in range(2)]
        tasks = [asyncio.ensure_future(ask(out)) for out in outs]
        while len(peer.requests) < 2:
            await asyncio.sleep(0.005)
        await outs[0].close()
        await asyncio.wait([tasks[0]], timeout=20)
        assert tasks[0].exception() is not None
        assert not tasks[1].done()
        await outs[1].close()
        await asyncio.wait([tasks[1]], timeout=20)
        assert tasks[1].exception() is not None


async def test_a_request_given_up_leaves_no_socket_behind_at_a_peer_that_does_not_read():
    listening = socket.create_server(("127.0.0.1", 0))
    keeps = Outbound(endpoint_of("http://127.0.0.1:1/"))  # somebody else uses the pool on
    keeps._opened()
    out = Outbound(endpoint_of(f"http://127.0.0.1:{listening.getsockname()[1]}/"))
    task = asyncio.ensure_future(ask(out, "POST", b"x" * 30_000_000))
    while not out._used:
        await asyncio.sleep(0.005)
    await until_idle()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not out._used
    await until_idle()
    assert [each for each in keeps._opened().sockets if each.fileno() >= 0] == []
    await out.close()
    await keeps.close()
    listening.close()


async def test_requests_wait_for_one_of_the_sockets_and_what_goes_aside_does_not(monkeypatch):
    monkeypatch.setattr(client, "_CONNECTIONS", 2)
    async with HttpPeer(silence) as peer:
        out = Outbound(endpoint_of(peer.url))
        tasks = [asyncio.ensure_future(ask(out)) for _ in range(3)]
        while len(peer.requests) < 2:
            await asyncio.sleep(0.005)
        await until_idle()
        assert len(peer.requests) == 2
        tasks.append(asyncio.ensure_future(ask(out, aside=True)))
        while len(peer.requests) < 3:
            await asyncio.sleep(0.005)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        await out.close()


def test_one_whose_loop_is_gone_is_given_up():
    async def used():
        async with HttpPeer(lambda r, s: http(200)) as peer:
            out = Outbound(endpoint_of(peer.url))
            await ask(out)
            return out, list(out._opened().sockets)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        out, held = asyncio.run(used())
        out.abandon()
        out.abandon()
        assert held and all(each.fileno() < 0 for each in held)
        del out, held
        gc.collect()


def test_one_that_nobody_closed_is_not_kept_for_ever(caplog):
    async def used():
        async with HttpPeer(lambda r, s: http(200)) as peer:
            out = Outbound(endpoint_of(peer.url))
            await ask(out)
            return weakref.ref(out._opened()), [weakref.ref(each) for each in out._opened().sockets]

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", ResourceWarning)
        pool, sockets = asyncio.run(used())
        gc.collect()
    assert pool() is None
    assert sum("an HTTP client was not closed" in str(each.message) for each in told) == 1
    told.clear()  # they hold what they tell of
    gc.collect()
    assert all(each() is None for each in sockets) and not caplog.records


# --- bodies ---


@pytest.mark.parametrize("form", [lambda body: http(200, body), lambda body: chunked() + chunk(body) + b"0\r\n\r\n"])
async def test_a_body_is_bounded(form):
    async with HttpPeer(lambda r, s: form(b"x" * 200)) as peer:
        out = Outbound(endpoint_of(peer.url), Limits(message_bytes=100))
        with pytest.raises(BadResult, match="larger than 100 bytes"):
            await ask(out)
        await out.close()


@pytest.mark.parametrize(("bound", "value"), [("_LINGER", 0.02), ("_LEFTOVER", 100)])
async def test_what_is_left_of_a_body_is_not_read_for_ever(monkeypatch, bound, value):
    monkeypatch.setattr(client, "_LINGER", 1000.0)
    monkeypatch.setattr(client, bound, value)

    async def script(request, stream):
        await stream.write(chunked())
        while True:
            await stream.write(chunk(b"x" * 10))
            await asyncio.sleep(0.001)

    async with HttpPeer(script) as peer:
        out = Outbound(endpoint_of(peer.url))
        async with asyncio.timeout(20), out.sent("GET", None, {}) as (_, response):
            await drain(response)
        await out.close()


# --- what has no answer ---


async def test_what_was_accepted_says_nothing():
    async with HttpPeer(lambda r, s: http(200, b'{"some":"thing"}')) as peer:
        out = Outbound(endpoint_of(peer.url))
        await post_accepted(out, "n", b"{}", {})
        await post_accepted(out, "n", b"{}", {}, url=peer.url.replace("/mcp", "/other"))
        await out.close()
    assert [request.path for request in peer.requests] == ["/mcp", "/other"]
    assert peer.connections == 1


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (http(400), HttpStatus),
        (http(404), HttpStatus),
        (http(401), HttpStatus),
        (http(400, b'{"jsonrpc":"2.0","error":{"code":-32601,"message":"no"}}'), MethodNotFound),
        (b"nonsense\r\n\r\n", RemoteError),
    ],
)
async def test_what_was_not_accepted_says_why(reply, error):
    async with HttpPeer(lambda r, s: reply) as peer:
        out = Outbound(endpoint_of(peer.url))
        with pytest.raises(error):
            await post_accepted(out, "n", b"{}", {})
        await out.close()


async def test_a_404_can_have_a_meaning():
    async with HttpPeer(lambda r, s: http(404, b'{"jsonrpc":"2.0","error":{"code":1,"message":"no"}}')) as peer:
        out = Outbound(endpoint_of(peer.url))
        with pytest.raises(SessionGone):
            await post_accepted(out, "n", b"{}", {}, gone=SessionGone("x"))
        await out.close()


async def test_what_nobody_takes_is_late(monkeypatch):
    monkeypatch.setattr(post, "_ACCEPTED_WITHIN", 0.05)
    async with HttpPeer(silence) as peer:
        out = Outbound(endpoint_of(peer.url))
        with pytest.raises(CallTimeout):
            await post_accepted(out, "n", b"{}", {})
        await out.close()


async def test_the_end_is_the_reason_from_then_on():
    out = Outbound(endpoint_of("http://127.0.0.1:1/"))
    assert isinstance(out.as_ours(OSError("x"), "m", True), ConnectionLost)
    out.end = ConnectionClosed("closed")
    for begun, sent in ((True, True), (False, None)):
        told = out.as_ours(OSError("x"), "m", begun)
        assert isinstance(told, ConnectionClosed) and told.sent is sent
    await out.close()


async def test_why_there_is_no_connection_is_said_in_words():
    out = Outbound(endpoint_of("http://127.0.0.1:1/"))
    for reason, words in (
        (NotReached(socket.EAI_NONAME, "Name or service not known"), "127.0.0.1:1: Name or service not known"),
        (NotReached(errno.ENETUNREACH, "x"), "Network is unreachable"),
        (NotReached(), "it was closed before TLS was agreed on"),
    ):
        told = out.as_ours(reason, "m", False)
        assert words in str(told) and told.sent is False
    await out.close()


async def test_a_server_that_goes_before_its_answer_is_told_without_what_it_said():
    out = Outbound(endpoint_of("https://127.0.0.1:1/"))
    said = aiohttp.http.RawResponseMessage(aiohttp.HttpVersion11, 200, "secret", None, (), True, None, False, True)
    told = str(out.as_ours(aiohttp.ServerDisconnectedError(said), "m", True))
    assert told.endswith("broke: the server closed it before it answered")
    await out.close()


# --- errands ---


async def test_errands_end_with_their_owner():
    errands = Errands(asyncio.get_running_loop())
    task = errands.start(asyncio.sleep(1000))
    running = asyncio.ensure_future(errands.run(asyncio.sleep(1000)))
    await asyncio.sleep(0)
    assert len(errands) == 2
    await errands.end()
    assert task.cancelled()
    assert await running is None
    assert len(errands) == 0


async def test_an_errand_that_is_waited_for_gives_its_result_and_ends_with_who_waits():
    errands = Errands(asyncio.get_running_loop())
    assert await errands.run(asyncio.sleep(0, "done")) == "done"
    running = asyncio.ensure_future(errands.run(asyncio.sleep(1000)))
    await until_idle()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await until_idle()
    assert len(errands) == 0


async def test_one_of_them_may_end_the_others():
    errands = Errands(asyncio.get_running_loop())
    other = errands.start(asyncio.sleep(1000))
    await errands.run(errands.end())
    assert other.cancelled()


async def test_an_errand_begun_behind_the_end_ends_at_once():
    errands = Errands(asyncio.get_running_loop())
    await errands.end()
    late = errands.start(asyncio.Event().wait())
    await asyncio.wait([late], timeout=20)
    assert late.cancelled()


async def test_an_errand_begun_by_one_that_is_just_ended_ends_too():
    errands = Errands(asyncio.get_running_loop())

    async def begins_another():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            errands.start(asyncio.Event().wait())  # it was done in the very turn in which it was ended

    errands.start(begins_another())
    await asyncio.sleep(0)
    await errands.end()
    assert len(errands) == 0
