"""Cancelling what a client of ours asked for, and what it was asked."""

from __future__ import annotations

import asyncio
import json
import logging

import pytest

from support.talking import Clock, methods, reply, settled, start, talking, text, welcome
from support.wire_peer import ALL, CARRIERS, HANDSHAKE, MODERN, WAIT, client_under_test

over_all = pytest.mark.parametrize("revision", ALL)
over_handshake = pytest.mark.parametrize("revision", HANDSHAKE)
over_carriers = pytest.mark.parametrize("carrier", CARRIERS)

SAMPLING = {"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 5}
SAMPLED = {"role": "assistant", "content": {"type": "text", "text": "ho"}, "model": "small"}
CANCELLED = "notifications/cancelled"


async def give_up(call):
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


# --- calls of ours ------------------------------------------------------------------------------------------


@pytest.mark.requirement("CANC-01", "CANC-02", "CANC-14", "CANCEL-001", "CANCEL-002", "STDIO-010", "SCHEMA-008")
@over_carriers
@over_all
async def test_who_gives_up_says_so_to_the_server(carrier, revision):
    async with talking(carrier, revision) as (client, peer):
        calls = [start(client.call_tool(str(number))) for number in range(3)]
        requests = [await peer.expect("tools/call") for _ in calls]
        await give_up(calls[1])
        told = (await peer.expect(CANCELLED))["params"]
        assert told["requestId"] == requests[1]["id"]
        assert type(told["requestId"]) is type(requests[1]["id"])
        assert isinstance(told.get("reason", ""), str)
        for number in (0, 2):  # the others are not touched
            reply(peer, requests[number], text("done"))
            assert (await calls[number]).text == "done"
        await settled(client, peer)
        assert methods(peer).count(CANCELLED) == 1


@pytest.mark.requirement("CANC-09", "CANC-10", "CANCEL-007", "CANCEL-008")
@over_carriers
@over_all
async def test_what_comes_after_giving_up_is_ignored(carrier, revision):
    """Its answer, its progress, an error: they crossed the cancellation on the way."""
    async with talking(carrier, revision) as (client, peer):
        heard = []
        call = start(client.call_tool("echo", on_progress=lambda *told: heard.append(told)))
        request = await peer.expect("tools/call")
        await give_up(call)
        await peer.expect(CANCELLED)
        token = request["params"]["_meta"]["progressToken"]
        peer.notify("notifications/progress", {"progressToken": token, "progress": 1})
        reply(peer, request, text("too late"))
        await settled(client, peer)
        assert heard == []
        again = start(client.call_tool("echo"))
        reply(peer, await peer.expect("tools/call"), text("fine"))
        assert (await again).text == "fine"


@pytest.mark.requirement("CANC-02", "CANC-10", "CANCEL-002", "CANCEL-008")
@over_carriers
@over_all
async def test_what_was_answered_already_is_not_cancelled(carrier, revision):
    """The answer is there, its caller is cancelled before it could look: nothing is in progress any more."""
    async with talking(carrier, revision, on_notification=lambda *_: call.cancel()) as (client, peer):
        call = start(client.call_tool("echo"))
        request = await peer.expect("tools/call")
        answer = {"jsonrpc": "2.0", "id": request["id"], "result": {"resultType": "complete", **text("done")}}
        peer.channel.send(json.dumps(answer).encode())
        peer.notify("notifications/tools/list_changed", {"_meta": {}}, judged=False)  # read in the same turn
        await asyncio.wait([call], timeout=WAIT)
        await settled(client, peer)
        assert CANCELLED not in methods(peer)


@pytest.mark.requirement("CANC-02", "CANCEL-002", "CANC-10")
@over_carriers
@over_all
async def test_a_call_is_cancelled_once_at_most(carrier, revision):
    """Its deadline passes and its caller gives up in the same turn."""
    async with talking(carrier, revision) as (client, peer):
        clock = Clock()
        call = start(client.call_tool("echo", timeout=5))
        await peer.expect("tools/call")
        loop = asyncio.get_running_loop()
        loop.call_at(loop.time() + 5.5, call.cancel)  # behind the deadline, in the same turn
        await clock.advance(6)
        await asyncio.wait([call])
        await settled(client, peer)
        assert methods(peer).count(CANCELLED) == 1


@pytest.mark.requirement("CANC-02", "CANCEL-002")
@over_carriers
@over_all
async def test_a_finished_or_refused_call_is_never_cancelled(carrier, revision):
    async with talking(carrier, revision) as (client, peer):
        for _ in range(3):
            call = start(client.call_tool("echo"))
            reply(peer, await peer.expect("tools/call"), text("done"))
            await call
            call.cancel()
        await settled(client, peer)
        assert CANCELLED not in methods(peer)


@pytest.mark.requirement("CANC-10", "CANCEL-008")
@over_carriers
@over_all
async def test_answers_and_cancellations_may_cross_in_any_order(carrier, revision):
    async with talking(carrier, revision) as (client, peer):
        calls = [start(client.call_tool(str(number))) for number in range(60)]
        requests = [await peer.expect("tools/call") for _ in calls]
        for number, (call, request) in enumerate(zip(calls, requests, strict=True)):
            if number % 3 == 0:
                call.cancel()
                await asyncio.sleep(0)
            if number % 3 != 1:
                reply(peer, request, text(str(number)), judged=False)
            else:
                call.cancel()
        done, pending = await asyncio.wait(calls, timeout=WAIT)
        assert not pending
        assert all(call.cancelled() or call.result().text for call in done)
        assert all(calls[number].result().text == str(number) for number in range(2, 60, 3))
        await settled(client, peer)


@pytest.mark.requirement("CANC-03")
@over_carriers
@over_handshake
@pytest.mark.parametrize("how", ["cancelled", "timed out"])
async def test_initialize_is_never_cancelled(carrier, revision, how):
    """Who gives up opening closes the connection and says nothing."""
    asked = asyncio.Event()

    async def script(peer):
        await peer.receive()
        asked.set()

    options = {"revision": revision, "connect_timeout": 0.1 if how == "timed out" else 20}
    async with client_under_test(carrier, revision, script, **options) as (client, peer):
        opening = start(client.open())
        await asked.wait()
        if how == "cancelled":
            opening.cancel()
        await asyncio.wait([opening])
        assert opening.cancelled() or isinstance(opening.exception(), TimeoutError)
        async with asyncio.timeout(WAIT):
            await peer.ended_event.wait()
        assert methods(peer) == ["initialize"]


@pytest.mark.requirement("CANCEL-001", "STDIO-010")
@over_carriers
@pytest.mark.parametrize("revision", MODERN)
async def test_a_subscription_is_ended_by_giving_up_on_it(carrier, revision):
    async with talking(carrier, revision) as (client, peer):
        wanted = {"notifications": {"toolsListChanged": True}}
        call = start(client.request("subscriptions/listen", wanted))
        request = await peer.expect("subscriptions/listen")
        await give_up(call)
        assert (await peer.expect(CANCELLED))["params"]["requestId"] == request["id"]


# --- what the server takes back -----------------------------------------------------------------------------


@pytest.mark.requirement("CANC-05", "CANC-06", "CANC-07", "CANC-11", "CANCEL-010")
@over_carriers
@over_handshake
async def test_a_question_taken_back_stops_its_callback_and_is_not_answered(carrier, revision, caplog):
    caplog.set_level(logging.DEBUG, logger="interlock")
    begun, stopped = asyncio.Event(), asyncio.Event()

    async def sample(_):
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async with talking(carrier, revision, sample=sample) as (client, peer):
        peer.send(peer.frame("sampling/createMessage", SAMPLING, id="q"))
        async with asyncio.timeout(WAIT):
            await begun.wait()
        peer.notify(CANCELLED, {"requestId": "q", "reason": "changed my mind"})
        async with asyncio.timeout(WAIT):
            await stopped.wait()
        await settled(client, peer)
        assert not any(frame.get("id") == "q" for frame in peer.heard)
    assert "changed my mind" in caplog.text


@pytest.mark.requirement("CANC-07", "CANC-10")
@over_carriers
@over_handshake
async def test_a_callback_that_answers_all_the_same_is_not_heard(carrier, revision):
    begun = asyncio.Event()

    async def sample(_):
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return SAMPLED

    async with talking(carrier, revision, sample=sample) as (client, peer):
        peer.send(peer.frame("sampling/createMessage", SAMPLING, id="q"))
        async with asyncio.timeout(WAIT):
            await begun.wait()
        peer.notify(CANCELLED, {"requestId": "q"})
        await settled(client, peer)
        await settled(client, peer)
        assert not any(frame.get("id") == "q" for frame in peer.heard)


ODD = [
    {"requestId": "never asked"},
    {"requestId": None},
    {"requestId": 1.5},
    {"requestId": {}},
    {"requestId": True},
    {"reason": "no id"},
    {"requestId": 1, "reason": 5},
    {},
    None,
    [],
    "x",
]


@pytest.mark.requirement("CANC-08", "CANC-13", "CANCEL-009")
@over_carriers
@over_all
async def test_cancellations_of_nothing_are_ignored(carrier, revision):
    """Unknown, finished, malformed: no answer, no error, and calls of ours go on."""
    async with talking(carrier, revision) as (client, peer):
        call = start(client.call_tool("echo"))
        request = await peer.expect("tools/call")
        for params in ODD:
            peer.send({"jsonrpc": "2.0", "method": CANCELLED, "params": params}, judged=False)
        await settled(client, peer)
        assert peer.heard == []
        reply(peer, request, text("fine"))
        assert (await call).text == "fine"


@pytest.mark.requirement("CANC-01", "CANC-13")
@over_carriers
@over_handshake
async def test_the_server_cannot_cancel_what_we_asked(carrier, revision):
    """A cancellation names a request of its own sender; our ids are another namespace."""
    async with talking(carrier, revision) as (client, peer):
        call = start(client.call_tool("echo"))
        request = await peer.expect("tools/call")
        peer.notify(CANCELLED, {"requestId": request["id"], "reason": "I would rather not"})
        await settled(client, peer)
        assert not call.done()
        reply(peer, request, text("fine"))
        assert (await call).text == "fine"


@pytest.mark.requirement("CANC-13")
@over_carriers
@over_handshake
async def test_a_cancellation_after_the_answer_is_ignored(carrier, revision):
    async with talking(carrier, revision, sample=lambda _: SAMPLED) as (client, peer):
        assert await peer.result("sampling/createMessage", SAMPLING, id="q") == SAMPLED
        peer.notify(CANCELLED, {"requestId": "q"})
        await settled(client, peer)
        assert peer.heard == []
        assert await peer.result("sampling/createMessage", SAMPLING, id="q2") == SAMPLED


@over_carriers
@over_handshake
async def test_closing_stops_callbacks_that_still_run(carrier, revision):
    stopped = asyncio.Event()
    begun = asyncio.Event()

    async def sample(_):
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async def script(peer):
        reply(peer, await peer.receive(), welcome(revision))
        await peer.receive()
        peer.send(peer.frame("ping", id="p"))
        await peer.response("p")
        peer.send(peer.frame("sampling/createMessage", SAMPLING, id="q"))

    async with client_under_test(carrier, revision, script, revision=revision, sample=sample) as (client, _):
        await client.open()
        async with asyncio.timeout(WAIT):
            await begun.wait()
        await client.close()
        assert stopped.is_set()
