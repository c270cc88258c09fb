"""A store as a model anybody can check by reading, and a state machine that compares a real one with it.

The model forgets nothing and counts everything anew at each question; the real ones keep books.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from interlock.wire.errors import EventsGone, Fenced, StoreFull
from support.stores import Clock, make

__all__ = ["machine"]

BOUNDS: dict[str, Any] = {
    "entries": 3,
    "entries_bytes": 24,
    "stream_events": 4,
    "stream_bytes": 12,
    "event_seconds": 30.0,
    "streams": 2,
    "events_bytes": 18,
    "linger_seconds": 1e9,
}
KEYS, OWNERS, STREAMS = st.sampled_from("abcd"), st.sampled_from(["", "me"]), st.sampled_from("xyz")
VALUES, LIVES = st.binary(max_size=12), st.sampled_from([0, 5, 50, float("inf")])


class ModelStream:
    def __init__(self, start: int) -> None:
        self.start = self.trimmed = start
        self.events: list[tuple[float, bytes]] = []  # all there ever were
        self.fence, self.until = 0, 0.0

    @property
    def last(self) -> int:
        return self.start + len(self.events)

    def kept(self) -> list[tuple[float, bytes]]:
        return self.events[self.trimmed - self.start :]

    def trim(self, now: float) -> None:
        while kept := self.kept():
            many = len(kept) > BOUNDS["stream_events"] or (len(kept) > 1 and size(kept) > BOUNDS["stream_bytes"])
            if not many and kept[0][0] > now - BOUNDS["event_seconds"]:
                return
            self.trimmed += 1

    def age(self, now: float) -> None:
        while (kept := self.kept()) and kept[0][0] <= now - BOUNDS["event_seconds"]:
            self.trimmed += 1


def size(events: list[tuple[float, bytes]]) -> int:
    return sum(len(data) for _, data in events)


class Machine(RuleBasedStateMachine):
    kind = ""

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.clock = Clock()
        self.loop = asyncio.new_event_loop()
        self.store = make(self.kind, self.folder, self.clock, **BOUNDS)
        self.live: dict[str, tuple[bytes, str, float, int]] = {}
        self.over: dict[str, tuple[bytes, str, float, int]] = {}
        self.streams: dict[str, ModelStream] = {}
        self.given: dict[str, int] = {}  # the last id of streams that ended
        self.version = 0

    def teardown(self) -> None:
        if hasattr(self, "loop"):
            self.loop.run_until_complete(self.store.close())
            self.loop.close()
            shutil.rmtree(self.folder)

    def ask(self, call: Any) -> Any:
        """What it returns, or the class of what it raises."""
        try:
            return self.loop.run_until_complete(call)
        except (StoreFull, Fenced, EventsGone) as error:
            return type(error)

    # --- values ---

    @rule(seconds=st.sampled_from([1.0, 5.0, 29.0, 30.0]))
    def time_passes(self, seconds: float) -> None:
        self.clock.now += seconds
        self.expire()

    def expire(self) -> None:
        now = self.clock.now
        for key in [key for key, entry in self.live.items() if entry[2] <= now]:
            self.over[key] = self.live.pop(key)
        for name in [name for name, stream in self.streams.items() if stream.until <= now]:
            self.end(name)

    def fits(self, key: str, value: bytes, owner: str) -> bool:
        """What expired makes room, so only what lives counts."""
        rest = [(k, v, o) for k, (v, o, _, _) in self.live.items() if k != key]
        total = sum(len(k) + len(v) + len(o) for k, v, o in [*rest, (key, value, owner)])
        return len(rest) + 1 <= BOUNDS["entries"] and total <= BOUNDS["entries_bytes"]

    @rule(key=KEYS, value=VALUES, life=LIVES, owner=OWNERS, data=st.data())
    def put(self, key: str, value: bytes, life: float, owner: str, data: st.DataObject) -> None:
        held = self.live.get(key)
        expect = data.draw(st.sampled_from([None, 0, 1, held[3] if held else 2]))
        until = self.clock.now + life
        found = self.ask(self.store.put(key, value, until=until, owner=owner, expect=expect))
        if (held and held[1] != owner) or (expect is not None and expect != (held[3] if held else 0)):
            assert found == 0
        elif not self.fits(key, value, owner):
            assert found is StoreFull
            self.over.clear()  # it may have tried to make room: what is taken later is one of those before
            self.ask(self.store.take_expired("", 1000))
        else:
            assert found > self.version
            self.version = found
            self.over.pop(key, None)
            self.live[key] = (value, owner, until, found)
            self.expire()

    @rule(key=KEYS, owner=OWNERS)
    def get(self, key: str, owner: str) -> None:
        entry, held = self.ask(self.store.get(key, owner=owner)), self.live.get(key)
        if held is None or held[1] != owner:
            assert entry is None
        else:
            assert (entry.value, entry.owner, entry.until, entry.version) == held

    @rule(key=KEYS, owner=OWNERS, right=st.booleans())
    def delete(self, key: str, owner: str, right: bool) -> None:
        held = self.live.get(key)
        expect = None if right else -1
        done = self.ask(self.store.delete(key, owner=owner, expect=expect))
        assert done == (held is not None and held[1] == owner and right)
        if done:
            del self.live[key]

    @rule(prefix=st.sampled_from(["", "a", "b"]), owner=OWNERS)
    def delete_owned(self, prefix: str, owner: str) -> None:
        theirs = [key for key, held in self.live.items() if held[1] == owner and key.startswith(prefix)]
        assert self.ask(self.store.delete_owned(prefix, owner=owner)) == len(theirs)
        for key in theirs:
            del self.live[key]

    @rule(prefix=st.sampled_from(["", "a", "b"]), most=st.sampled_from([0, 1, 100]))
    def take_expired(self, prefix: str, most: int) -> None:
        taken = self.ask(self.store.take_expired(prefix, most))
        assert len(taken) <= most
        for entry in taken:
            assert entry.key.startswith(prefix)
            assert (entry.value, entry.owner, entry.until, entry.version) == self.over.pop(entry.key)
        assert [entry.until for entry in taken] == sorted(entry.until for entry in taken)

    # --- streams ---

    def end(self, name: str) -> None:
        self.given[name] = self.streams.pop(name).last

    @rule(
        name=STREAMS, events=st.lists(st.binary(max_size=8), max_size=4), life=LIVES, fence=st.sampled_from([0, 0, 1])
    )
    def append(self, name: str, events: list[bytes], life: float, fence: int) -> None:
        until, now = self.clock.now + life, self.clock.now
        found = self.ask(self.store.append(name, events, until=until, fence=fence))
        held = self.streams.get(name)
        if held is None and not events:
            assert found == 0
        elif held is not None and fence < held.fence:
            assert found is Fenced
        elif found is StoreFull:
            assert not self.has_room(name, events)
        else:
            stream = self.streams.setdefault(name, held or ModelStream(found - len(events)))
            assert held is not None or stream.start >= self.given.get(name, 0)
            stream.events += [(now, event) for event in events]
            stream.fence, stream.until = fence, until
            stream.trim(now)
            assert found == stream.last
            assert len(self.streams) <= BOUNDS["streams"]
            assert sum(size(stream.kept()) for stream in self.aged()) <= BOUNDS["events_bytes"]
            self.expire()

    def aged(self) -> list[ModelStream]:
        for stream in self.streams.values():
            stream.age(self.clock.now)
        return list(self.streams.values())

    def has_room(self, name: str, events: list[bytes]) -> bool:
        """Once all that is old has gone, and the stream's own surplus too."""
        held = self.streams.get(name)
        new = ModelStream(0)
        new.events = [*(held.kept() if held else []), *((self.clock.now, event) for event in events)]
        new.trim(self.clock.now)
        others = [stream for stream in self.aged() if stream is not held]
        total = size(new.kept()) + sum(size(stream.kept()) for stream in others)
        return len(others) + 1 <= BOUNDS["streams"] and total <= BOUNDS["events_bytes"]

    @rule(
        name=STREAMS, after=st.integers(0, 20), most=st.sampled_from([1, 2, 100]), room=st.sampled_from([1, 10, 1000])
    )
    def read(self, name: str, after: int, most: int, room: int) -> None:
        found = self.ask(self.store.read(name, after, most=most, most_bytes=room))
        stream = self.streams.get(name)
        if stream is None:
            assert found == [] if after == 0 else found is EventsGone
            return
        stream.age(self.clock.now)
        after = after or stream.start
        if not stream.trimmed <= after <= stream.last:
            assert found is EventsGone
            return
        rest = stream.events[after - stream.start :][:most]
        assert [(event.id, event.data) for event in found] == [
            (id, data) for id, (_, data) in enumerate(rest[: len(found)], after + 1)
        ]
        assert bool(found) == bool(rest)
        assert len(found) <= 1 or sum(len(event.data) for event in found) <= room
        if len(found) < len(rest):
            assert size(rest[: len(found) + 1]) > room

    @rule(name=STREAMS, after=st.integers(0, 20))
    def wait(self, name: str, after: int) -> None:
        stream = self.streams.get(name)
        expected = after != 0 if stream is None else (after or stream.start) != stream.last
        assert self.ask(self.store.wait(name, after, seconds=0)) == expected
        assert self.ask(self.store.last(name)) == (0 if stream is None else stream.last)

    @rule(name=STREAMS, through=st.integers(0, 20))
    def trim(self, name: str, through: int) -> None:
        self.ask(self.store.trim(name, through))
        if stream := self.streams.get(name):
            stream.trimmed = max(stream.trimmed, min(through, stream.last))

    @rule(name=STREAMS)
    def drop(self, name: str) -> None:
        assert self.ask(self.store.drop(name)) == (name in self.streams)
        if name in self.streams:
            self.end(name)


def machine(kind: str) -> type[Machine]:
    return type(f"{kind.title()}Machine", (Machine,), {"kind": kind})
