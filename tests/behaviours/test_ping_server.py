"""A server of ours and ping: answered at any moment, asked only where keepalive was wanted. Handshake PING."""

import contextlib
import logging

import pytest

from interlock import Keepalive
from interlock.transport.jsonrpc.serve import serve_channel
from interlock.transport.memory import memory_pair
from interlock.wire.limits import Limits
from support.wire_peer import CARRIERS, HANDSHAKE, MODERN, WirePeer, fresh, server_under_test

QUICK = Keepalive(interval=0.001, timeout=30.0)  # tests wait for pings, never for the lack of them
DEADLY = Keepalive(interval=0.001, timeout=0.001, losses=2)


async def ping(peer, **options):
    answer = await peer.request("ping", **options)
    assert answer == {"jsonrpc": "2.0", "id": answer["id"], "result": {}}


@pytest.mark.requirement("PING-01", "PING-03")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_ping_is_answered_with_an_empty_result(carrier, revision):
    async with server_under_test(carrier, revision) as peer:
        await ping(peer)
        await ping(peer, id="text")
        await ping(peer, params={})
        await ping(peer, params={"_meta": {}})
        await ping(peer, params={"_meta": {"progressToken": 1, "com.example/x": {}}})
        await ping(peer, params={"unknown": [1]}, judged=False)
        assert peer.heard == []


@pytest.mark.requirement("PING-01", "PING-02")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_ping_before_initialize(carrier, revision):
    async with server_under_test(carrier, revision, opened=False) as peer:
        await ping(peer)
        await peer.open(initialized=False)
        await ping(peer)
        peer.notify("notifications/initialized")
        await ping(peer)


@pytest.mark.requirement("PING-02")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_ping_while_initialize_is_under_way(carrier, revision):
    """Both in one write: the ping is read before the answer to initialize was given."""
    async with server_under_test(carrier, revision, opened=False) as peer:
        hello = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "r", "version": "1"}}
        peer.send(peer.frame("initialize", hello, id="hello"))
        peer.send(peer.frame("ping", id="ping"))
        answers = {}
        for _ in range(2):
            frame = await peer.receive()
            answers[frame["id"]] = frame["result"]
        assert answers["ping"] == {}
        assert answers["hello"]["protocolVersion"] == revision


@pytest.mark.requirement("PING-01", "PING-02")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_ping_while_handlers_work(carrier, revision):
    """Promptly: neither a coroutine that waits nor a thread that blocks stands in its way."""
    async with server_under_test(carrier, revision, server="utilities") as peer:
        calls = set()
        for token, tool in enumerate(["blocked", "deaf"]):
            call = peer.frame("tools/call", {"name": tool, "arguments": {}}, meta={"progressToken": token})
            peer.send(call)
            await peer.expect("notifications/progress")
            calls.add(call["id"])
        await ping(peer)
        peer.send(peer.frame("tools/call", {"name": "release", "arguments": {}}))
        while calls:  # in whichever order they end
            calls.discard((await peer.receive()).get("id"))


@pytest.mark.requirement("PING-01")
@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_ping_at_the_limit_of_requests(revision):
    """It needs no room: a server too busy for a call still says that it is alive."""
    async with server_under_test("memory", revision, server="utilities", limits=Limits(in_flight=1)) as peer:
        busy = peer.frame("tools/call", {"name": "forever", "arguments": {}}, meta={"progressToken": 1})
        peer.send(busy)
        await peer.expect("notifications/progress")
        refused = await peer.error("tools/call", {"name": "echo", "arguments": {}})
        assert refused["code"] == -32603
        await ping(peer)
        peer.notify("notifications/cancelled", {"requestId": busy["id"]})
        await ping(peer)


@pytest.mark.requirement("PING-01")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_thousand_pings(carrier, revision):
    async with server_under_test(carrier, revision) as peer:
        for number in range(1000):
            peer.send(peer.frame("ping", id=10_000 + number))
        answers = [await peer.receive() for _ in range(1000)]
        assert [frame["id"] for frame in answers] == [10_000 + number for number in range(1000)]
        assert all(frame["result"] == {} for frame in answers)


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", MODERN)
async def test_the_stateless_revision_has_no_ping(carrier, revision):
    async with server_under_test(carrier, revision) as peer:
        assert (await peer.error("ping", {}, judged=False))["code"] == -32601


# --- pings of ours ---


@contextlib.asynccontextmanager
async def pinging_server(revision, keepalive, opened=True):
    """`serve_channel` over memory with a keepalive; the peer answers nothing by itself."""
    near, far = memory_pair()
    duplex = serve_channel(fresh("support.servers.utilities").server, far, keepalive=keepalive)
    await duplex.open()
    peer = WirePeer(near, revision, "client")
    await near.open(peer)
    try:
        if opened:
            await peer.open()
        yield peer
        peer.transcript.check()
    finally:
        await near.close()
        await duplex.close()


def pong(peer, frame):
    peer.send({"jsonrpc": "2.0", "id": frame["id"], "result": {}})


@pytest.mark.requirement("PING-03", "PING-05", "PING-06", "PING-07")
@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_server_with_keepalive_pings_a_quiet_client_again_and_again(revision):
    async with pinging_server(revision, QUICK) as peer:
        ids = []
        for _ in range(5):
            frame = await peer.expect("ping")
            assert set(frame.get("params", {})) <= {"_meta"}
            ids.append(frame["id"])
            pong(peer, frame)
        assert len(set(ids)) == 5
        assert peer.end is None


@pytest.mark.requirement("PING-08")
@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_no_ping_while_a_request_of_the_client_runs(revision):
    """The next ping may only come once the run is over, however short the interval."""
    async with pinging_server(revision, QUICK) as peer:
        running = peer.frame("tools/call", {"name": "flood_in_thread", "arguments": {"count": 500}}, id="run")
        pong(peer, await peer.expect("ping"))
        peer.send(running)
        seen = []
        while not seen or seen[-1].get("id") != "run" or "method" in seen[-1]:
            seen.append(await peer.receive())
        # One may have been on its way when the request was read.
        assert sum(frame.get("method") == "ping" for frame in seen) <= 1
        for frame in seen:
            if frame.get("method") == "ping":
                pong(peer, frame)
        pong(peer, await peer.expect("ping"))


@pytest.mark.requirement("PING-08")
@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_one_ping_at_a_time(revision):
    """A client that is slow to answer is not showered: no second ping while the first is open."""
    async with pinging_server(revision, QUICK) as peer:
        first = await peer.expect("ping")
        for _ in range(50):
            await peer.result("resources/list", {})
        assert [frame for frame in peer.heard if frame.get("method") == "ping"] == []
        pong(peer, first)
        pong(peer, await peer.expect("ping"))


@pytest.mark.requirement("PING-04", "PING-09", "PING-10", "PING-11")
@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_client_that_answers_no_ping_is_given_up(revision, caplog):
    caplog.set_level(logging.WARNING, logger="interlock")
    async with pinging_server(revision, DEADLY) as peer:
        await peer.expect("ping")
        await peer.ended_event.wait()
    assert any("ping" in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize("revision", MODERN)
async def test_a_stateless_client_is_never_pinged(revision):
    """2026-07-28 has no requests from the server, keepalive or not."""
    async with pinging_server(revision, QUICK) as peer:
        for _ in range(50):
            await peer.result("tools/call", {"name": "flood_in_thread", "arguments": {"count": 5}})
        assert peer.heard == []
