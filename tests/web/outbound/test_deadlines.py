"""Deadlines that stand still while somebody else is waited for."""

from __future__ import annotations

import asyncio

import pytest

from interlock.web.outbound.deadlines import movable, movable_timeout, paused


async def test_what_is_paused_is_moved_and_moved_back():
    moved: list[float] = []
    with movable(moved.append), movable(moved.append), paused(10.0):
        assert moved == [10.0, 10.0]
    assert len(moved) == 4 and all(-10.0 <= each <= -9.0 for each in moved[2:])
    with paused(10.0):
        pass
    assert len(moved) == 4


async def test_a_deadline_does_not_pass_while_it_is_paused():
    async with movable_timeout(0.01):
        with paused(60.0):
            await asyncio.sleep(0.04)


async def test_it_passes_afterwards():
    with pytest.raises(TimeoutError):
        async with movable_timeout(0.01):
            with paused(60.0):
                await asyncio.sleep(0.02)
            await asyncio.sleep(60)


async def test_tasks_that_are_started_within_move_it_too():
    async def work() -> None:
        with paused(60.0):
            pass

    moved: list[float] = []
    with movable(moved.append):
        await asyncio.create_task(work())
    assert moved[0] == 60.0 and len(moved) == 2


async def test_an_end_is_not_put_off():
    with pytest.raises(TimeoutError):
        async with movable_timeout(0.0):
            try:
                await asyncio.sleep(60)
            finally:
                with paused(60.0):
                    pass
