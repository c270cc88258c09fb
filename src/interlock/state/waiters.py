"""Who waits for which stream. Waiters live on any loop, news comes from any thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable

__all__ = ["Waiters"]

_Waiter = tuple[asyncio.AbstractEventLoop, asyncio.Event]


class Waiters:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_stream: dict[str, set[_Waiter]] = {}

    def __len__(self) -> int:
        return len(self._by_stream)

    async def wait(self, stream: str, look: Callable[[], Awaitable[bool]], seconds: float) -> bool:
        """Until `look` says yes, at most so long; it is asked now and whenever there is news."""
        waiter = self._add(stream)  # before the first look: what comes between the two is not missed
        try:
            if await look():
                return True
            async with asyncio.timeout(seconds):
                return await _until(waiter[1], look)
        except TimeoutError:
            return False
        finally:
            self._remove(stream, waiter)

    def wake(self, stream: str) -> None:
        if stream not in self._by_stream:
            return  # nobody waits, and who begins to will look first
        with self._lock:
            waiters = list(self._by_stream.get(stream, ()))
        for loop, event in waiters:
            _set(loop, event)

    def wake_all(self) -> None:
        with self._lock:
            streams = list(self._by_stream)
        for stream in streams:
            self.wake(stream)

    def _add(self, stream: str) -> _Waiter:
        waiter = (asyncio.get_running_loop(), asyncio.Event())
        with self._lock:
            self._by_stream.setdefault(stream, set()).add(waiter)
        return waiter

    def _remove(self, stream: str, waiter: _Waiter) -> None:
        with self._lock:
            waiters = self._by_stream[stream]
            waiters.discard(waiter)
            if not waiters:
                del self._by_stream[stream]


async def _until(event: asyncio.Event, look: Callable[[], Awaitable[bool]]) -> bool:
    while True:
        await event.wait()
        event.clear()  # before the look, for the same reason
        if await look():
            return True


def _set(loop: asyncio.AbstractEventLoop, event: asyncio.Event) -> None:
    try:
        loop.call_soon_threadsafe(event.set)
    except RuntimeError:
        pass  # its loop was closed under it: nobody waits there any more
