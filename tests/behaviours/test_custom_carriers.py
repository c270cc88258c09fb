"""Carriers of one's own: basic/transports/index#custom-transports. What they carry is the same protocol."""

import asyncio
import json
import os
import socket

import pytest

from interlock.transport.memory import memory_pair
from interlock.transport.stdio.line_channel import LineChannel
from interlock.wire.errors import PeerClosed
from support.modern_peer import REFUSALS, REQUESTS, connected, listen, same, settled, tag_of, tagged
from support.wire_peer import ALL, MODERN, fresh, server_under_test


def socket_pair():
    """A reliable byte stream that is neither a pipe nor a child: stdio's framing over a Unix socket."""

    def channel(end):
        fd = end.detach()
        return LineChannel(fd, os.dup(fd))

    one, other = socket.socketpair()
    return channel(one), channel(other)


class QueueChannel:
    """A carrier that somebody else might write against `interlock.wire.channel.Channel`: late, one message per turn."""

    def __init__(self):
        self.loop = asyncio.get_running_loop()
        self.other = None
        self.receiver = None
        self.early = []

    async def open(self, receiver):
        self.receiver = receiver
        for message in self.early:
            self.loop.call_soon(receiver.received, message)

    def send(self, message):
        other = self.other
        if other is not None and other.receiver is None:
            other.early.append(message)
        elif other is not None:
            self.loop.call_soon(other.receiver.received, message)

    @property
    def delivered(self):
        return None

    @property
    def backlog(self):
        return 0

    async def drain(self):
        pass

    async def close(self):
        other, self.other = self.other, None
        if other is not None and other.other is not None:
            other.other = None
            self.loop.call_soon(other.receiver.ended, PeerClosed("the other end was closed"))


def queue_pair():
    one, other = QueueChannel(), QueueChannel()
    one.other, other.other = other, one
    return one, other


PAIRS = [memory_pair, socket_pair, queue_pair]


@pytest.mark.parametrize("revision", ALL)
@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.requirement("TRANSPORT-003", "TRANSPORT-004", "TRANSPORT-006")
async def test_the_protocol_is_the_same_on_every_carrier(pair, revision):
    """Format, patterns and the per-request envelope, judged frame by frame by the schema of the revision."""
    server = fresh("support.servers.basic").server
    async with connected(server, revision, pair=pair) as peer:
        for method, params in REQUESTS:
            if params.get("arguments") == {"a": "one"} and revision < "2025-11-25":
                assert (await peer.error(method, params))["code"] == -32602
            elif method != "server/discover" or revision in MODERN:
                await peer.result(method, params)
        for method, params, code in REFUSALS:
            error = await peer.error(method, params, judged=False)
            if revision in MODERN:
                assert error["code"] == code
        await peer.result("tools/call", {"name": "steps", "arguments": {"count": 2}}, meta={"progressToken": "p"})
        assert [each["progress"] for each in peer.notices("notifications/progress")] == [1, 2]


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.requirement("TRANSPORT-004")
async def test_subscriptions_and_cancellation_work_on_every_carrier(pair):
    server = fresh("support.servers.changing").server
    async with connected(server, pair=pair) as peer:
        assert await listen(peer, {"toolsListChanged": True}, id="sub") == {"toolsListChanged": True}
        await peer.result("tools/call", {"name": "change", "arguments": {"kind": "tools"}})
        await settled(peer)
        assert [frame["method"] for frame in tagged(peer, "sub")][1:] == ["notifications/tools/list_changed"]
        peer.notify("notifications/cancelled", {"requestId": "sub"})
        await peer.result("tools/call", {"name": "change", "arguments": {"kind": "tools"}})
        await settled(peer)
        assert len(tagged(peer, "sub")) == 2


@pytest.mark.requirement("TRANSPORT-001")
@pytest.mark.parametrize("revision", MODERN)
@pytest.mark.parametrize("carrier", ["memory", "stdio"])
async def test_a_carrier_delivers_every_message_once_in_order_and_nothing_else(carrier, revision):
    """Many at once, small and large, with everything in them that framing could stumble over."""
    texts = ["", "a\nb", "\r\n", "\u2028", '"}\n{"', "é😀", "x" * 300_000, "\0"] * 8
    async with server_under_test(carrier, revision) as peer:
        before = len(peer.raw)
        for number, text in enumerate(texts):
            peer.send(peer.frame("tools/call", {"name": "echo", "arguments": {"text": text}}, id=f"n{number}"))
        answers = [await peer.receive() for _ in texts]
        assert [answer["id"] for answer in answers] == [f"n{number}" for number in range(len(texts))]
        assert [answer["result"]["content"][0]["text"] for answer in answers] == texts
        await peer.settle()
        assert len(peer.raw) == before + len(texts) + 1
        assert not [line for line in peer.raw if b"\n" in line or not isinstance(json.loads(line), dict)]


@pytest.mark.requirement("TRANSPORT-001")
@pytest.mark.parametrize("pair", PAIRS)
async def test_one_connection_hears_nothing_of_another(pair):
    server = fresh("support.servers.changing").server
    async with connected(server, pair=pair) as one, connected(server, pair=pair) as other:
        await listen(one, {"toolsListChanged": True}, id=5000)
        meta = {"progressToken": "p"}
        waiting = {"name": "wait", "arguments": {"name": "x"}}
        one.send(one.frame("tools/call", waiting, id="long", meta=meta))
        await one.expect("notifications/progress")
        await other.result("tools/call", {"name": "change", "arguments": {"kind": "tools"}})
        other.notify("notifications/cancelled", {"requestId": "long"})  # an id of the other connection
        await settled(other)
        await settled(one)
        assert other.heard == []
        assert [same(tag_of(frame), 5000) for frame in one.heard] == [True]
        stopped = await one.result("tools/call", {"name": "was_stopped", "arguments": {"name": "x"}})
        assert stopped["content"][0]["text"] == "False"
