"""Deadlines of a client of ours: idle, total, connect. The loop's clock is put forward, nobody waits."""

from __future__ import annotations

import asyncio

import pytest

from interlock import Client, Patience
from interlock.transport.memory import memory_pair
from interlock.wire.errors import CallTimeout, HandshakeFailed, LocalError, Refused
from support.talking import Clock, methods, refuse, reply, settled, start, talking, text, welcome
from support.wire_peer import ALL, CARRIERS, HANDSHAKE, MODERN, WAIT, client_under_test

over_all = pytest.mark.parametrize("revision", ALL)
over_handshake = pytest.mark.parametrize("revision", HANDSHAKE)
over_carriers = pytest.mark.parametrize("carrier", CARRIERS)

CANCELLED = "notifications/cancelled"
VERBS = (["call_tool", "x"], ["list_tools"], ["read_resource", "note://one"], ["get_prompt", "x"])


async def timed_out(call, which):
    with pytest.raises(CallTimeout) as told:
        async with asyncio.timeout(WAIT):
            await call
    assert told.value.which == which
    return told.value


def progress(peer, request, value):
    token = request["params"]["_meta"]["progressToken"]
    peer.notify("notifications/progress", {"progressToken": token, "progress": value})


@pytest.mark.requirement("LIFE-24", "LIFE-25", "LIFE-26", "LIFE-29", "CANC-02", "CANC-14")
@pytest.mark.requirement("CANCEL-013", "CANCEL-014", "CANCEL-015", "ERR-009")
@over_carriers
@over_all
async def test_a_silent_server_runs_into_the_deadline_of_the_call(carrier, revision):
    async with talking(carrier, revision) as (client, peer):
        clock = Clock()
        call = start(client.call_tool("slow", timeout=5))
        patient = start(client.call_tool("patient", timeout=15))
        request = await peer.expect("tools/call")
        other = await peer.expect("tools/call")
        await clock.advance(4)
        assert not call.done()
        await clock.advance(2)
        error = await timed_out(call, "idle")
        assert (error.method, error.seconds) == ("tools/call", 5)
        assert isinstance(error, LocalError)
        assert isinstance(error, TimeoutError)
        assert not isinstance(error, Refused)
        told = await peer.expect(CANCELLED)
        assert told["params"]["requestId"] == request["id"]
        assert not patient.done()  # a deadline is the call's own
        reply(peer, other, text("in time"))
        assert (await patient).text == "in time"
        await settled(client, peer)
        assert methods(peer).count(CANCELLED) == 1


@pytest.mark.requirement("LIFE-24", "CANCEL-013")
@over_all
async def test_there_is_a_deadline_when_nobody_gives_one(revision):
    async with talking("memory", revision) as (client, peer):
        clock = Clock()
        call = start(client.call_tool("slow"))
        await peer.expect("tools/call")
        await clock.advance(70)
        await timed_out(call, "idle")


@pytest.mark.requirement("LIFE-26", "CANCEL-015")
@over_all
@pytest.mark.parametrize("timeout", [5, Patience(idle=5), Patience(idle=None, total=5)], ids=repr)
async def test_the_deadline_of_a_client_holds_for_calls_without_their_own(revision, timeout):
    which = "total" if isinstance(timeout, Patience) and timeout.idle is None else "idle"
    async with talking("memory", revision, timeout=timeout) as (client, peer):
        clock = Clock()
        for verb, *arguments in (
            ["call_tool", "x"],
            ["list_tools"],
            ["read_resource", "note://one"],
            ["get_prompt", "x"],
        ):
            call = start(getattr(client, verb)(*arguments))
            await peer.receive()
            await clock.advance(6)
            await timed_out(call, which)
            await peer.expect(CANCELLED)


