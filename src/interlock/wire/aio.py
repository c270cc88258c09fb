"""A flag that can be waited for. `asyncio.Event` does the same and weighs fourteen times as much while nobody waits.

A server holds two of them for every client that is connected, and makes one for every request.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any, cast

__all__ = [
    "Flag",
    "task_of",
]


class Flag:
    """Used on one loop, as an event is."""

    __slots__ = ("_set", "_waiters")

    def __init__(self) -> None:
        self._set = False
        self._waiters: list[asyncio.Future[None]] | None = None

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        """Whoever waits goes on, also if it is cleared before his turn comes."""
        self._set = True
        if self._waiters is not None:
            waiters, self._waiters = self._waiters, None
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)

    def clear(self) -> None:
        self._set = False

    async def wait(self) -> None:
        if self._set:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._waiters is None:
            self._waiters = []
        waiters = self._waiters
        waiters.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            waiters.remove(waiter)
            raise


# Python 3.11 has no such function in C, but the table behind it: looked up with every request, that counts.
task_of: Callable[[asyncio.AbstractEventLoop], asyncio.Task[Any] | None] = (
    asyncio.current_task if sys.version_info >= (3, 12) else cast(Any, asyncio.tasks)._current_tasks.get
)
