"""Pings of a client of ours on a quiet connection. The loop's clock is put forward, nobody waits."""

from __future__ import annotations

import asyncio

import pytest

from interlock import Client, Keepalive, Server
from interlock.wire.errors import InterlockError
from support.talking import Clock, greet, methods, refuse, reply, settled, start, talking, text, turns
from support.wire_peer import CARRIERS, HANDSHAKE, MODERN, WAIT, client_under_test

over_handshake = pytest.mark.parametrize("revision", HANDSHAKE)
over_carriers = pytest.mark.parametrize("carrier", CARRIERS)

SLOW = Keepalive(interval=10, timeout=3, losses=2)  # for tests that put the clock forward
QUICK = Keepalive(interval=0.02, timeout=30, losses=2)  # pings at once, and is lost only by the clock


def pings(peer):
    return methods(peer).count("ping")


@pytest.mark.requirement("PING-03", "PING-05")
@over_carriers
@over_handshake
async def test_a_quiet_connection_is_pinged_again_and_again(carrier, revision):
    async with talking(carrier, revision, keepalive=QUICK) as (_, peer):
        for _ in range(4):
            ping = await peer.expect("ping")
            assert ping.get("params", {}).keys() <= {"_meta"}
            reply(peer, ping, {})


@pytest.mark.requirement("PING-06", "PING-08")
@over_carriers
@over_handshake
async def test_the_interval_is_kept(carrier, revision):
    async with talking(carrier, revision, keepalive=SLOW) as (_, peer):
        clock = Clock()
        await clock.advance(8)
        await turns(50)
        assert pings(peer) == 0
        await clock.advance(3)
        reply(peer, await peer.expect("ping"), {})


@pytest.mark.requirement("PING-08")
@over_carriers
@over_handshake
async def test_a_busy_connection_is_not_pinged(carrier, revision):
    """A call has deadlines of its own, and what the server says shows that it lives."""
    heard = asyncio.Queue()
    listening = {"on_notification": lambda *told: heard.put_nowait(told)}
    async with talking(carrier, revision, keepalive=SLOW, **listening) as (client, peer):
        clock = Clock()
        call = start(client.call_tool("slow"))
        request = await peer.expect("tools/call")
        for _ in range(3):
            await clock.advance(11)
            await turns(50)
        assert pings(peer) == 0
        reply(peer, request, text("done"))
        await call
        for _ in range(3):
            await clock.advance(8)
            peer.notify("notifications/tools/list_changed")
            async with asyncio.timeout(WAIT):
                await heard.get()
        assert pings(peer) == 0


@pytest.mark.requirement("PING-04", "PING-07", "PING-09", "PING-10", "PING-11")
@over_carriers
@over_handshake
async def test_lost_pings_end_the_connection_and_the_next_call_opens_another(carrier, revision, caplog):
    async def script(peer):
        await greet(peer)
        if len(peers.all) > 1:
            reply(peer, await peer.expect("tools/call"), text("from the new one"))
        else:
            greeted.set()

    greeted = asyncio.Event()
    options = {"revision": revision, "keepalive": QUICK, "check": False}
    async with client_under_test(carrier, revision, script, **options) as (client, peers):
        await client.open()
        await greeted.wait()
        clock = Clock()
        first = peers.all[0]
        for _ in range(QUICK.losses):
            await first.expect("ping")
            await clock.advance(QUICK.timeout + 1)
        async with asyncio.timeout(WAIT):
            await first.ended_event.wait()
        assert (await client.call_tool("echo")).text == "from the new one"
        assert len(peers.all) == 2
    assert "ping" in caplog.text


@pytest.mark.requirement("PING-07", "PING-10")
@over_carriers
@over_handshake
async def test_one_lost_ping_is_forgiven(carrier, revision):
    async with talking(carrier, revision, keepalive=QUICK, check=False) as (_, peer):
        clock = Clock()
        await peer.expect("ping")
        await clock.advance(QUICK.timeout + 1)  # no answer
        for _ in range(3):
            reply(peer, await peer.expect("ping"), {})
        assert not peer.ended_event.is_set()


@pytest.mark.requirement("PING-09")
@over_carriers
@over_handshake
async def test_a_server_that_refuses_pings_is_alive(carrier, revision):
    async with talking(carrier, revision, keepalive=QUICK) as (_, peer):
        for _ in range(4):
            refuse(peer, await peer.expect("ping"), -32601)
        assert not peer.ended_event.is_set()


@pytest.mark.requirement("PING-06", "PING-08")
@over_carriers
@over_handshake
async def test_keepalive_can_be_off(carrier, revision):
    async with talking(carrier, revision, keepalive=None) as (client, peer):
        clock = Clock()
        for _ in range(8):
            await clock.advance(10)
        assert pings(peer) == 0
        await settled(client, peer)
        assert pings(peer) == 1  # the one that was asked for


@pytest.mark.requirement("PING-05", "PING-07")
def test_the_defaults_are_gentle():
    """Once a minute at most, with time to answer: excessive pinging is avoided."""
    assert Keepalive().interval >= 30
    assert Keepalive().timeout >= 5


@over_carriers
@pytest.mark.parametrize("revision", MODERN)
async def test_there_are_no_pings_where_the_revision_has_none(carrier, revision):
    async with talking(carrier, revision, keepalive=Keepalive(interval=1, timeout=1)) as (_, peer):
        clock = Clock()
        for _ in range(5):
            await clock.advance(2)
        assert methods(peer) == ["server/discover"]


async def test_there_are_no_pings_within_one_process():
    server = Server("here", version="1")

    @server.tool
    async def echo(text: str) -> str:
        return text

    async with Client(server, revision=HANDSHAKE[-1], keepalive=Keepalive(interval=1, timeout=1)) as client:
        clock = Clock()
        for _ in range(5):
            await clock.advance(2)
        assert (await client.call_tool("echo", {"text": "hi"})).text == "hi"


@over_carriers
@over_handshake
async def test_no_pinger_outlives_its_connection(carrier, revision):
    """Closing while a ping is on its way leaves no task, which the test's own bounds check."""
    async with talking(carrier, revision, keepalive=QUICK) as (client, peer):
        await peer.expect("ping")
        await client.close()
        with pytest.raises(InterlockError):
            await client.ping()
