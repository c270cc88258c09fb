"""server/execution/thread_pool.py: plain functions in a bounded number of threads, one context each."""

import asyncio
import gc
import threading
import weakref
from contextvars import ContextVar

import pytest

from interlock.server.execution.thread_pool import OwnThreads, Threads
from interlock.wire.errors import LocalError
from support.doubles import turns

WHO = ContextVar("who", default="nobody")


async def test_a_call_runs_in_another_thread_and_gives_its_value():
    assert await Threads(1).run(threading.get_ident) != threading.get_ident()
    assert await Threads(1).run(lambda: 42) == 42


@pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt("x"), SystemExit(3)])
async def test_what_it_raises_is_raised_at_the_caller(error):
    def fails():
        raise error

    with pytest.raises(type(error)) as caught:
        await Threads(1).run(fails)
    assert caught.value is error


@pytest.mark.parametrize("kind", [StopIteration, GeneratorExit])
async def test_what_a_coroutine_cannot_be_told_becomes_an_error_that_it_can(kind):
    def fails():
        raise kind("x")

    with pytest.raises(RuntimeError, match=kind.__name__):
        await Threads(1).run(fails)


async def test_a_thread_outlives_a_failure():
    threads = Threads(1)

    def fails():
        raise SystemExit

    for _ in range(3):
        with pytest.raises(SystemExit):
            await threads.run(fails)
    assert await threads.run(lambda: "alive") == "alive"


async def test_at_most_so_many_run_at_a_time_and_all_get_their_turn():
    threads, size = Threads(3), 3
    lock, running, most = threading.Lock(), [], []
    barrier = threading.Barrier(size)

    def works(number):
        with lock:
            running.append(number)
            most.append(len(running))
        if number < size:
            barrier.wait(20)  # three at once, or the barrier breaks
        with lock:
            running.remove(number)
        return number

    found = await asyncio.gather(*(threads.run(lambda number=number: works(number)) for number in range(30)))
    assert found == list(range(30))
    assert max(most) == size


async def test_threads_are_used_again():
    threads = Threads(3)
    names = {await threads.run(lambda: threading.current_thread().name) for _ in range(50)}
    assert len(names) <= 3
    assert all(name.startswith("interlock-handler") for name in names)


async def test_threads_never_hold_up_the_end_of_the_process():
    assert await Threads(1).run(lambda: threading.current_thread().daemon)


async def test_the_context_of_the_caller_goes_along_and_changes_stay_behind():
    threads = Threads(1)

    def looks():
        seen = WHO.get()
        WHO.set("changed in the thread")
        return seen

    token = WHO.set("caller")
    assert await threads.run(looks) == "caller"
    assert WHO.get() == "caller"
    WHO.reset(token)
    assert await threads.run(looks) == "nobody"


async def test_who_is_cancelled_stops_waiting_and_the_thread_goes_on():
    threads = Threads(1)
    begun, gate, ended = threading.Event(), threading.Event(), threading.Event()

    def slow():
        begun.set()
        gate.wait(20)
        ended.set()

    task = asyncio.ensure_future(threads.run(slow))
    await asyncio.to_thread(begun.wait, 20)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert not ended.is_set()
    gate.set()
    assert await threads.run(lambda: "next") == "next"
    assert ended.is_set()


async def test_one_that_was_cancelled_before_its_turn_never_begins():
    # A cancelled request must not act after its cancellation (basic/utilities/cancellation).
    threads = Threads(1)
    gate, begun = threading.Event(), []
    first = asyncio.ensure_future(threads.run(lambda: gate.wait(20)))
    second = asyncio.ensure_future(threads.run(lambda: begun.append(1)))
    await turns()
    second.cancel()
    await asyncio.wait([second])
    gate.set()
    await first
    await threads.run(lambda: None)  # stands behind it in the queue
    assert begun == []


def test_a_result_for_a_loop_that_is_gone_is_dropped():
    threads, gate = Threads(1), threading.Event()
    ended = threading.Event()

    def slow():
        gate.wait(20)
        ended.set()

    async def leaves():
        task = asyncio.ensure_future(threads.run(slow))
        await turns()
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(leaves())
    gate.set()
    assert ended.wait(20)
    assert asyncio.run(threads.run(lambda: "alive")) == "alive"


def test_without_a_thread_nothing_could_run():
    with pytest.raises(LocalError, match="threads=0"):
        Threads(0)


# --- waking ---


async def test_calls_that_come_together_are_all_brought_home():
    threads = Threads(4)
    found = await asyncio.gather(*(threads.run(lambda number=number: number) for number in range(2000)))
    assert found == list(range(2000))


