"""What must last, in a file: several processes of one machine share it, and it outlives them all.

What was acknowledged is committed: it survives the death of any process at any moment. Without `durable` the last
moments before a power cut may be missing afterwards, never torn; with it every commit waits for the disk.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence

from ...wire.limits import MIB
from ..store import DEFAULT_BOUNDS, Bounds, Entry, Event, check_entry, check_events
from ..waiters import Waiters
from . import entries, streams
from .database import StoreFile
from .threads import Reader, Writer
from .transaction import Turn

__all__ = ["SQLiteStore"]


class SQLiteStore:
    """A `State` in a file of this machine. Processes that share it make one each, with the same bounds."""

    shared = True

    def __init__(
        self,
        path: str | os.PathLike[str],
        bounds: Bounds = DEFAULT_BOUNDS,
        *,
        durable: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._bounds = bounds
        self._waiters = Waiters()
        file = StoreFile(path)
        self.path = file.path
        """Where it is, absolute."""
        self._writer = Writer(file, bounds, clock, self._waiters, durable=durable)
        self._reader = Reader(file, bounds, clock, self._waiters, durable=durable)

    # --- values -----------------------------------------------------------------------------------

    async def get(self, key: str, *, owner: str = "") -> Entry | None:
        return await self._reader.do(lambda turn: entries.get(turn, key, owner))

    async def put(self, key: str, value: bytes, *, until: float, owner: str = "", expect: int | None = None) -> int:
        size = check_entry(key, value, until, owner, self._bounds)
        entry = Entry(key, bytes(value), 0, float(until), owner)
        return await self._writer.do(lambda turn: entries.put(turn, entry, size, expect), size)

    async def delete(self, key: str, *, owner: str = "", expect: int | None = None) -> bool:
        return await self._writer.do(lambda turn: entries.delete(turn, key, owner, expect))

    async def delete_owned(self, prefix: str, *, owner: str) -> int:
        return await self._writer.do(lambda turn: entries.delete_owned(turn, prefix, owner))

    async def take_expired(self, prefix: str = "", most: int = 100) -> list[Entry]:
        most = min(most, self._bounds.entries)
        return await self._writer.do(lambda turn: entries.take_expired(turn, prefix, most))

    # --- streams ----------------------------------------------------------------------------------

    async def append(self, stream: str, events: Sequence[bytes], *, until: float, fence: int = 0) -> int:
        size = check_events(stream, events, until, fence, self._bounds)
        data, end = [bytes(event) for event in events], float(until)

        def work(turn: Turn) -> int:
            return streams.append(turn, stream, data, size, end, fence)

        return await self._writer.do(work, size, news=stream)

    async def read(self, stream: str, after: int = 0, *, most: int = 100, most_bytes: int = MIB) -> list[Event]:
        return await self._reader.do(lambda turn: streams.read(turn, stream, after, most, most_bytes))

    async def last(self, stream: str) -> int:
        return await self._reader.do(lambda turn: streams.last(turn, stream))

    async def wait(self, stream: str, after: int = 0, *, seconds: float) -> bool:
        async def look() -> bool:
            return await self._reader.do(lambda turn: streams.news(turn, stream, after))

        return await self._waiters.wait(stream, look, seconds)

    async def trim(self, stream: str, through: int) -> None:
        await self._writer.do(lambda turn: streams.trim(turn, stream, through))

    async def drop(self, stream: str) -> bool:
        return await self._writer.do(lambda turn: streams.drop(turn, stream), news=stream)

    # --- the end ----------------------------------------------------------------------------------

    async def close(self) -> None:
        await self._writer.close()
        await self._reader.close()
        self._waiters.wake_all()
