"""Who may read what is typed: the prompt, or a question. Never both.

A question that comes while somebody is typing waits until the line is finished, and says that it waits: nobody answers
a question with half of another sentence.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

__all__ = ["Floor"]


class Floor:
    """`waits` is called when a question has to wait for the prompt."""

    def __init__(self, waits: Callable[[], None]) -> None:
        self._lock = asyncio.Lock()
        self._waits = waits
        self._asked = 0
        self._prompting = False

    @asynccontextmanager
    async def for_question(self) -> AsyncGenerator[None]:
        if self._prompting:
            self._waits()
        self._asked += 1
        try:
            async with self._lock:
                yield
        finally:
            self._asked -= 1

    @asynccontextmanager
    async def for_prompt(self) -> AsyncGenerator[None]:
        """When no question waits any more."""
        await self._quiet()
        self._prompting = True
        try:
            yield
        finally:
            self._prompting = False
            self._lock.release()

    async def answered(self) -> None:
        """Wait until no question waits: what comes next is not said in the middle of one."""
        await self._quiet()
        self._lock.release()

    async def _quiet(self) -> None:
        await self._lock.acquire()
        while self._asked:
            self._lock.release()
            await asyncio.sleep(0)
            await self._lock.acquire()
