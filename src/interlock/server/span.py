"""One async context manager that lives in a task of its own.

Whoever needs it may come from any task, thread or loop, and go in any order: it is entered and left by the same task,
as task groups and timeouts inside of it demand.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager
from typing import Any

__all__ = ["Span", "Make"]

log = logging.getLogger("interlock.server")
END_SECONDS = 10.0  # that the end of one may take; then it is cancelled
Make = Callable[[], AbstractAsyncContextManager[Any]]


class Span:
    """From its beginning, which starts at once, to `left`."""

    def __init__(self, name: str, make: Make, after: Span | None = None) -> None:
        self._name, self._make, self._after = name, make, after
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self._began: Future[Any] = Future()
        self._gone: Future[None] = Future()
        self._task = self._loop.create_task(self._live())

    @property
    def is_lost(self) -> bool:
        """Its loop was closed under it: it cannot go on, and nobody can end it."""
        return self._loop.is_closed()

    async def entered(self) -> Any:
        """What it yielded, as soon as it is there; raises what its beginning raised."""
        if not self._began.done():
            await _shielded(self._began)
        return self._began.result()

    async def left(self) -> None:
        """End it and wait for that, from any loop. A beginning that lasts is cancelled."""
        if self.is_lost:
            return
        self._loop.call_soon_threadsafe(self._end)
        await _shielded(self._gone)

    def _end(self) -> None:
        self._stop.set()
        if not self._began.done():
            self._task.cancel()
        elif not self._task.done():
            late = self._loop.call_later(END_SECONDS, self._cut_off)
            self._task.add_done_callback(lambda _: late.cancel())

    def _cut_off(self) -> None:
        log.error("! the end of the %s took more than %g s: it was cancelled", self._name, END_SECONDS)
        self._task.cancel()

    async def _live(self) -> None:
        try:
            if self._after is not None:
                await self._after.left()  # never two at a time
                self._after = None
            async with self._make() as value:
                self._began.set_result(value)
                await self._until_told()
        except BaseException as error:
            self._failed(error)
        finally:
            self._gone.set_result(None)

    async def _until_told(self) -> None:
        """Also a loop that ends cancels its tasks: that is the end, not a failure inside."""
        try:
            await self._stop.wait()
        except asyncio.CancelledError:
            self._task.uncancel()

    def _failed(self, error: BaseException) -> None:
        if not self._began.done():
            self._began.set_exception(error)
        elif not isinstance(error, asyncio.CancelledError):
            log.error("! the end of the %s failed", self._name, exc_info=error)


async def _shielded(future: Future[Any]) -> None:
    """Wait on this loop; who gives up waiting ends nothing. What came of it is the future's to tell."""
    waiting = asyncio.wrap_future(future)
    waiting.add_done_callback(lambda done: done.cancelled() or done.exception())
    await asyncio.wait([waiting])
