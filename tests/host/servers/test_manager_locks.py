"""host/servers/manager.py: one thing at a time with each name, each to its end."""

import asyncio

import pytest

from interlock.host.servers.manager import Turns
from support.virtual_time import virtual_time


class Work:
    def __init__(self):
        self.done, self.under_way, self.most = [], {}, 0

    def of(self, name, what, seconds=1.0):
        async def work():
            self.under_way[name] = self.under_way.get(name, 0) + 1
            self.most = max(self.most, self.under_way[name])
            await asyncio.sleep(seconds)
            self.under_way[name] -= 1
            self.done.append((name, what))
            return what

        return work


@virtual_time
async def test_what_is_asked_for_with_one_name_is_done_in_order_and_never_at_once():
    turns, work = Turns(), Work()
    waits = [1.0, 0.1, 0.5]
    answers = await asyncio.gather(*(turns.take("a", work.of("a", number, waits[number])) for number in range(3)))
    assert answers == [0, 1, 2] and work.done == [("a", 0), ("a", 1), ("a", 2)] and work.most == 1


@virtual_time
async def test_names_do_not_wait_for_each_other():
    turns, work = Turns(), Work()
    before = asyncio.get_running_loop().time()
    await asyncio.gather(*(turns.take(name, work.of(name, 0)) for name in "abcdef"))
    assert asyncio.get_running_loop().time() - before == pytest.approx(1.0)


@virtual_time
async def test_a_failure_is_told_to_its_own_caller_only():
    turns, work = Turns(), Work()

    async def fail():
        raise ZeroDivisionError

    found = await asyncio.gather(turns.take("a", fail), turns.take("a", work.of("a", 1)), return_exceptions=True)
    assert isinstance(found[0], ZeroDivisionError) and found[1] == 1


@virtual_time
async def test_what_nobody_waits_for_any_more_is_done_all_the_same_and_before_the_next():
    turns, work = Turns(), Work()
    given_up = [asyncio.create_task(turns.take("a", work.of("a", number))) for number in range(2)]
    await asyncio.sleep(0.5)
    for task in given_up:
        task.cancel()
    await turns.take("a", work.of("a", 2))
    assert work.done == [("a", 0), ("a", 1), ("a", 2)] and work.most == 1
    assert all(task.cancelled() for task in given_up)


@virtual_time
async def test_closing_waits_for_all_and_nothing_is_kept():
    turns, work = Turns(), Work()

    async def fail():
        raise ZeroDivisionError

    for name, each in (("a", work.of("a", 0)), ("b", fail), ("a", work.of("a", 1))):
        task = asyncio.create_task(turns.take(name, each))
        await asyncio.sleep(0)
        task.cancel()
    await turns.close()
    assert work.done == [("a", 0), ("a", 1)] and not turns._last