@pytest.mark.requirement("LIFE-27", "CANCEL-016")
@over_carriers
@over_all
async def test_progress_keeps_a_call_alive(carrier, revision):
    heard = asyncio.Queue()
    async with talking(carrier, revision) as (client, peer):
        clock = Clock()
        call = start(client.call_tool("slow", timeout=5, on_progress=lambda *told: heard.put_nowait(told)))
        request = await peer.expect("tools/call")
        for number in range(4):  # twelve seconds altogether, never five without a sign
            await clock.advance(3)
            progress(peer, request, number)
            async with asyncio.timeout(WAIT):
                await heard.get()
        reply(peer, request, text("at last"))
        assert (await call).text == "at last"
        await settled(client, peer)
        assert CANCELLED not in methods(peer)


@pytest.mark.requirement("LIFE-28", "CANCEL-017")
@over_carriers
@over_all
async def test_progress_without_end_runs_into_the_total_deadline(carrier, revision):
    heard = asyncio.Queue()
    async with talking(carrier, revision) as (client, peer):
        clock = Clock()
        patience = Patience(idle=5, total=8)
        call = start(client.call_tool("slow", timeout=patience, on_progress=lambda *told: heard.put_nowait(told)))
        request = await peer.expect("tools/call")
        for number in range(2):
            await clock.advance(3)
            progress(peer, request, number)
            async with asyncio.timeout(WAIT):
                await heard.get()
            assert not call.done()
        await clock.advance(3)
        error = await timed_out(call, "total")
        assert error.seconds == 8
        assert (await peer.expect(CANCELLED))["params"]["requestId"] == request["id"]


@pytest.mark.requirement("LIFE-24")
@over_carriers
@over_handshake
async def test_a_user_who_thinks_is_no_silence_of_the_server(carrier, revision):
    async with talking(carrier, revision, roots=thinks(user := asyncio.Event(), asked := asyncio.Event())) as both:
        client, peer = both
        clock = Clock()
        call = start(client.call_tool("asks", timeout=5))
        request = await peer.expect("tools/call")
        peer.send(peer.frame("roots/list", id="q"))
        await asked.wait()
        for _ in range(3):
            await clock.advance(4)
        user.set()
        await peer.response("q")
        await clock.advance(4)  # behind the answer the server has all of its time again
        reply(peer, request, text("at last"))
        assert (await call).text == "at last"
        assert CANCELLED not in methods(peer)


@pytest.mark.requirement("LIFE-24", "LIFE-28")
@pytest.mark.parametrize("which", ["idle", "total"])
@over_handshake
async def test_a_question_ends_neither_deadline_for_good(revision, which):
    async with talking("memory", revision, roots=thinks(user := asyncio.Event(), asked := asyncio.Event())) as both:
        client, peer = both
        clock = Clock()
        call = start(client.call_tool("asks", timeout=Patience(idle=5, total=20)))
        await peer.expect("tools/call")
        peer.send(peer.frame("roots/list", id="q"))
        await asked.wait()
        if which == "idle":
            user.set()
            await peer.response("q")
            await clock.advance(6)
        for _ in range(6 if which == "total" else 0):
            await clock.advance(4)
        await timed_out(call, which)


def thinks(user, asked):
    async def roots():
        asked.set()
        await user.wait()
        return []

    return roots


@pytest.mark.requirement("LIFE-28", "CANCEL-017")
@over_all
async def test_a_listener_that_hangs_does_not_hold_the_total_deadline(revision):
    begun = asyncio.Event()

    async def listen(*_):
        begun.set()
        await asyncio.Event().wait()

    async with talking("memory", revision) as (client, peer):
        clock = Clock()
        call = start(client.call_tool("slow", timeout=Patience(idle=5, total=8), on_progress=listen))
        request = await peer.expect("tools/call")
        progress(peer, request, 1)
        await begun.wait()
        await clock.advance(9)
        done, _ = await asyncio.wait([call], timeout=20)
        call.cancel()
        assert done
        assert isinstance(call.exception(), CallTimeout)


@pytest.mark.requirement("CANC-09", "CANCEL-007", "LIFE-25")
@over_carriers
@over_all
async def test_an_answer_after_the_deadline_is_ignored(carrier, revision):
    async with talking(carrier, revision) as (client, peer):
        clock = Clock()
        call = start(client.call_tool("slow", timeout=5))
        request = await peer.expect("tools/call")
        await clock.advance(6)
        await timed_out(call, "idle")
        reply(peer, request, text("too late"))
        again = start(client.call_tool("echo", timeout=5))
        reply(peer, await peer.expect("tools/call"), text("fine"))
        assert (await again).text == "fine"


