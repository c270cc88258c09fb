"""The event logs of a SQLite store: plain functions on a turn, which is the transaction of whoever calls."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import chain, takewhile

import msgspec

from ...wire.errors import EventsGone, Fenced, StoreFull
from ..store import Event, surplus
from .transaction import Turn, blob

__all__ = ["append", "changed", "drop", "last", "last_stamp", "news", "purge_streams", "read", "trim"]

_COLUMNS = "id, start, trimmed, last, bytes, fence, until"
_AT_ONCE = 1000  # rows that one step of cleaning removes


class _Stream(msgspec.Struct):
    """A row: the log has the events with the ids `trimmed + 1` to `last`."""

    id: int
    start: int
    trimmed: int
    last: int
    bytes: int
    fence: int
    until: float


# --- reading --------------------------------------------------------------------------------------


def read(turn: Turn, name: str, after: int, most: int, most_bytes: int) -> list[Event]:
    stream = _find(turn, name)
    if stream is None:
        if after:
            raise EventsGone(f"there is no such stream, or not any more: nothing comes after {after}")
        return []
    after = after or stream.start
    if not stream.trimmed <= after <= stream.last:
        raise EventsGone(f"after {after}: only the events {stream.trimmed + 1} to {stream.last} are kept")
    where = "stream = ? AND id > ? ORDER BY id LIMIT ?"
    rows = turn.run(
        f"SELECT id, at, data FROM events WHERE {where}", stream.id, after, max(1, min(most, turn.bounds.stream_events))
    )
    with closing(rows):  # one that is held open holds its moment of the file, for all who read after it
        return list(_page(rows, most_bytes, turn.now - turn.bounds.event_seconds))


def last(turn: Turn, name: str) -> int:
    stream = _find(turn, name)
    return 0 if stream is None else stream.last


def news(turn: Turn, name: str, after: int) -> bool:
    """Would `read` return something or raise?"""
    stream = _find(turn, name)
    if stream is None:
        return after != 0
    return (after or stream.start) != stream.last


def last_stamp(turn: Turn) -> int:
    return turn.one("SELECT coalesce(max(stamp), 0) FROM streams")[0]


def changed(turn: Turn, since: int) -> list[tuple[str, int]]:
    """Which streams were appended to or dropped since that stamp, and their stamps, in their order."""
    rows = turn.run("SELECT name, stamp FROM streams WHERE stamp > ? ORDER BY stamp", since)
    return [(name.decode(), stamp) for name, stamp in rows]


def _page(rows: Iterable[tuple[int, float, bytes]], most_bytes: int, old: float) -> Iterator[Event]:
    size = 0
    for number, (id, at, data) in enumerate(rows):
        if at <= old:
            raise EventsGone(f"event {id} is not kept any more")
        size += len(data)
        if number and size > most_bytes:
            return
        yield Event(id, data)


# --- writing --------------------------------------------------------------------------------------


def append(turn: Turn, name: str, events: Sequence[bytes], size: int, until: float, fence: int) -> int:
    stream = _find(turn, name)
    if stream is None and not events:
        return 0
    if stream is not None and fence < stream.fence:
        raise Fenced(f"the fence {fence} is older than {stream.fence}")
    gone, freed = _room(turn, stream, events, size)
    if stream is None:
        stream = _begin(turn, name)
    rows = [(stream.id, id, turn.now, event) for id, event in enumerate(events, stream.last + 1)]
    turn.connection.executemany("INSERT INTO events (stream, id, at, data) VALUES (?, ?, ?, ?)", rows)
    turn.totals.events_bytes += size
    stream.last, stream.bytes = stream.last + len(events), stream.bytes + size
    stream.fence, stream.until = fence, until
    _forget(turn, stream, stream.trimmed + gone, freed)
    _update(turn, stream, turn.totals.next() if events else None)
    return stream.last


def trim(turn: Turn, name: str, through: int) -> None:
    stream = _find(turn, name)
    if stream is None or through <= stream.trimmed:
        return
    through = min(through, stream.last)
    size = "SELECT coalesce(sum(length(data)), 0) FROM events WHERE stream = ? AND id <= ?"
    _forget(turn, stream, through, turn.one(size, stream.id, through)[0])
    _update(turn, stream, None)


def drop(turn: Turn, name: str) -> bool:
    """Its row stays a while, expired and stamped: so other processes hear of the end."""
    stream = _find(turn, name)
    if stream is None:
        return False
    _forget(turn, stream, stream.last, stream.bytes)
    stream.until = turn.now
    _update(turn, stream, turn.totals.next())
    return True


def purge_streams(turn: Turn, before: float) -> int:
    """Forget some streams that expired before that time, and some events that are too old; how many."""
    rows = turn.run(f"SELECT {_COLUMNS} FROM streams WHERE until <= ? LIMIT ?", before, _AT_ONCE).fetchall()
    for row in rows:
        _end(turn, _Stream(*row))
    old = turn.now - turn.bounds.event_seconds
    aged = turn.run("SELECT DISTINCT stream FROM events WHERE at <= ? LIMIT ?", old, _AT_ONCE).fetchall()
    return len(rows) + sum(_forget_old(turn, id, old) for (id,) in aged)


# --- one row --------------------------------------------------------------------------------------


def _find(turn: Turn, name: str) -> _Stream | None:
    """The stream, if it lives."""
    found = turn.one(f"SELECT {_COLUMNS} FROM streams WHERE name = ? AND until > ?", blob(name), turn.now)
    return None if found is None else _Stream(*found)


def _begin(turn: Turn, name: str) -> _Stream:
    over = turn.one(f"SELECT {_COLUMNS} FROM streams WHERE name = ?", blob(name))
    if over is not None:
        _end(turn, _Stream(*over))
    start = turn.totals.highest
    values = "name, start, trimmed, last, bytes, fence, until, stamp"
    turn.totals.streams += 1
    id = turn.run(f"INSERT INTO streams ({values}) VALUES (?, ?, ?, ?, 0, 0, 0, 0)", blob(name), start, start, start)
    return _Stream(id.lastrowid or 0, start, start, start, 0, 0, 0.0)


def _end(turn: Turn, stream: _Stream) -> None:
    _forget(turn, stream, stream.last, stream.bytes)
    turn.run("DELETE FROM streams WHERE id = ?", stream.id)
    turn.totals.streams -= 1
    turn.totals.highest = max(turn.totals.highest, stream.last)


def _forget(turn: Turn, stream: _Stream, through: int, freed: int) -> None:
    """The events up to this one go; the row is written by whoever calls."""
    if through > stream.trimmed:
        turn.run("DELETE FROM events WHERE stream = ? AND id <= ?", stream.id, through)
        stream.trimmed = through
        stream.bytes -= freed
        turn.totals.events_bytes -= freed


def _forget_old(turn: Turn, id: int, old: float) -> int:
    stream = _Stream(*turn.one(f"SELECT {_COLUMNS} FROM streams WHERE id = ?", id))
    with closing(_sizes(turn, id)) as sizes:
        aged = list(takewhile(lambda event: event[0] <= old, sizes))
    _forget(turn, stream, stream.trimmed + len(aged), sum(size for _, size in aged))
    _update(turn, stream, None)
    return len(aged)


def _update(turn: Turn, stream: _Stream, stamp: int | None) -> None:
    row = (stream.trimmed, stream.last, stream.bytes, stream.fence, stream.until, stamp, stream.id)
    columns = "trimmed = ?, last = ?, bytes = ?, fence = ?, until = ?, stamp = coalesce(?, stamp)"
    turn.run(f"UPDATE streams SET {columns} WHERE id = ?", *row)


# --- room -----------------------------------------------------------------------------------------


def _room(turn: Turn, stream: _Stream | None, events: Sequence[bytes], size: int) -> tuple[int, int]:
    """How many of the stream's oldest have to go, and their bytes; raises where even that does not make room."""
    gone, freed = _surplus(turn, stream, events, size)
    if not _fits(turn, stream, size - freed):
        while purge_streams(turn, turn.now):
            pass
        if stream is not None:  # its old events may be among those that went
            row = turn.one(f"SELECT {_COLUMNS} FROM streams WHERE id = ?", stream.id)
            _, _, stream.trimmed, _, stream.bytes, _, _ = row
        gone, freed = _surplus(turn, stream, events, size)
    if not _fits(turn, stream, size - freed):
        count, held = turn.totals.streams, turn.totals.events_bytes
        raise StoreFull(f"{count} streams with {held} bytes: the store has no room for more")
    return gone, freed


def _fits(turn: Turn, stream: _Stream | None, size: int) -> bool:
    totals, bounds = turn.totals, turn.bounds
    return totals.streams + (stream is None) <= bounds.streams and totals.events_bytes + size <= bounds.events_bytes


def _surplus(turn: Turn, stream: _Stream | None, events: Sequence[bytes], size: int) -> tuple[int, int]:
    new = ((turn.now, len(event)) for event in events)
    if stream is None:
        return surplus(new, len(events), size, turn.now, turn.bounds)
    count = stream.last - stream.trimmed + len(events)
    with closing(_sizes(turn, stream.id)) as held:
        return surplus(chain(held, new), count, stream.bytes + size, turn.now, turn.bounds)


def _sizes(turn: Turn, id: int) -> sqlite3.Cursor:
    """When each event of a stream came and how large it is, the oldest first."""
    return turn.run("SELECT at, length(data) FROM events WHERE stream = ? ORDER BY id", id)
