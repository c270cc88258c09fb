"""transport/event_loop.py: the loop of `run` knows of the tasks and timeouts on it."""

import asyncio

import pytest

from interlock.transport.event_loop import counting
from interlock.transport.http.runner.serve import _loop_factory

KINDS = {"asyncio": counting(asyncio.SelectorEventLoop), "run": _loop_factory()}


async def nothing(): ...


async def overdue():
    async with asyncio.timeout(0):
        pass


def makes_a_task():
    return [asyncio.create_task(nothing(), name="mine")]


def makes_a_task_by_name():
    return [asyncio.get_running_loop().create_task(coro=nothing())]


def gathers_two():
    return [asyncio.gather(nothing(), nothing())]


def puts_a_callback_on():
    asyncio.get_running_loop().call_soon(int)
    return []


def only_makes_a_future():
    asyncio.get_running_loop().create_future()
    return []


async def added(act):
    loop = asyncio.get_running_loop()
    before = loop.uses
    waiting = act()
    found = loop.uses - before
    for each in waiting:
        await each
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("act", "count"),
    [
        *((makes_a_task, 1), (makes_a_task_by_name, 1), (gathers_two, 2)),
        *((puts_a_callback_on, 0), (only_makes_a_future, 0)),
    ],
)
def test_what_is_uses_the_loop_is_counted(kind, act, count):
    loop = KINDS[kind]()
    try:
        assert loop.run_until_complete(added(act)) == count
    finally:
        loop.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_timeout_is_counted(kind):
    async def looks():
        before = asyncio.get_running_loop().uses
        await overdue()
        return asyncio.get_running_loop().uses - before

    loop = KINDS[kind]()
    try:
        assert loop.run_until_complete(looks()) >= 1
    finally:
        loop.close()


def test_each_loop_counts_for_itself():
    loops = [KINDS["asyncio"](), KINDS["asyncio"]()]
    try:
        loops[0].run_until_complete(nothing())
        assert loops[0].uses > 0 == loops[1].uses
    finally:
        for loop in loops:
            loop.close()
