"""Deadlines by one timer: they end what lasts too long, and nothing else."""

from __future__ import annotations

import asyncio

import pytest

from interlock.host.gate.deadlines import Deadlines


async def limited(deadlines: Deadlines, seconds: float, work) -> str:
    deadline = deadlines.begin(seconds)
    try:
        return await work
    except asyncio.CancelledError:
        if deadline.caused():
            return "too late"
        raise
    finally:
        deadlines.end(deadline)


async def finished() -> str:
    return "done"


@pytest.fixture
def deadlines():
    made = Deadlines()
    yield made
    made.close()


async def test_what_ends_in_time_is_left_alone(deadlines):
    assert await limited(deadlines, 60, finished()) == "done"
    assert await limited(deadlines, 60, asyncio.sleep(0.001, "slept")) == "slept"
    assert not deadlines._running


async def test_what_lasts_too_long_is_ended_each_at_its_own_time(deadlines):
    seconds = [0.03, 0.01, 60.0, 0.02]
    work = [asyncio.sleep(0.05, "done") if each == 60 else asyncio.sleep(60) for each in seconds]
    tasks = [limited(deadlines, each, some) for each, some in zip(seconds, work, strict=True)]
    assert await asyncio.gather(*tasks) == ["too late", "too late", "done", "too late"]


async def test_one_timer_serves_all(deadlines):
    await asyncio.gather(*(limited(deadlines, 60 + number, asyncio.sleep(0)) for number in range(100)))
    loop = asyncio.get_running_loop()
    assert len(loop._scheduled) <= 2  # pyright: ignore


async def test_one_may_come_early_for_all_that_is_done_at_a_server_by_then(deadlines):
    async def at(server: str, work) -> str:
        deadline = deadlines.begin(60, server)
        try:
            return await work
        except asyncio.CancelledError:
            if deadline.caused():
                return deadline.cut
            raise
        finally:
            deadlines.end(deadline)

    async def within() -> str:
        return await at("a", at("a", asyncio.sleep(60)))  # a question of the server, in the call that it is asked in

    go = asyncio.Event()
    work = [at("a", asyncio.sleep(60)), at("b", go.wait()), at("a", finished()), within()]
    tasks = [asyncio.create_task(each) for each in work]
    await asyncio.sleep(0)
    found = deadlines.at("a")
    late = asyncio.create_task(at("a", go.wait()))
    await asyncio.sleep(0)
    deadlines.cut(found, "gone")
    deadlines.cut(found, "gone")
    await asyncio.wait([tasks[0]])
    go.set()
    assert await asyncio.gather(*tasks, late) == ["gone", True, "done", "gone", True]
    assert len(found) == 3 and not deadlines._running and not any(task.cancelling() for task in tasks)


async def test_who_was_cancelled_by_somebody_else_is_not_told_that_it_was_late(deadlines):
    task = asyncio.create_task(limited(deadlines, 60, asyncio.sleep(60)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_of_two_who_cancel_the_one_outside_counts(deadlines):
    task = asyncio.create_task(limited(deadlines, 60, asyncio.sleep(60)))
    await asyncio.sleep(0)
    [deadline] = deadlines._running
    deadline.expire()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_task_can_go_on_after_its_deadline(deadlines):
    assert await limited(deadlines, 0.001, asyncio.sleep(60)) == "too late"
    task = asyncio.current_task()
    assert task is not None and task.cancelling() == 0
    assert await limited(deadlines, 60, asyncio.sleep(0, "next")) == "next"


async def test_a_deadline_that_has_passed_already(deadlines):
    assert await limited(deadlines, 0, asyncio.sleep(60)) == "too late"
    assert await limited(deadlines, -5, asyncio.sleep(60)) == "too late"


def test_another_loop_gets_a_timer_of_its_own(deadlines):
    for _ in range(2):
        assert asyncio.run(limited(deadlines, 0.005, asyncio.sleep(60))) == "too late"
        assert asyncio.run(limited(deadlines, 60, finished())) == "done"
