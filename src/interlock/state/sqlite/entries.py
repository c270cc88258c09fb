"""The values of a SQLite store: plain functions on a turn, which is the transaction of whoever calls."""

from __future__ import annotations

import math
from typing import Any

from ...wire.errors import StoreFull
from ..store import Entry
from .transaction import Turn, blob

__all__ = ["delete", "delete_owned", "get", "purge_entries", "put", "take_expired"]

_AT_ONCE = 1000  # rows that one step of cleaning removes
_COLUMNS = "key, value, version, until, owner"


def get(turn: Turn, key: str, owner: str) -> Entry | None:
    where = "key = ? AND owner = ? AND until > ?"
    found = turn.one(f"SELECT {_COLUMNS} FROM entries WHERE {where}", blob(key), blob(owner), turn.now)
    return None if found is None else _entry(found)


def put(turn: Turn, entry: Entry, size: int, expect: int | None) -> int:
    key, owner = blob(entry.key), blob(entry.owner)
    size_of = "length(key) + length(value) + length(owner)"
    found = turn.one(f"SELECT version, owner, until, {size_of} FROM entries WHERE key = ?", key)
    version, holder, until, held_bytes = found or (0, owner, -math.inf, 0)
    alive = until > turn.now
    if (alive and holder != owner) or (expect is not None and expect != (version if alive else 0)):
        return 0
    more, growth = int(found is None), size - held_bytes
    _make_room(turn, key, more, growth)
    turn.totals.entries += more
    turn.totals.entries_bytes += growth
    row = (key, entry.value, turn.totals.next(), entry.until, owner)
    turn.run(f"INSERT OR REPLACE INTO entries ({_COLUMNS}) VALUES (?, ?, ?, ?, ?)", *row)
    return turn.totals.seq


def delete(turn: Turn, key: str, owner: str, expect: int | None) -> bool:
    found = get(turn, key, owner)
    if found is None or (expect is not None and expect != found.version):
        return False
    _remove(turn, [(blob(key), found.value, found.version, found.until, blob(owner))])
    return True


def delete_owned(turn: Turn, prefix: str, owner: str) -> int:
    start = blob(prefix)
    where = "key >= ? AND key < ? AND owner = ? AND until > ?"
    values = (
        start,
        start + b"\xff",
        blob(owner),
        turn.now,
    )  # no byte of UTF-8 is 0xff: keys with this prefix are below
    rows = turn.run(f"SELECT {_COLUMNS} FROM entries WHERE {where}", *values).fetchall()
    _remove(turn, rows)
    return len(rows)


def take_expired(turn: Turn, prefix: str, most: int) -> list[Entry]:
    start = blob(prefix)
    where = "until <= ? AND substr(key, 1, ?) = ? ORDER BY until LIMIT ?"
    values = (turn.now, len(start), start, max(0, most))
    rows = turn.run(f"SELECT {_COLUMNS} FROM entries WHERE {where}", *values).fetchall()
    _remove(turn, rows)
    return [_entry(row) for row in rows]


def purge_entries(turn: Turn, before: float, *, but: bytes = b"") -> int:
    """Forget some that expired before that time, the longest expired first; how many."""
    where = "until <= ? AND key != ? ORDER BY until LIMIT ?"
    rows = turn.run(f"SELECT {_COLUMNS} FROM entries WHERE {where}", before, but, _AT_ONCE).fetchall()
    _remove(turn, rows)
    return len(rows)


def _make_room(turn: Turn, key: bytes, more: int, growth: int) -> None:
    totals, bounds = turn.totals, turn.bounds
    while totals.entries + more > bounds.entries or totals.entries_bytes + growth > bounds.entries_bytes:
        if not purge_entries(turn, turn.now, but=key):
            told = f"{totals.entries} keys with {totals.entries_bytes} bytes: the store has no room for more"
            raise StoreFull(told)


def _remove(turn: Turn, rows: list[Any]) -> None:
    turn.connection.executemany("DELETE FROM entries WHERE key = ?", [(row[0],) for row in rows])
    turn.totals.entries -= len(rows)
    turn.totals.entries_bytes -= sum(len(row[0]) + len(row[1]) + len(row[4]) for row in rows)


def _entry(row: Any) -> Entry:
    key, value, version, until, owner = row
    return Entry(key.decode(), value, version, until, owner.decode())
