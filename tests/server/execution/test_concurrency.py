"""server/execution/concurrency.py: time and number of calls, and what is told to those over them."""

import asyncio
import threading
import time

import pytest

from interlock.server.context import Context
from interlock.server.execution.concurrency import Concurrency, Gate, bounded, check_seconds, gate_of
from interlock.server.execution.invoke import caller_of
from interlock.server.execution.thread_pool import Threads
from interlock.server.schema.signature import read_signature
from interlock.wire.errors import LocalError, ToolError
from support.doubles import Spoken, turns
from support.virtual_time import virtual_time


def spoken():
    return Spoken("tools/call", {})


def timed(function, seconds):
    return bounded(lambda arguments, exchange: function(exchange), "slow", timeout=seconds, gates=[])


# --- time ---


@virtual_time
async def test_a_call_over_its_time_is_cancelled_and_told():
    ended = []

    async def slow(exchange):
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append("finally")

    with pytest.raises(ToolError) as told:
        await timed(slow, 30)({}, spoken())
    assert str(told.value) == "The tool slow was stopped: it took longer than 30 s"
    assert ended == ["finally"]
    assert asyncio.current_task().cancelling() == 0


@virtual_time
async def test_what_is_returned_in_spite_of_the_cancellation_is_dropped():
    async def stubborn(exchange):
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            return "all the same"

    with pytest.raises(ToolError, match="it took longer than 30 s"):
        await timed(stubborn, 30)({}, spoken())


@virtual_time
async def test_a_call_within_its_time_is_as_ever():
    async def quick(exchange):
        await asyncio.sleep(29)
        return exchange.method

    assert await timed(quick, 30)({}, spoken()) == "tools/call"


@virtual_time
async def test_a_timeout_of_the_authors_own_is_not_taken_for_ours():
    async def fails(exchange):
        raise TimeoutError("the database")

    with pytest.raises(TimeoutError, match="database"):
        await timed(fails, 30)({}, spoken())


@virtual_time
async def test_a_cancellation_from_outside_stays_one():
    async def slow(exchange):
        await asyncio.sleep(3600)

    task = asyncio.ensure_future(timed(slow, 30)({}, spoken()))
    await turns()
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


async def test_the_deadline_is_on_the_exchange():
    found = []

    async def looks(exchange):
        found.append(exchange.deadline)

    before = time.monotonic()
    exchange = spoken()
    assert exchange.deadline is None
    await timed(looks, 30)({}, exchange)
    assert before + 30 <= found[0] <= time.monotonic() + 30


@virtual_time
async def test_the_time_stands_still_while_it_is_paused():
    async def asks(exchange):
        timer = exchange.timer
        await asyncio.sleep(20)
        timer.pause()
        timer.pause()  # two questions at once
        await asyncio.sleep(500)
        timer.resume()
        await asyncio.sleep(500)
        timer.resume()
        await asyncio.sleep(9)
        return "in time"

    assert await timed(asks, 30)({}, spoken()) == "in time"


@virtual_time
async def test_what_was_left_before_a_question_is_left_behind_it():
    async def asks(exchange):
        await asyncio.sleep(20)
        exchange.timer.pause()
        await asyncio.sleep(500)
        exchange.timer.resume()
        await asyncio.sleep(11)

    with pytest.raises(ToolError):
        await timed(asks, 30)({}, spoken())


@virtual_time
async def test_a_question_of_a_run_that_is_over_changes_nothing():
    kept = []

    async def leaves(exchange):
        kept.append(exchange.timer)

    await timed(leaves, 30)({}, spoken())
    kept[0].pause()
    kept[0].resume()


async def test_a_thread_is_told_by_its_context():
    begun, told, gate = threading.Event(), threading.Event(), threading.Event()

    def slow(ctx: Context):
        begun.set()
        while not ctx.cancelled:
            gate.wait(0.01)
        told.set()

    call = bounded(caller_of(slow, read_signature(slow, Context), Threads(1)), "slow", timeout=0.05, gates=[])
    while not begun.is_set():  # a machine under load may not even begin in that time
        exchange = spoken()
        with pytest.raises(ToolError, match="it took longer"):
            await call({}, exchange)
    exchange.live = False  # what the edge does once the answer is given
    assert await asyncio.to_thread(told.wait, 20)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), 1e9, "3", True])
