"""One transaction on the file of a SQLite store: the connection, the time it happens at, and what is in the file."""

from __future__ import annotations

import sqlite3
from typing import Any

import msgspec

from ..store import Bounds

__all__ = ["Totals", "Turn", "begin", "blob", "commit", "look"]


class Totals(msgspec.Struct):
    """What is in the file, so that no bound needs counting. One row, read and written by each writing transaction."""

    seq: int = 0
    """The last version or stamp given."""
    highest: int = 0
    """Id of a stream that ended: new ones go on above it, so no id is given twice."""
    entries: int = 0
    entries_bytes: int = 0
    streams: int = 0
    events_bytes: int = 0
    swept: float = 0.0
    """When somebody last cleaned up."""

    def next(self) -> int:
        self.seq += 1
        return self.seq


class Turn(msgspec.Struct):
    """What the functions on entries and streams work with."""

    connection: sqlite3.Connection
    bounds: Bounds
    now: float
    totals: Totals

    def run(self, sql: str, *values: Any) -> sqlite3.Cursor:
        return self.connection.execute(sql, values)

    def one(self, sql: str, *values: Any) -> Any:
        return self.connection.execute(sql, values).fetchone()


def blob(name: str) -> bytes:
    """A name as the file has it: any text at all can be asked for, though not any is written."""
    return name.encode("utf-8", "surrogatepass")


def begin(connection: sqlite3.Connection, bounds: Bounds, now: float) -> Turn:
    """A turn that may write; waits for that of another process."""
    connection.execute("BEGIN IMMEDIATE")
    row = connection.execute(f"SELECT {_COLUMNS} FROM totals").fetchone()
    return Turn(connection, bounds, now, Totals(*row))


def commit(turn: Turn) -> None:
    turn.run(f"UPDATE totals SET ({_COLUMNS}) = ({_PLACES})", *msgspec.structs.astuple(turn.totals))
    turn.run("COMMIT")


def look(connection: sqlite3.Connection, bounds: Bounds, now: float) -> Turn:
    """A turn that only reads, all of it the same moment of the file; ended by a rollback."""
    connection.execute("BEGIN")
    return Turn(connection, bounds, now, Totals())


_COLUMNS = ", ".join(Totals.__struct_fields__)
_PLACES = ", ".join("?" for _ in Totals.__struct_fields__)