@pytest.mark.requirement("LIFE-26", "CANCEL-015")
@over_all
async def test_without_deadlines_a_call_waits(revision):
    async with talking("memory", revision) as (client, peer):
        clock = Clock()
        call = start(client.call_tool("slow", timeout=Patience(idle=None, total=None)))
        request = await peer.expect("tools/call")
        await clock.advance(80)
        assert not call.done()
        reply(peer, request, text("fine"))
        assert (await call).text == "fine"


@pytest.mark.requirement("LIFE-24", "LIFE-26")
@over_all
async def test_a_ping_has_a_deadline_of_its_own(revision):
    async with talking("memory", revision) as (client, peer):
        clock = Clock()
        call = start(client.ping(timeout=5))
        await peer.receive()
        await clock.advance(6)
        await timed_out(call, "total")


# --- connecting ---------------------------------------------------------------------------------------------


@pytest.mark.requirement("LIFE-24", "LIFE-29", "CANC-03")
@over_carriers
@over_handshake
async def test_a_server_that_never_answers_initialize_is_left(carrier, revision):
    async def script(peer):
        await peer.receive()

    options = {"revision": revision, "connect_timeout": 0.1}
    async with client_under_test(carrier, revision, script, **options) as (client, peer):
        with pytest.raises(CallTimeout) as told:
            await client.open()
        assert (told.value.which, told.value.seconds) == ("connect", 0.1)
        async with asyncio.timeout(WAIT):
            await peer.ended_event.wait()
        assert methods(peer) == ["initialize"]


@pytest.mark.requirement("LIFE-24", "CANCEL-013")
@over_carriers
async def test_a_server_that_answers_nothing_at_all_is_left(carrier):
    """Silence to the probe, then to `initialize`."""

    async def script(peer):
        await peer.receive()

    options = {"connect_timeout": 1, "probe_timeout": 0.1, "check": False}
    async with client_under_test(carrier, MODERN[0], script, **options) as (client, peer):
        with pytest.raises(CallTimeout):
            await client.open()
        async with asyncio.timeout(WAIT):
            await peer.ended_event.wait()
        assert methods(peer) == ["server/discover", "initialize"]
        assert len(peer.all) == 1


@pytest.mark.requirement("LIFE-24")
async def test_a_carrier_that_never_connects_is_given_up():
    """The connect deadline holds for all of the opening, not only for the messages of it."""

    class Stuck:
        def __init__(self):
            self._near, _ = memory_pair()
            self.closed = False

        def __getattr__(self, name):
            return getattr(self._near, name)

        async def open(self, receiver):
            await asyncio.Event().wait()

        async def close(self):
            self.closed = True

    made = []
    client = Client(lambda: made.append(Stuck()) or made[-1], connect_timeout=0.1, probe_timeout=0.1)
    opening = start(client.open())
    done, _ = await asyncio.wait([opening], timeout=20)
    opening.cancel()
    await asyncio.gather(opening, return_exceptions=True)
    await client.close()
    assert done
    assert isinstance(opening.exception(), CallTimeout)
    assert made[0].closed  # what was half open holds nothing any more


@pytest.mark.requirement("LIFE-29")
@over_carriers
@over_handshake
async def test_after_a_failed_opening_it_can_be_tried_again(carrier, revision):
    async def script(peer):
        hello = await peer.receive()
        if len(peers.all) == 1:
            refuse(peer, hello, -32603, "not now")
        else:
            reply(peer, hello, welcome(revision))
            await peer.receive()

    async with client_under_test(carrier, revision, script, revision=revision) as (client, peers):
        with pytest.raises(HandshakeFailed, match="not now"):
            await client.open()
        await client.open()
        assert client.revision == revision
        assert len(peers.all) == 2
