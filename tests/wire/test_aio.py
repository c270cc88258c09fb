"""wire/aio.py: what waits for a flag goes on when it is set, and not before."""

import asyncio

import pytest

from interlock.wire.aio import Flag
from support.doubles import turns


async def test_it_is_set_and_cleared():
    flag = Flag()
    assert not flag.is_set()
    flag.set()
    flag.set()
    assert flag.is_set()
    await flag.wait()
    flag.clear()
    assert not flag.is_set()


async def test_all_who_wait_go_on_when_it_is_set():
    flag = Flag()
    waiting = [asyncio.ensure_future(flag.wait()) for _ in range(3)]
    await turns()
    assert not any(each.done() for each in waiting)
    flag.set()
    await asyncio.gather(*waiting)


async def test_who_waited_goes_on_even_if_it_is_cleared_at_once():
    flag = Flag()
    waiting = asyncio.ensure_future(flag.wait())
    await turns()
    flag.set()
    flag.clear()
    await waiting
    again = asyncio.ensure_future(flag.wait())
    await turns()
    assert not again.done()
    flag.set()
    await again


@pytest.mark.parametrize("late", [False, True])
async def test_who_gives_up_is_forgotten_and_stops_nobody(late):
    flag = Flag()
    gone, stays = (asyncio.ensure_future(flag.wait()) for _ in range(2))
    await turns()
    if late:
        flag.set()
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gone
    flag.set()
    await stays
