"""One attempt to connect at a time, shared by all who wait for it; when the last of them gives up, it ends.

What was given up takes its time to clean up, and a new attempt may begin meanwhile. A connection that it made
nevertheless belongs to nobody, and is closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from ..protocol.client.base import ClientEdge
from ..wire.errors import ConnectionClosed

__all__ = ["Attempts"]


class Attempts:
    """Of one client, on its loop. `connect` makes a connection; `opened` is told of it before anybody who waits."""

    def __init__(
        self, connect: Callable[[], Coroutine[Any, Any, ClientEdge]], opened: Callable[[ClientEdge], None]
    ) -> None:
        self._connect, self._opened = connect, opened
        self._now: asyncio.Task[ClientEdge] | None = None
        self._waiting = 0
        self._abandoned: set[asyncio.Task[ClientEdge]] = set()
        self._strays: set[asyncio.Task[None]] = set()
        self._closed = False

    @property
    def under_way(self) -> bool:
        return self._now is not None

    async def join(self) -> ClientEdge:
        """The connection that comes of the attempt under way, or of one that begins now."""
        if self._now is None:
            self._now = asyncio.get_running_loop().create_task(self._connect())
            self._now.add_done_callback(self._ended)
        attempt = self._now
        self._waiting += 1
        try:
            return await asyncio.shield(attempt)
        except asyncio.CancelledError:
            if self._closed and attempt.cancelled():
                raise ConnectionClosed("the client was closed while it was opening") from None
            raise
        finally:
            self._waiting -= 1
            if self._waiting == 0 and not attempt.done():
                self._abandon(attempt)

    async def close(self) -> None:
        """End all of it, and wait until nothing is left."""
        self._closed = True
        if self._now is not None:
            self._abandon(self._now)
        while self._abandoned or self._strays:
            await asyncio.wait([*self._abandoned, *self._strays])

    def _abandon(self, attempt: asyncio.Task[ClientEdge]) -> None:
        if self._now is attempt:
            self._now = None
        self._abandoned.add(attempt)
        attempt.cancel()

    def _ended(self, attempt: asyncio.Task[ClientEdge]) -> None:
        unwanted = attempt in self._abandoned
        self._abandoned.discard(attempt)
        if self._now is attempt:
            self._now = None
        if attempt.cancelled() or attempt.exception() is not None:
            return
        if not unwanted:
            self._opened(attempt.result())
            return
        self._strays.add(task := asyncio.get_running_loop().create_task(attempt.result().close()))
        task.add_done_callback(self._strays.discard)
