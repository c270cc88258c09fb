"""Progress as a client of ours hears it: by token, while the call runs, bounded, and never in the way."""

from __future__ import annotations

import asyncio

import pytest

from support.talking import methods, reply, settled, start, talking, text
from support.wire_peer import ALL, CARRIERS, HANDSHAKE

over_all = pytest.mark.parametrize("revision", ALL)
over_handshake = pytest.mark.parametrize("revision", HANDSHAKE)
over_carriers = pytest.mark.parametrize("carrier", CARRIERS)

PROGRESS = "notifications/progress"


def token_of(request):
    return request["params"]["_meta"]["progressToken"]


class Heard(list):
    """A listener that remembers."""

    def __call__(self, *told):
        self.append(told)


async def called(client, peer, heard, **options):
    call = start(client.call_tool("work", on_progress=heard, **options))
    return call, await peer.expect("tools/call")


@pytest.mark.requirement("PROG-03", "PROG-05", "PROG-06", "PROG-08", "PROG-14", "PROGRESS-004")
@over_carriers
@over_all
async def test_progress_is_told_as_it_was_said(carrier, revision):
    heard = Heard()
    async with talking(carrier, revision) as (client, peer):
        call, request = await called(client, peer, heard)
        steps = [{"progress": 0.2, "total": 1.0}, {"progress": 0.5}, {"progress": 3, "total": 4, "extra": [1]}]
        if revision > "2024-11-05":
            steps.append({"progress": 4, "total": 4, "message": "almost"})
        for step in steps:
            peer.notify(PROGRESS, {"progressToken": token_of(request), **step})
        reply(peer, request, text("done"))
        assert (await call).text == "done"
        assert heard == [(step["progress"], step.get("total"), step.get("message")) for step in steps]


@pytest.mark.requirement("PROG-07", "PROG-08", "PROG-09", "PROGRESS-002")
@over_carriers
@over_all
async def test_each_call_hears_its_own(carrier, revision):
    async with talking(carrier, revision) as (client, peer):
        heard = [Heard() for _ in range(3)]
        opened = [await called(client, peer, each) for each in heard]
        for number in (2, 0, 1, 2):
            token = token_of(opened[number][1])
            peer.notify(PROGRESS, {"progressToken": token, "progress": len(heard[number]) + number * 10.0})
        for call, request in opened:
            reply(peer, request, text("done"))
            await call
        assert [len(each) for each in heard] == [1, 1, 2]
        assert all(10 * n <= told[0] < 10 * n + 10 for n, each in enumerate(heard) for told in each)


@pytest.mark.requirement("PROG-07", "PROG-08", "PROG-09", "PROGRESS-009")
@over_carriers
@over_all
async def test_progress_for_a_token_nobody_gave_is_ignored(carrier, revision):
    heard = Heard()
    async with talking(carrier, revision) as (client, peer):
        call, request = await called(client, peer, heard)
        token = token_of(request)
        for odd in (str(token), token + 1000, "", -1, None, [], {}, True, 1.5):
            peer.notify(PROGRESS, {"progressToken": odd, "progress": 1}, judged=False)
        peer.notify(PROGRESS, {"progress": 1}, judged=False)  # no token at all (handshake.md §16.15)
        reply(peer, request, text("done"))
        await call
        assert heard == []
        await settled(client, peer)
        assert peer.heard == []


@pytest.mark.requirement("PROG-14")
@over_carriers
@over_all
async def test_progress_that_is_no_number_is_ignored(carrier, revision):
    heard = Heard()
    async with talking(carrier, revision) as (client, peer):
        call, request = await called(client, peer, heard)
        for odd in ("much", None, [1], {}, True):
            peer.notify(PROGRESS, {"progressToken": token_of(request), "progress": odd}, judged=False)
        peer.notify(PROGRESS, {"progressToken": token_of(request)}, judged=False)
        peer.notify(PROGRESS, {"progressToken": token_of(request), "progress": 1})
        reply(peer, request, text("done"))
        await call
        assert heard == [(1, None, None)]


@pytest.mark.requirement("PROG-09", "PROG-11")
@over_carriers
@over_all
async def test_after_the_answer_nothing_is_heard(carrier, revision):
    heard = Heard()
    async with talking(carrier, revision) as (client, peer):
        call, request = await called(client, peer, heard)
        reply(peer, request, text("done"))
        await call
        peer.notify(PROGRESS, {"progressToken": token_of(request), "progress": 1})
        await settled(client, peer)
        assert heard == []


@pytest.mark.requirement("PROG-03")
@over_carriers
@over_all
async def test_progress_nobody_listens_to_is_no_trouble(carrier, revision):
    async with talking(carrier, revision) as (client, peer):
        call = start(client.call_tool("work"))
        request = await peer.expect("tools/call")
        for number in range(5):
            peer.notify(PROGRESS, {"progressToken": token_of(request), "progress": number})
        reply(peer, request, text("done"))
        assert (await call).text == "done"


@pytest.mark.requirement("PROG-10", "PROGRESS-009")
@over_carriers
@over_all
async def test_a_flood_is_bounded_and_the_answer_gets_through(carrier, revision):
    """A listener that is slower than the server hears the newest; nothing piles up behind it."""
    first, go = asyncio.Event(), asyncio.Event()
    heard = []

    async def listen(progress, total, message):
        heard.append(progress)
        first.set()
        await go.wait()

    async with talking(carrier, revision) as (client, peer):
        call, request = await called(client, peer, listen)
        for number in range(5000):
            peer.notify(PROGRESS, {"progressToken": token_of(request), "progress": number}, judged=False)
        await first.wait()
        await settled(client, peer)
        go.set()
        reply(peer, request, text("done"))
        assert (await call).text == "done"
        assert len(heard) < 500
        assert heard == sorted(heard)
        assert heard[-1] == 4999


@over_carriers
@over_all
async def test_a_listener_that_fails_does_not_fail_the_call(carrier, revision):
    def listen(*_):
        raise RuntimeError("a bug in the listener")

    async with talking(carrier, revision) as (client, peer):
        call, request = await called(client, peer, listen)
        peer.notify(PROGRESS, {"progressToken": token_of(request), "progress": 1})
        reply(peer, request, text("done"))
        assert (await call).text == "done"


@over_carriers
@over_all
async def test_listeners_are_called_in_order_and_before_the_call_returns(carrier, revision):
    order = []

    async def listen(progress, total, message):
        await asyncio.sleep(0)
        order.append(progress)

    async with talking(carrier, revision) as (client, peer):
        call, request = await called(client, peer, listen)
        for number in range(10):
            peer.notify(PROGRESS, {"progressToken": token_of(request), "progress": number})
        reply(peer, request, text("done"))
        await call
        assert order == list(range(10))


@pytest.mark.requirement("PROG-01", "PROG-07", "PROG-11")
@over_carriers
@over_handshake
async def test_it_reports_no_progress_on_what_it_was_not_asked_to(carrier, revision):
    """With or without a token: our callbacks have no way to report, so nothing is ever sent."""

    async with talking(carrier, revision, roots=[]) as (client, peer):
        assert await peer.result("roots/list", meta={"progressToken": "t"}) == {"roots": []}
        await settled(client, peer)
        assert PROGRESS not in methods(peer)
