"""What must last, kept in the memory of one process: the default, and what the other stores are measured by."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from heapq import heapify, heappop, heappush
from itertools import chain, islice

from ..wire.errors import EventsGone, Fenced, NotOpen, StoreFull
from ..wire.limits import MIB
from .store import DEFAULT_BOUNDS, Bounds, Entry, Event, check_entry, check_events, surplus
from .waiters import Waiters

__all__ = [
    "MemoryStore",
    "Ends",
]


_SLACK = 64  # outdated items a small heap may hold before it is made anew


class Ends:
    """The end of each name; a later `set` overrules an earlier one."""

    def __init__(self) -> None:
        self._ends: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []

    def set(self, name: str, until: float) -> None:
        if self._ends.get(name) == until:
            return
        self._ends[name] = until
        if until < math.inf:
            heappush(self._heap, (until, name))
            self._compact()

    def remove(self, name: str) -> None:
        self._ends.pop(name, None)

    def pop_due(self, now: float) -> str | None:
        """One whose end has come, the earliest first; it is not asked about again."""
        heap = self._heap
        while heap and heap[0][0] <= now:
            until, name = heappop(heap)
            if self._ends.get(name) == until:
                del self._ends[name]
                return name
        return None

    def _compact(self) -> None:
        """What is touched often leaves its old ends behind: at most as many as there are names, and a few."""
        if len(self._heap) > 2 * len(self._ends) + _SLACK:
            self._heap = [(until, name) for name, until in self._ends.items() if until < math.inf]
            heapify(self._heap)


_SWEEP_SECONDS = 1.0  # between two passes over all streams when there is no room


class MemoryStore:
    """A `State` that nobody else sees and that is gone with the process."""

    shared = False

    def __init__(self, bounds: Bounds = DEFAULT_BOUNDS, *, clock: Callable[[], float] = time.time) -> None:
        self._bounds = bounds
        self._clock = clock
        self._entries = _Entries(bounds)
        self._streams = _Streams(bounds)
        self._waiters = Waiters()
        self._lock = threading.Lock()  # for loops in several threads; nobody holds it for long
        self._closed = False

    # --- values -----------------------------------------------------------------------------------

    async def get(self, key: str, *, owner: str = "") -> Entry | None:
        with self._at_work():
            return self._entries.get(key, owner, self._clock())

    async def put(self, key: str, value: bytes, *, until: float, owner: str = "", expect: int | None = None) -> int:
        size = check_entry(key, value, until, owner, self._bounds)
        with self._at_work():
            return self._entries.put(Entry(key, bytes(value), 0, until, owner), size, expect, self._clock())

    async def delete(self, key: str, *, owner: str = "", expect: int | None = None) -> bool:
        with self._at_work():
            return self._entries.delete(key, owner, expect, self._clock())

    async def delete_owned(self, prefix: str, *, owner: str) -> int:
        with self._at_work():
            return self._entries.delete_owned(prefix, owner, self._clock())

    async def take_expired(self, prefix: str = "", most: int = 100) -> list[Entry]:
        with self._at_work():
            self._streams.sweep(self._clock())
            return self._entries.take_expired(prefix, most, self._clock())

    # --- streams ----------------------------------------------------------------------------------

    async def append(self, stream: str, events: Sequence[bytes], *, until: float, fence: int = 0) -> int:
        size = check_events(stream, events, until, fence, self._bounds)
        with self._at_work():
            last = self._streams.append(stream, events, size, until, fence, self._clock())
        if events:
            self._waiters.wake(stream)
        return last

    async def read(self, stream: str, after: int = 0, *, most: int = 100, most_bytes: int = MIB) -> list[Event]:
        with self._at_work():
            return self._streams.read(stream, after, most, most_bytes, self._clock())

    async def last(self, stream: str) -> int:
        with self._at_work():
            return self._streams.last(stream, self._clock())

    async def wait(self, stream: str, after: int = 0, *, seconds: float) -> bool:
        async def look() -> bool:
            with self._at_work():
                return self._streams.news(stream, after, self._clock())

        return await self._waiters.wait(stream, look, seconds)

    async def trim(self, stream: str, through: int) -> None:
        with self._at_work():
            self._streams.trim(stream, through, self._clock())

    async def drop(self, stream: str) -> bool:
        with self._at_work():
            was_there = self._streams.drop(stream, self._clock())
        self._waiters.wake(stream)
        return was_there

    # --- the end ----------------------------------------------------------------------------------

    async def close(self) -> None:
        self._closed = True
        self._waiters.wake_all()

    def _at_work(self) -> threading.Lock:
        if self._closed:
            raise NotOpen("this store was closed")
        return self._lock


class _Entries:
    """The values: those that live, and those that wait for `take_expired`."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._live: dict[str, Entry] = {}
        self._over: dict[str, Entry] = {}
        self._ends = Ends()
        self._bytes = 0
        self._version = 0

    def get(self, key: str, owner: str, now: float) -> Entry | None:
        entry = self._live.get(key)
        return entry if entry is not None and entry.owner == owner and now < entry.until else None

    def put(self, entry: Entry, size: int, expect: int | None, now: float) -> int:
        self._age(now)
        held = self._live.get(entry.key)
        if held is not None and held.owner != entry.owner:
            return 0
        if expect is not None and expect != (0 if held is None else held.version):
            return 0
        self._make_room(size, held)
        self._over_again(entry.key)
        self._version += 1
        self._bytes += size - (0 if held is None else _size(held))
        self._live[entry.key] = Entry(entry.key, entry.value, self._version, entry.until, entry.owner)
        self._ends.set(entry.key, entry.until)
        return self._version

    def delete(self, key: str, owner: str, expect: int | None, now: float) -> bool:
        entry = self.get(key, owner, now)
        if entry is None or (expect is not None and expect != entry.version):
            return False
        del self._live[key]
        self._ends.remove(key)
        self._bytes -= _size(entry)
        return True

    def delete_owned(self, prefix: str, owner: str, now: float) -> int:
        keys = [key for key, entry in self._live.items() if entry.owner == owner and key.startswith(prefix)]
        return sum(self.delete(key, owner, None, now) for key in keys)

    def take_expired(self, prefix: str, most: int, now: float) -> list[Entry]:
        self._age(now)
        found = sorted((entry for key, entry in self._over.items() if key.startswith(prefix)), key=lambda e: e.until)
        taken = found[:most]
        for entry in taken:
            self._over_again(entry.key)
        return taken

    def _age(self, now: float) -> None:
        while (key := self._ends.pop_due(now)) is not None:
            self._over[key] = self._live.pop(key)
        while self._over:
            oldest = next(iter(self._over.values()))
            if oldest.until > now - self._bounds.linger_seconds:
                break
            self._over_again(oldest.key)

    def _over_again(self, key: str) -> None:
        if (entry := self._over.pop(key, None)) is not None:
            self._bytes -= _size(entry)

    def _make_room(self, size: int, held: Entry | None) -> None:
        more, size = (1, size) if held is None else (0, size - _size(held))
        while self._over and not self._fits(more, size):
            self._over_again(next(iter(self._over)))
        if not self._fits(more, size):
            raise StoreFull(f"{len(self._live)} keys with {self._bytes} bytes: the store has no room for more")

    def _fits(self, more: int, size: int) -> bool:
        count = len(self._live) + len(self._over) + more
        return count <= self._bounds.entries and self._bytes + size <= self._bounds.entries_bytes