async def test_a_call_that_blocks_keeps_no_other_waiting_while_there_are_threads():
    threads, gates = Threads(8), [threading.Event() for _ in range(8)]
    begun = [threading.Event() for _ in range(8)]

    def waits(number):
        begun[number].set()
        gates[number].wait(20)
        return number

    calls = [asyncio.ensure_future(threads.run(lambda number=number: waits(number))) for number in range(8)]
    for event in begun:  # the loop turns while this waits, and all eight begin though none has ended
        assert await asyncio.to_thread(event.wait, 20)
    for gate in gates:
        gate.set()
    assert await asyncio.gather(*calls) == list(range(8))


async def test_a_sleeping_thread_is_woken_for_every_later_burst():
    threads = Threads(2)
    for round in range(200):
        size = 1 + round % 5
        assert await asyncio.gather(*(threads.run(lambda n=n: n) for n in range(size))) == list(range(size))


def test_several_loops_share_the_threads_at_once():
    threads, found, size = Threads(3), [], 200

    async def calls():
        found.extend(await asyncio.gather(*(threads.run(lambda n=n: n) for n in range(size))))

    loops = [threading.Thread(target=asyncio.run, args=(calls(),)) for _ in range(3)]
    for loop in loops:
        loop.start()
    for loop in loops:
        loop.join(20)
    assert sorted(found) == sorted([*range(size)] * 3)


async def test_what_a_finished_call_held_is_not_kept():
    class Held:
        pass

    threads, held = Threads(1), Held()
    gone = weakref.ref(held)
    await threads.run(lambda held=held: None)
    await threads.run(lambda: None)
    del held
    await turns()
    gc.collect()
    assert gone() is None


# --- a thread of its own ---


async def test_each_call_has_a_thread_that_nobody_used_before():
    own, local = OwnThreads(2), threading.local()

    def marked():
        before = getattr(local, "mark", None)
        local.mark = "used"
        return before, threading.current_thread().daemon

    assert [await own.run(marked) for _ in range(5)] == [(None, True)] * 5


async def test_own_threads_are_bounded_and_all_calls_get_their_turn():
    own, lock, running, most = OwnThreads(3), threading.Lock(), [], []

    def works(number):
        with lock:
            running.append(number)
            most.append(len(running))
        with lock:
            running.remove(number)
        return number

    found = await asyncio.gather(*(own.run(lambda number=number: works(number)) for number in range(30)))
    assert found == list(range(30))
    assert max(most) <= 3


async def test_an_own_call_that_was_cancelled_before_its_turn_never_begins():
    own, gate, begun = OwnThreads(1), threading.Event(), []
    first = asyncio.ensure_future(own.run(lambda: gate.wait(20)))
    second = asyncio.ensure_future(own.run(lambda: begun.append(1)))
    third = asyncio.ensure_future(own.run(lambda: "third"))
    await turns()
    second.cancel()
    await asyncio.wait([second])
    gate.set()
    assert await first and await third == "third"
    assert begun == []


async def test_the_context_goes_along_and_errors_come_back_from_an_own_thread():
    def fails():
        raise KeyError(WHO.get())

    token = WHO.set("caller")
    with pytest.raises(KeyError, match="caller"):
        await OwnThreads(1).run(fails)
    WHO.reset(token)


# --- a system that has no threads left ---


class NoThread:
    def __init__(self, *arguments, **options): ...

    def start(self):
        raise RuntimeError("can't start new thread")


@pytest.mark.parametrize("kind", [Threads, OwnThreads])
async def test_calls_fail_when_no_thread_can_be_started_and_run_once_there_are_some(monkeypatch, kind):
    threads = kind(2)
    with monkeypatch.context() as patch:
        patch.setattr("interlock.server.execution.thread_pool.threading.Thread", NoThread)
        found = await asyncio.gather(*(threads.run(lambda: 1) for _ in range(5)), return_exceptions=True)
        assert [type(each) for each in found] == [RuntimeError] * 5
    assert await asyncio.gather(*(threads.run(lambda n=n: n) for n in range(5))) == [0, 1, 2, 3, 4]


async def test_the_threads_there_are_serve_all_when_no_more_can_be_started(monkeypatch):
    threads = Threads(8)
    assert await threads.run(lambda: 1) == 1
    monkeypatch.setattr("interlock.server.execution.thread_pool.threading.Thread", NoThread)
    assert await asyncio.gather(*(threads.run(lambda n=n: n) for n in range(50))) == list(range(50))


def waiting_in(threads):
    return len(threads._jobs if isinstance(threads, Threads) else threads._waiting)


@pytest.mark.parametrize("kind", [Threads, OwnThreads])
async def test_calls_that_come_and_go_do_not_pile_up_behind_one_that_hangs(kind):
    threads, gate, begun = kind(1), threading.Event(), threading.Event()

    def hang():
        begun.set()
        return gate.wait(20)

    hanging = asyncio.create_task(threads.run(hang))
    await asyncio.to_thread(begun.wait, 20)
    for _ in range(50):
        waiting = asyncio.create_task(threads.run(threading.get_ident))
        await turns(3)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    assert waiting_in(threads) == 0
    gate.set()
    assert await hanging
    assert await threads.run(lambda: 42) == 42
