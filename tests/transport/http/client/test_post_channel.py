"""transport/http/client/post_channel.py: messages as POSTs, of whichever transport."""

import asyncio
import logging

import pytest

from interlock.transport.http.client import post_channel
from interlock.transport.http.client.post_channel import Posting
from interlock.web.outbound.endpoint import endpoint_of
from interlock.wire.errors import HttpStatus, LocalError
from interlock.wire.messages import encode_call, encode_notice, encode_result
from support.doubles import Receiver
from support.idle import until_idle


class Carrier(Posting):
    """Keeps what it is given; `go` lets it through."""

    def __init__(self):
        super().__init__(endpoint_of("http://127.0.0.1:1/"))
        self.carried, self.posted, self.go = [], [], asyncio.Event()
        self.error = None

    async def _carry(self, id, method, message):
        self.carried.append((id, method))
        await self.go.wait()

    async def _post(self, what, message, *, aside):
        self.posted.append((what, aside))
        if self.error is not None:
            raise self.error
        await self.go.wait()


async def opened():
    carrier = Carrier()
    await carrier.open(Receiver())
    return carrier


async def test_requests_are_carried_and_the_rest_is_posted_aside():
    carrier = await opened()
    for message in (
        encode_call(1, "tools/call", {}),
        encode_notice("notifications/cancelled", {}),
        encode_result("q", {}),
        b"[" + encode_result(1, {}) + b"]",
    ):
        assert carrier.send(message) is None
    await asyncio.sleep(0)
    assert carrier.carried == [(1, "tools/call")]
    assert carrier.posted == [("notifications/cancelled", True), ("an answer", True), ("an answer", True)]
    assert carrier.backlog > 0 and carrier.delivered is None
    draining = asyncio.ensure_future(carrier.drain())
    await asyncio.sleep(0)
    assert not draining.done()
    carrier.go.set()
    await draining
    assert carrier.backlog == 0
    await carrier.drain()
    await carrier.close()


async def test_what_is_delivered_is_waited_for():
    carrier = await opened()
    delivering = asyncio.ensure_future(carrier.deliver("n", b"{}"))
    await until_idle()
    assert not delivering.done() and carrier.posted == [("n", False)]
    carrier.go.set()
    await delivering
    carrier.error = HttpStatus("no", 400)
    with pytest.raises(HttpStatus):
        await carrier.deliver("n", b"{}")
    await carrier.close()


async def test_a_request_nobody_waits_for_is_let_go():
    carrier = await opened()
    carrier.send(encode_call(1, "x", {}))
    assert carrier.let_go(1)
    assert carrier.let_go(2)
    await until_idle()
    assert carrier._requests == {} and len(carrier._errands) == 0
    await carrier.close()


async def test_a_request_that_somebody_else_ended_is_not_spoken_of():
    """All tasks of the loop are cancelled at its end: nothing new is begun then."""
    carrier = await opened()
    carrier.send(encode_call(1, "x", {}))
    carrier._requests[1].cancel()
    assert not carrier.let_go(1)
    await carrier.close()


async def test_a_server_that_takes_no_answers_is_given_up(monkeypatch):
    monkeypatch.setattr(post_channel, "_MOST_ASIDE", 2)
    carrier = await opened()
    carrier.send(encode_result(1, {}))
    carrier.send(encode_result(2, {}))
    with pytest.raises(LocalError, match="has not taken"):
        carrier.send(encode_result(3, {}))
    carrier.go.set()
    await carrier.close()


async def test_only_so_many_go_aside_at_once(monkeypatch):
    monkeypatch.setattr(post_channel, "_ASIDE_AT_ONCE", 2)
    carrier = await opened()
    for number in range(5):
        carrier.send(encode_result(number, {}))
    await until_idle()
    assert len(carrier.posted) == 2
    carrier.go.set()
    await carrier.drain()
    assert len(carrier.posted) == 5
    await carrier.close()


async def test_what_did_not_arrive_aside_is_written_down(caplog):
    caplog.set_level(logging.WARNING, "interlock.client")
    carrier = await opened()
    carrier.error = HttpStatus("bad \x1b news", 400)
    carrier.send(encode_result(1, {}))
    await carrier.drain()
    assert "an answer did not reach the server" in caplog.text and "\x1b" not in caplog.text
    assert carrier.backlog == 0
    await carrier.close()


async def test_the_last_words_have_a_moment(monkeypatch):
    carrier = await opened()
    carrier.send(encode_notice("notifications/cancelled", {}))
    closing = asyncio.ensure_future(carrier.close())
    await until_idle()
    assert not closing.done()
    carrier.go.set()
    await asyncio.gather(closing, carrier.close())
    monkeypatch.setattr(post_channel, "_LAST_WORDS", 0.01)
    deaf = await opened()
    deaf.send(encode_notice("notifications/cancelled", {}))
    deaf.send(encode_call(1, "x", {}))
    await deaf.close()
    assert len(deaf._errands) == 0


async def test_the_two_halves_that_a_transport_adds():
    bare = Posting(endpoint_of("http://127.0.0.1:1/"))
    for work in (bare._post("x", b"", aside=True), bare._carry(1, "x", b"")):
        with pytest.raises(NotImplementedError):
            await work
    bare.version = "v"
    assert bare._headers("GET", "e")["MCP-Protocol-Version"] == "v"
    bare.abandon()
    await bare.close()