def test_a_time_that_makes_no_sense_is_told(seconds):
    with pytest.raises(LocalError, match="timeout"):
        check_seconds(seconds)


# --- number ---


def gated(gate, function):
    return bounded(lambda arguments, exchange: function(), "busy", timeout=None, gates=[gate])


async def test_so_many_run_so_many_wait_and_one_more_is_refused():
    gate, go, running = gate_of(Concurrency(2, waiting=3)), asyncio.Event(), []

    async def works():
        running.append(1)
        await go.wait()
        return "done"

    call = gated(gate, works)
    calls = [asyncio.ensure_future(call({}, spoken())) for _ in range(5)]
    await turns()
    assert (len(running), gate.running, gate.waiting) == (2, 2, 3)
    with pytest.raises(ToolError) as told:
        await call({}, spoken())
    assert str(told.value) == "The tool busy is busy: 2 calls are running and 3 are waiting. Try again later"
    go.set()
    assert await asyncio.gather(*calls) == ["done"] * 5
    assert (gate.running, gate.waiting) == (0, 0)


async def test_who_waits_longest_is_next():
    gate, order = gate_of(1), []

    async def works(number):
        order.append(number)
        await asyncio.sleep(0)

    await asyncio.gather(*(gated(gate, lambda n=n: works(n))({}, spoken()) for n in range(20)))
    assert order == list(range(20))


async def test_a_failure_frees_the_place():
    gate = gate_of(1)

    async def fails():
        raise ValueError("x")

    for _ in range(3):
        with pytest.raises(ValueError):
            await gated(gate, fails)({}, spoken())
    assert gate.running == 0


async def test_who_is_cancelled_while_waiting_leaves_no_hole():
    gate, go = Gate(Concurrency(1)), asyncio.Event()
    first = asyncio.ensure_future(gated(gate, go.wait)({}, spoken()))
    await turns()
    waiting = [asyncio.ensure_future(gated(gate, go.wait)({}, spoken())) for _ in range(3)]
    await turns()
    waiting[0].cancel()
    await turns()
    assert gate.waiting == 2
    go.set()
    await asyncio.gather(first, *waiting[1:])
    assert (gate.running, gate.waiting) == (0, 0)


@pytest.mark.parametrize("turns_before", [0, 1, 2, 3])
async def test_who_is_cancelled_at_the_moment_of_being_let_in_hands_the_place_on(turns_before):
    gate = Gate(Concurrency(1))
    assert await gate.enter()
    one, other = (asyncio.ensure_future(gate.enter()) for _ in range(2))
    await turns()
    gate.leave()
    for _ in range(turns_before):
        await asyncio.sleep(0)
    if not one.done():
        one.cancel()
        await asyncio.wait([one])
    if one.cancelled():
        assert await other
        gate.leave()
    else:
        gate.leave()
        assert await other
        gate.leave()
    assert (gate.running, gate.waiting) == (0, 0)


async def test_a_place_is_handed_on_to_another_loop():
    gate, inside = Gate(Concurrency(1)), threading.Event()
    assert await gate.enter()

    async def elsewhere():
        await gate.enter()
        inside.set()
        gate.leave()

    thread = threading.Thread(target=asyncio.run, args=(elsewhere(),))
    thread.start()
    while not gate.waiting:
        await asyncio.sleep(0.001)
    gate.leave()
    assert await asyncio.to_thread(inside.wait, 20)
    await asyncio.to_thread(thread.join, 20)
    assert gate.running == 0


async def test_who_waits_on_a_loop_that_is_gone_is_passed_over():
    gate = Gate(Concurrency(1))
    assert await gate.enter()
    gone = asyncio.new_event_loop()
    gate._waiting.append(gone.create_future())
    gone.close()
    gate.leave()
    assert gate.running == 0


def test_bounds_that_make_no_sense_are_told():
    for bound in (0, -1, Concurrency(1, waiting=-1)):
        with pytest.raises(LocalError, match="concurrency"):
            gate_of(bound)
    assert gate_of(None) is None
    assert gate_of(3).bound == Concurrency(3, waiting=100)


def test_without_bounds_the_call_is_the_same():
    def call(arguments, exchange): ...

    assert bounded(call, "free", timeout=None, gates=[]) is call
