"""The file of a SQLite store: who may read it, which schema it has, and what is said when it cannot be used.

The journal is a write-ahead log: readers never wait for the writer, and what was committed survives the death of any
process. It needs memory shared between the processes, so the file has to be on a disk of this machine.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
import time
from pathlib import Path

from ...wire.errors import LocalError, StoreError
from ...wire.escaping import display

__all__ = ["BUSY_SECONDS", "StoreFile", "connect", "told"]

BUSY_SECONDS = 10.0  # for another process to end its transaction; then `StoreError`
_MARK = 0x1A7E10C5  # application id in the header: this file is a store of ours
_SCHEMA_VERSION = 2
_JOURNAL_BYTES = 64 * 1024 * 1024  # to which the journal is cut after it was larger
_BEGIN_ANEW = "move it away with its -wal and -shm to begin anew"
_REPLACED = "moved, deleted or replaced while it was in use: put it back, or restart all processes that use it"
_NO_FILE = ":memory:"  # what SQLite takes for a database that is only one connection's
_making = threading.Lock()
_SCHEMA = """
CREATE TABLE identity (id BLOB NOT NULL);
INSERT INTO identity VALUES (randomblob(16));
CREATE TABLE totals (
    seq INTEGER NOT NULL, highest INTEGER NOT NULL, entries INTEGER NOT NULL, entries_bytes INTEGER NOT NULL,
    streams INTEGER NOT NULL, events_bytes INTEGER NOT NULL, swept REAL NOT NULL);
INSERT INTO totals VALUES (0, 0, 0, 0, 0, 0, 0);
CREATE TABLE entries (
    key BLOB PRIMARY KEY, value BLOB NOT NULL, version INTEGER NOT NULL, until REAL NOT NULL, owner BLOB NOT NULL);
CREATE INDEX entries_until ON entries (until);
CREATE TABLE streams (
    id INTEGER PRIMARY KEY AUTOINCREMENT, name BLOB NOT NULL UNIQUE, start INTEGER NOT NULL, trimmed INTEGER NOT NULL,
    last INTEGER NOT NULL, bytes INTEGER NOT NULL, fence INTEGER NOT NULL, until REAL NOT NULL, stamp INTEGER NOT NULL);
CREATE INDEX streams_until ON streams (until);
CREATE INDEX streams_stamp ON streams (stamp);
CREATE TABLE events (
    stream INTEGER NOT NULL, id INTEGER NOT NULL, at REAL NOT NULL, data BLOB NOT NULL, PRIMARY KEY (stream, id));
CREATE INDEX events_at ON events (at);
"""


class StoreFile:
    """The file that a store began with. Another file at its path is another store, with other sessions and workers, and
    is refused until the store is opened again: processes that switched to it would disagree with those that did not."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if os.fspath(path) == _NO_FILE:  # each of our threads would have a store of its own
            raise LocalError(f"{_NO_FILE} is no file, and nobody could share it: name one, or leave it out")
        self.path = Path(path).absolute()  # a handler may change the folder of the process
        self._lock = threading.Lock()
        self._place: tuple[int, int] | None = None
        self._identity: bytes | None = None

    def connect(self, *, durable: bool) -> sqlite3.Connection:
        self.check()
        connection = connect(self.path, durable=durable)
        try:
            self._identify(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _identify(self, connection: sqlite3.Connection) -> None:
        """The inode of a deleted file is given to the next one once no connection holds it open: only the id inside
        tells the two apart."""
        [identity] = connection.execute("SELECT id FROM identity").fetchone()
        with self._lock:
            if self._identity is None:
                self._identity, self._place = identity, self._now()
        if identity != self._identity:
            raise self._replaced()

    def check(self) -> None:
        """Raises if the path leads elsewhere by now. Exact while a connection is open."""
        if self._place is not None and self._place != self._now():
            raise self._replaced()

    def _replaced(self) -> StoreError:
        return StoreError(f"{display(str(self.path), 300)}: {_REPLACED}")

    def _now(self) -> tuple[int, int] | None:
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino


def connect(path: Path, *, durable: bool) -> sqlite3.Connection:
    """A connection for the thread that calls, to a file that is there, ours and of our schema."""
    _make(path)
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, cached_statements=64)
    try:
        version = _version(connection, path)  # before anything is changed: it may not be ours
        _write_ahead(connection)
        connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        connection.execute(f"PRAGMA journal_size_limit = {_JOURNAL_BYTES}")
        if version == 0:
            _create(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def told(error: Exception, path: Path) -> StoreError:
    """The same in our words: what is wrong with which file, and what to do."""
    where, code = display(str(path), 300), getattr(error, "sqlite_errorcode", 0) & 0xFF
    if isinstance(error, StoreError):
        return type(error)(*error.args)  # one for each who hears it
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreError(f"{where}: another process has kept it locked for more than {BUSY_SECONDS:g} s")
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return StoreError(f"{where}: damaged, or no store at all; {_BEGIN_ANEW}")
    if code == sqlite3.SQLITE_FULL:
        return StoreError(f"{where}: the disk is full, or the quota of this account; free some space")
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM) or isinstance(error, OSError):
        return StoreError(f"{where}: cannot be opened for writing ({display(str(error), 200)})")
    return StoreError(f"{where}: {display(str(error), 200)}")


def _make(path: Path) -> None:
    """The file holds sessions and what they said: readable by its owner alone, from its first moment on.

    SQLite gives the journal beside it the same rights. A file that is there already is looked at and not opened:
    closing it would take away the locks that other connections of this process hold on it (POSIX knows no better),
    and for the same reason nobody here connects while a new one is being made.
    """
    with _making:
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            pass
        mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        raise StoreError(f"{display(str(path), 300)}: not a regular file")
    if os.name == "posix" and mode & 0o077:
        raise StoreError(f"{display(str(path), 300)}: others may use this file ({stat.filemode(mode)}): chmod 600")


def _write_ahead(connection: sqlite3.Connection) -> None:
    """The change itself does not wait for a lock as everything else does, so waiting is done here."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _version(connection: sqlite3.Connection, path: Path) -> int:
    """0 for an empty file; another program's file, or one of a later version, is not touched."""
    [tables] = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if not tables:  # asked first: who sees tables sees all that was committed with them
        return 0
    [version], [mark] = (connection.execute(f"PRAGMA {name}").fetchone() for name in ("user_version", "application_id"))
    if mark != _MARK:
        raise StoreError(f"{display(str(path), 300)}: a database of another program")
    if version != _SCHEMA_VERSION:
        told = f"schema {version}, this version of Interlock has {_SCHEMA_VERSION}: name another file, or {_BEGIN_ANEW}"
        raise StoreError(f"{display(str(path), 300)}: {told}")
    return version


def _create(connection: sqlite3.Connection, path: Path) -> None:
    """One of several processes does it; the others wait and find it done."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        if _version(connection, path) == 0:
            for statement in filter(None, map(str.strip, _SCHEMA.split(";"))):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {_MARK}")
            connection.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
