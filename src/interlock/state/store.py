"""What must last beyond one request, behind two small interfaces: values under keys, and logs of events.

The docstrings here are the contract; tests/state/test_store.py proves each sentence for every implementation. All of
it is bytes: whoever stores something knows its shape, the store does not. All times are Unix times, because several
processes read them. Every call is legal from any task, and from any thread that runs a loop.

A call that was cancelled may or may not have happened; one that returned has happened, for everybody who asks later.
A name that breaks its bound is refused where something would be written, and is simply absent everywhere else.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Protocol

import msgspec

from ..wire.errors import LocalError
from ..wire.escaping import display
from ..wire.limits import MIB

__all__ = [
    "Bounds",
    "Bus",
    "DEFAULT_BOUNDS",
    "Entry",
    "Event",
    "State",
    "Store",
    "check_entry",
    "check_events",
    "check_name",
    "surplus",
]


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """What a store holds at most. What happens at each bound is said beside it."""

    name_bytes: int = 512
    """Of a key, an owner or a stream's name, in UTF-8; longer is a `LocalError`."""
    value_bytes: int = 1 * MIB
    """Of one value; more is a `LocalError`."""
    entries: int = 100_000
    """Keys at once; a further one raises `StoreFull` once everything that expired has made room."""
    entries_bytes: int = 256 * MIB
    """Of all keys, owners and values together; beyond it as above."""
    event_bytes: int = 64 * MIB
    """Of one event: what a message may have. More is a `LocalError`."""
    stream_events: int = 10_000
    """Events of one stream; its oldest go. More in a single `append` are a `LocalError`."""
    stream_bytes: int = 16 * MIB
    """Of one stream's events; its oldest go, never the newest one."""
    event_seconds: float = 600.0
    """Age at which an event goes."""
    streams: int = 100_000
    """Streams at once; a further one raises `StoreFull` once what expired has made room (looked for once a second)."""
    events_bytes: int = 512 * MIB
    """Of the events of all streams together; beyond it as above."""
    linger_seconds: float = 300.0
    """How long an expired entry waits for `take_expired`, at least, if the room is not needed."""


DEFAULT_BOUNDS = Bounds()


class Entry(msgspec.Struct, frozen=True):
    """A value and what is known about it."""

    key: str
    value: bytes
    version: int
    """Increases with every write to the store, over all keys: never the same twice, so it can serve as a fence."""
    until: float
    owner: str


class Event(msgspec.Struct, frozen=True):
    """One event of a stream."""

    id: int
    data: bytes


class Store(Protocol):
    """Values under keys, each with an end and an owner.

    Whose owner is another is as good as absent to who asks: it is not read, replaced or deleted, and nothing tells it
    from a key that does not exist but that it cannot be taken.
    """

    async def get(self, key: str, *, owner: str = "") -> Entry | None:
        """The entry, or None where there is none, it has expired or it is another owner's."""
        ...

    async def put(self, key: str, value: bytes, *, until: float, owner: str = "", expect: int | None = None) -> int:
        """Write, and return the entry's new version; 0 where nothing was written.

        With `expect`, only over that version (compare and set); with 0, only where no entry is (put if absent): of
        several who try at once exactly one succeeds. An expired entry is none. Over another owner's entry: never.
        `until` may be `math.inf`. Raises `StoreFull` where there is no room: nothing that lives is thrown out.
        """
        ...

    async def delete(self, key: str, *, owner: str = "", expect: int | None = None) -> bool:
        """Remove it, with `expect` only in that version; False where nothing was removed."""
        ...

    async def delete_owned(self, prefix: str, *, owner: str) -> int:
        """Remove all entries of that owner whose keys begin with `prefix`, in one step; how many lived until then."""
        ...

    async def take_expired(self, prefix: str = "", most: int = 100) -> list[Entry]:
        """Remove entries that have expired, of any owner, and return them: each goes to one caller only.

        The longest expired first. They wait `Bounds.linger_seconds` to be taken; after that, or when room is needed,
        they go without a word. Also removes all that nobody needs any more, so it is worth calling now and then.
        """
        ...


