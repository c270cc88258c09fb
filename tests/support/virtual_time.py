"""Tests about deadlines without waiting for them: a loop whose clock jumps to the next timer when nothing is ready.

    @virtual_time
    async def test_a_call_times_out(): ...

The order of everything is that of a real loop. Where nothing could ever happen any more, the test fails at once
instead of hanging.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any

__all__ = ["VirtualLoop", "run_virtually", "virtual_time"]

_REAL_SECONDS = 20.0  # for what comes from outside (a thread, a descriptor) when no timer is left


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        super().__init__()
        self._now = 1000.0
        really_select = self._selector.select  # type: ignore[attr-defined]

        def select(timeout: float | None = None) -> Any:
            ready = really_select(0)
            if ready or timeout == 0:
                return ready
            if timeout is None:
                ready = really_select(_REAL_SECONDS)
                if not ready:
                    raise RuntimeError("deadlock: nothing is ready and no timer is set")
                return ready
            self._now += timeout
            return ready

        self._selector.select = select  # type: ignore[attr-defined]

    def time(self) -> float:
        return self._now


def run_virtually(work: Coroutine[Any, Any, Any]) -> Any:
    """Run `work` to its end; it must leave no task behind and no exception unseen."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        unhandled: list[str] = []
        loop = runner.get_loop()
        loop.set_exception_handler(
            lambda _, context: unhandled.append(str(context.get("exception") or context["message"]))
        )
        result = runner.run(_and_nothing_left(work))
        assert not unhandled, f"exceptions nobody retrieved: {unhandled}"
        return result


async def _and_nothing_left(work: Coroutine[Any, Any, Any]) -> Any:
    result = await work
    for _ in range(10):
        await asyncio.sleep(0)
    left = [repr(task) for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    assert not left, f"tasks left behind: {left}"
    return result


def virtual_time(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run an async test on a loop of its own with virtual time."""

    @functools.wraps(test)
    def run(**arguments: Any) -> None:
        run_virtually(test(**arguments))

    return run