def _size(entry: Entry) -> int:
    return len(entry.value) + len(entry.key.encode()) + len(entry.owner.encode())


class _Stream:
    """One log: the events with the ids `trimmed + 1` to `last`."""

    __slots__ = ("bytes", "events", "fence", "start", "trimmed")

    def __init__(self, start: int) -> None:
        self.start = self.trimmed = start
        self.events: deque[tuple[float, bytes]] = deque()
        self.bytes = self.fence = 0

    @property
    def last(self) -> int:
        return self.trimmed + len(self.events)

    def forget(self, count: int) -> int:
        freed = sum(len(self.events.popleft()[1]) for _ in range(count))
        self.trimmed += count
        self.bytes -= freed
        return freed


class _Streams:
    """All logs."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._streams: dict[str, _Stream] = {}
        self._ends = Ends()
        self._bytes = 0
        self._highest = 0  # id of a stream that ended: new ones go on above it, so no id is given twice
        self._swept = 0.0

    def append(self, name: str, events: Sequence[bytes], size: int, until: float, fence: int, now: float) -> int:
        self._end_due(now)
        stream = self._streams.get(name)
        if stream is None and not events:
            return 0
        if stream is not None and fence < stream.fence:
            raise Fenced(f"the fence {fence} is older than {stream.fence}")
        gone = self._room(stream, events, size, now)
        if stream is None:
            stream = self._streams[name] = _Stream(self._highest)
        stream.fence = fence
        stream.events.extend((now, bytes(event)) for event in events)
        stream.bytes += size
        self._bytes += size - stream.forget(gone)
        self._ends.set(name, until)
        return stream.last

    def read(self, name: str, after: int, most: int, most_bytes: int, now: float) -> list[Event]:
        stream = self._living(name, now)
        if stream is None:
            if after:
                raise EventsGone(f"there is no such stream, or not any more: nothing comes after {after}")
            return []
        self._forget_old(stream, now)
        after = after or stream.start
        if not stream.trimmed <= after <= stream.last:
            raise EventsGone(f"after {after}: only the events {stream.trimmed + 1} to {stream.last} are kept")
        return list(_page(after, islice(stream.events, after - stream.trimmed, None), most, most_bytes))

    def last(self, name: str, now: float) -> int:
        stream = self._living(name, now)
        return 0 if stream is None else stream.last

    def news(self, name: str, after: int, now: float) -> bool:
        stream = self._living(name, now)
        if stream is None:
            return after != 0
        return (after or stream.start) != stream.last

    def trim(self, name: str, through: int, now: float) -> None:
        stream = self._living(name, now)
        if stream is not None:
            self._bytes -= stream.forget(max(0, min(through, stream.last) - stream.trimmed))

    def drop(self, name: str, now: float) -> bool:
        was_there = self._living(name, now) is not None
        self._remove(name)
        return was_there

    def sweep(self, now: float) -> None:
        self._swept = now
        self._end_due(now)
        for stream in self._streams.values():
            self._forget_old(stream, now)

    def _living(self, name: str, now: float) -> _Stream | None:
        self._end_due(now)
        return self._streams.get(name)

    def _end_due(self, now: float) -> None:
        while (name := self._ends.pop_due(now)) is not None:
            self._remove(name)

    def _remove(self, name: str) -> None:
        stream = self._streams.pop(name, None)
        if stream is not None:
            self._ends.remove(name)
            self._bytes -= stream.bytes
            self._highest = max(self._highest, stream.last)

    def _forget_old(self, stream: _Stream, now: float) -> None:
        old = 0
        for at, _ in stream.events:
            if at > now - self._bounds.event_seconds:
                break
            old += 1
        self._bytes -= stream.forget(old)

    def _room(self, stream: _Stream | None, events: Sequence[bytes], size: int, now: float) -> int:
        """How many of the stream's oldest have to go; raises where even that does not make room."""
        gone, freed = self._surplus(stream, events, size, now)
        if not self._fits(stream, size - freed) and now >= self._swept + _SWEEP_SECONDS:
            self.sweep(now)
            gone, freed = self._surplus(stream, events, size, now)
        if not self._fits(stream, size - freed):
            raise StoreFull(f"{len(self._streams)} streams with {self._bytes} bytes: the store has no room for more")
        return gone

    def _fits(self, stream: _Stream | None, size: int) -> bool:
        count = len(self._streams) + (stream is None)
        return count <= self._bounds.streams and self._bytes + size <= self._bounds.events_bytes

    def _surplus(self, stream: _Stream | None, events: Sequence[bytes], size: int, now: float) -> tuple[int, int]:
        held: Iterable[tuple[float, bytes]] = () if stream is None else stream.events
        count, held_bytes = (0, 0) if stream is None else (len(stream.events), stream.bytes)
        sizes = ((at, len(data)) for at, data in chain(held, ((now, event) for event in events)))
        return surplus(sizes, count + len(events), held_bytes + size, now, self._bounds)


def _page(after: int, events: Iterable[tuple[float, bytes]], most: int, most_bytes: int) -> Iterable[Event]:
    size = 0
    for id, (_, data) in enumerate(islice(events, max(1, min(most, sys.maxsize))), after + 1):
        size += len(data)
        if size > most_bytes and id > after + 1:
            return
        yield Event(id, data)
