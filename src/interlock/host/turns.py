"""One thing at a time with each name, in the order in which it was asked for, and each to its end.

What changes who is there (adding, removing, starting anew, taking back) has steps that must not mix with those of
another change of the same server. Whoever gives up waiting for one does not leave it half done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

__all__ = ["Turns"]

T = TypeVar("T")


class Turns:
    """Nothing is kept of names with which nothing goes on."""

    def __init__(self) -> None:
        self._last: dict[str, asyncio.Task[Any]] = {}

    async def take(self, name: str, work: Callable[[], Awaitable[T]]) -> T:
        """Do it after all that was asked for before with this name. It is done also when nobody waits any more."""
        turn = asyncio.get_running_loop().create_task(self._after(self._last.get(name), work))
        self._last[name] = turn
        turn.add_done_callback(partial(self._over, name))
        return await asyncio.shield(turn)

    async def close(self) -> None:
        """Wait until nothing goes on any more."""
        while self._last:
            await asyncio.wait([*self._last.values()])

    async def _after(self, before: asyncio.Task[Any] | None, work: Callable[[], Awaitable[T]]) -> T:
        if before is not None:
            await asyncio.wait([before])
        return await work()

    def _over(self, name: str, turn: asyncio.Task[Any]) -> None:
        if self._last.get(name) is turn:
            del self._last[name]
        if not turn.cancelled():
            turn.exception()  # whoever waits is told; that nobody does any more is no mistake