class Bus(Protocol):
    """Streams of events, with ids that grow by one: what is read is in order, without gap and without duplicate.

    A stream begins with its first `append` and ends with `drop` or when it expires. A name may be used again; its ids
    then go on above all that were ever given under it.
    """

    async def append(self, stream: str, events: Sequence[bytes], *, until: float, fence: int = 0) -> int:
        """Append all of them or none, and return the id of the stream's last event.

        The stream now expires at `until`; without events that is all that happens (no stream begins). A stream
        remembers the highest `fence` that it saw, and raises `Fenced` at a lower one: who took a session over with a
        newer version of its entry locks out who held it before. Raises `StoreFull` where there is no room.
        """
        ...

    async def read(self, stream: str, after: int = 0, *, most: int = 100, most_bytes: int = MIB) -> list[Event]:
        """The events after that id, the first `most` of them or fewer, at least one if there is one.

        After 0 they come from the beginning of the stream. Raises `EventsGone` where one of them is not kept any
        more, or where `after` is no id of this stream: who was promised no gap hears of it.
        """
        ...

    async def last(self, stream: str) -> int:
        """The id of the last event, also when that was trimmed; 0 where there is no such stream."""
        ...

    async def wait(self, stream: str, after: int = 0, *, seconds: float) -> bool:
        """Wait until `read` would return something or raise `EventsGone`; False when the time passed first.

        Wakes at an append or a drop of any process. At the stream's expiry it need not wake.
        """
        ...

    async def trim(self, stream: str, through: int) -> None:
        """Forget the events up to and with that id: whoever reads has them. Ids go on as before."""
        ...

    async def drop(self, stream: str) -> bool:
        """End a stream and forget its events; False where there was none."""
        ...


class State(Store, Bus, Protocol):
    """Both, behind one door. Opens itself at the first call; `close` may come twice, and nothing comes after it."""

    @property
    def shared(self) -> bool:
        """Do other processes see what is kept here?"""
        ...

    async def close(self) -> None:
        """Finish what was begun and let go of threads and files."""
        ...


# --- what every implementation refuses alike --------------------------------------------------------


def check_name(name: str, bounds: Bounds) -> None:
    """A key, an owner or the name of a stream."""
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise LocalError(f"{display(ascii(name), 100)} is no text that UTF-8 can say") from None
    if size > bounds.name_bytes:
        raise LocalError(f"a name of {size} bytes: keys, owners and streams have at most {bounds.name_bytes}")


def check_entry(key: str, value: bytes, until: float, owner: str, bounds: Bounds) -> int:
    """Everything about an entry; what it counts against `entries_bytes`."""
    check_name(key, bounds)
    check_name(owner, bounds)
    _check_until(until)
    if len(value) > bounds.value_bytes:
        raise LocalError(f"a value of {len(value)} bytes: at most {bounds.value_bytes} are kept")
    return len(value) + len(key.encode()) + len(owner.encode())


def check_events(stream: str, events: Sequence[bytes], until: float, fence: int, bounds: Bounds) -> int:
    """Everything about an append; the bytes of its events."""
    check_name(stream, bounds)
    _check_until(until)
    if not 0 <= fence < 1 << 63:
        raise LocalError(f"a fence of {fence:.3g}: it is the version of an entry, or 0")
    if len(events) > bounds.stream_events:
        raise LocalError(f"{len(events)} events at once: a stream keeps {bounds.stream_events}")
    largest = max(map(len, events), default=0)
    if largest > bounds.event_bytes:
        raise LocalError(f"an event of {largest} bytes: at most {bounds.event_bytes} are kept")
    return sum(map(len, events))


def _check_until(until: float) -> None:
    if math.isnan(until):
        raise LocalError("until: not a number; what shall be kept for ever says math.inf")


def surplus(events: Iterable[tuple[float, int]], count: int, size: int, now: float, bounds: Bounds) -> tuple[int, int]:
    """How many of a stream's oldest events go, and their bytes.

    `events` are their times and sizes, the oldest first; `count` and `size` are those of all of them.
    """
    gone = freed = 0
    for at, length in events:
        crowded = count - gone > bounds.stream_events or (size - freed > bounds.stream_bytes and count - gone > 1)
        if not crowded and at > now - bounds.event_seconds:
            break
        gone, freed = gone + 1, freed + length
    return gone, freed
