"""transport/jsonrpc/keepalive.py: a quiet connection is pinged, and one that does not answer is ended."""

import asyncio
import json
import logging

import pytest

from interlock.transport.jsonrpc.connection import Duplex
from interlock.transport.jsonrpc.keepalive import Keepalive, Pinger
from interlock.wire.channel import Patience
from interlock.wire.errors import ConnectionClosed, ConnectionLost
from interlock.wire.messages import encode_notice, encode_result
from support.doubles import Channel, turns
from support.virtual_time import virtual_time


class Side:
    batches = False

    def __init__(self):
        self.ends = []

    def request(self, frame):
        return encode_result(frame.id, {})

    def notification(self, frame):
        pass

    def junk(self, line, bad):
        return None

    def ended(self, error):
        self.ends.append(error)


def quiet(interval=10, timeout=5, losses=2, answers=True):
    channel, side = Channel(), Side()
    duplex = Duplex(channel, side)
    if answers:

        def answer(message):
            frame = json.loads(message)
            if frame.get("method") == "ping":
                asyncio.get_running_loop().call_soon(duplex.received, encode_result(frame["id"], {}))

        channel.on_send = answer
    return channel, side, duplex, Pinger(duplex, Keepalive(interval, timeout, losses))


def pings(channel):
    return [frame for frame in channel.frames() if frame.get("method") == "ping"]


async def end(duplex, pinger):
    pinger.close()
    await duplex.close()
    await turns()


@virtual_time
async def test_a_quiet_connection_is_pinged_once_per_interval():
    channel, _, duplex, pinger = quiet()
    await asyncio.sleep(9)
    assert pings(channel) == []
    await asyncio.sleep(26)
    assert len(pings(channel)) == 3
    assert "params" not in pings(channel)[0]
    assert duplex.end is None
    await end(duplex, pinger)


@virtual_time
async def test_a_connection_that_talks_is_not_pinged():
    channel, _, duplex, pinger = quiet()
    for _ in range(10):
        await asyncio.sleep(5)
        duplex.received(encode_notice("notifications/message", {}))
    assert pings(channel) == []
    await end(duplex, pinger)


@virtual_time
async def test_a_connection_with_a_call_in_flight_is_not_pinged():
    # Its own deadlines watch over it, and many servers cannot answer a ping while they work.
    channel, _, duplex, pinger = quiet()
    call = asyncio.ensure_future(duplex.call("tools/call", {}, patience=Patience(idle=None, total=None)))
    await asyncio.sleep(100)
    assert pings(channel) == []
    duplex.received(encode_result(1, {}))
    await call
    await asyncio.sleep(25)
    assert pings(channel)
    await end(duplex, pinger)


@virtual_time
async def test_lost_pings_end_the_connection(caplog):
    channel, side, duplex, pinger = quiet(losses=2, answers=False)
    with caplog.at_level(logging.WARNING, "interlock.wire"):
        await asyncio.sleep(10 + 5 + 5 + 1)
    assert len(pings(channel)) == 2
    assert [type(error) for error in side.ends] == [ConnectionLost]
    assert "2 pings" in str(side.ends[0])
    assert len(caplog.records) == 2
    assert channel.closed == 1
    await end(duplex, pinger)


@virtual_time
async def test_a_sign_of_life_after_a_lost_ping_starts_the_count_anew():
    _channel, side, duplex, pinger = quiet(losses=2, answers=False)
    for _ in range(6):
        await asyncio.sleep(15.5)  # one ping was lost
        duplex.received(encode_notice("notifications/message", {}))
    assert side.ends == []
    await end(duplex, pinger)


@virtual_time
async def test_an_error_is_an_answer_too():
    channel, side, duplex, pinger = quiet(answers=False)

    def refuse(message):
        frame = json.loads(message)
        told = {"jsonrpc": "2.0", "id": frame["id"], "error": {"code": -32601, "message": "no ping here"}}
        asyncio.get_running_loop().call_soon(duplex.received, json.dumps(told).encode())

    channel.on_send = refuse
    await asyncio.sleep(100)
    assert side.ends == []
    await end(duplex, pinger)


@virtual_time
async def test_the_end_of_the_connection_ends_the_pinging():
    channel, _, duplex, pinger = quiet()
    await asyncio.sleep(1)
    duplex.ended(ConnectionClosed("over"))
    await asyncio.sleep(1000)
    assert pings(channel) == []
    await end(duplex, pinger)


@virtual_time
async def test_a_pinger_can_be_closed():
    channel, _, duplex, pinger = quiet()
    pinger.close()
    await asyncio.sleep(1000)
    assert pings(channel) == []
    await duplex.close()


def test_the_defaults_leave_a_slow_server_room():
    keepalive = Keepalive()
    assert keepalive.interval > 0 and keepalive.timeout > 0 and keepalive.losses >= 1
    with pytest.raises(AttributeError):
        keepalive.interval = 1
