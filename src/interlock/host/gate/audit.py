"""The book of a host: one line for every decision and one for how each thing that was done ended, never changed.

A line about a decision is written before anything is done, and nothing is done when it cannot be written. What is
written down is redacted already (audit_writer.py): implement `Audit` to keep it elsewhere. One that also has
`write_many` is given outcomes a moment later and several at once."""

from __future__ import annotations

import errno
import os
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Literal, Protocol

import msgspec

from ...auth.client.token_storage import OPEN_FLAGS, check_private, locked
from ...state.private_folder import make_private_folder
from ...wire.errors import StoreError
from ...wire.escaping import display
from .action import Decision, Kind

__all__ = ["Audit", "AuditFailed", "Entry", "FileAudit", "MemoryAudit", "Outcome", "as_line"]

Outcome = Literal["", "done", "tool_error", "failed", "timeout", "cancelled"]
_MOST_BYTES = 16 * 1024 * 1024  # of one file; then the next begins
_LOOK_SECONDS = 1.0  # how long it may go unnoticed that somebody moved or filled the file
_KEEP = 8  # full files beside the one that is written; older ones are deleted
_encode = msgspec.json.Encoder().encode


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line. A decision says what was asked for, an outcome how it ended; both have the same `call`."""

    at: str
    """UTC."""
    call: str
    """The run of the host, and a number in it."""
    step: Literal["decision", "outcome"]
    principal: str
    kind: Kind
    server: str
    name: str
    decision: Decision | Literal[""] = ""
    rule: str = ""
    because: str = ""
    scope: str = ""
    """If a person was asked, or had been: for how long the answer counts."""
    digest: str = ""
    """Of the arguments, with a key of this run: equal ones are equal, and nothing can be guessed from it."""
    arguments: str = ""
    """JSON, redacted and cut."""
    sources: tuple[str, ...] = ()
    outcome: Outcome = ""
    error: str = ""
    ms: float = 0.0
    bytes: int = 0
    """Of the result, as far as it was looked at."""
    cut: bool = False
    """Was the result too long to be handed on whole?"""


def as_line(entry: Entry) -> bytes:
    """As it stands in a file."""
    return _encode(entry) + b"\n"


class AuditFailed(StoreError):
    """The book cannot be written, so nothing is done."""

    hint = "make room on the disk, or give the host another place for its audit log"


class Audit(Protocol):
    def write(self, entry: Entry) -> None:
        """Keep it for good, or raise: then what it speaks of is not done."""
        ...

    def close(self) -> None: ...


class MemoryAudit:
    """The newest entries of this process, for tests and for looking at."""

    def __init__(self, most: int = 10_000) -> None:
        self.entries: deque[Entry] = deque(maxlen=most)

    def write(self, entry: Entry) -> None:
        self.entries.append(entry)

    def close(self) -> None:
        pass


class FileAudit:
    """Lines of JSON in a file that only its owner can read (0600), appended by any number of processes.

    A full file is renamed to `<path>.1`, the one before to `<path>.2` and so on; more than `keep` are not kept. The
    system has every line when `write` or `write_many` returns; with `durable`, the disk has it.
    """

    def __init__(
        self, path: str | Path, *, most_bytes: int = _MOST_BYTES, keep: int = _KEEP, durable: bool = False
    ) -> None:
        self._path = Path(path).expanduser()
        self._most, self._keep, self._durable = most_bytes, keep, durable
        self._file: int | None = None
        self._is: tuple[int, int] | None = None
        self._torn = False
        self._size, self._looked = 0, 0.0

    def __repr__(self) -> str:
        return f"FileAudit({str(self._path)!r})"

    def write(self, entry: Entry) -> None:
        self.write_line(as_line(entry))

    def write_many(self, entries: Sequence[Entry]) -> None:
        """All of them at the price of one, where there is room for them in one file."""
        lines = [as_line(entry) for entry in entries]
        whole = lines[0] if len(lines) == 1 else b"".join(lines)
        for piece in (whole,) if self._size + len(whole) <= self._most else lines:
            self.write_line(piece)

    def write_line(self, piece: bytes) -> None:
        """An entry as it stands in the file, or several: for the ledger, which has most of it from the last time."""
        try:
            size, file = self._size + len(piece), self._file
            if file is None or size > self._most or self._torn or monotonic() - self._looked >= _LOOK_SECONDS:
                file = self._with_room_for(len(piece))
                if self._torn:
                    piece = b"\n" + piece  # what a full disk left of the last one is a line of its own
            else:
                self._size = size
            if os.write(file, piece) != len(piece):
                self._torn = True
                raise OSError(errno.ENOSPC, "a line was written in part only")
            self._torn = False
            if self._durable:
                os.fsync(file)
        except OSError as error:
            told = f"the audit log {display(str(self._path), 300)} cannot be written: {error.strerror or error}"
            raise AuditFailed(told) from error
        except StoreError as error:
            raise AuditFailed(str(error)) from error

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            os.close(file)

    def _with_room_for(self, size: int) -> int:
        """The file at the path, which somebody may have moved: what is written elsewhere is not in the book."""
        now = monotonic()
        if self._file is None or now - self._looked >= _LOOK_SECONDS:
            found = self._found()
            if self._file is None or found is None or (found.st_dev, found.st_ino) != self._is:
                self._open()
            else:
                self._size = found.st_size
            self._looked = now
        if self._size and self._size + size > self._most:
            self._rotate()
        self._size += size
        assert self._file is not None
        return self._file

    def _found(self) -> os.stat_result | None:
        try:
            return os.stat(self._path, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def _open(self) -> None:
        self.close()
        make_private_folder(self._path.parent)
        file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | OPEN_FLAGS, 0o600)
        try:
            found = os.fstat(file)
            check_private(found, f"the audit log {display(str(self._path), 300)}")
        except BaseException:
            os.close(file)
            raise
        self._file, self._is, self._size = file, (found.st_dev, found.st_ino), found.st_size

    def _rotate(self) -> None:
        """By one process at a time; who finds another one at it goes on in the file as it is."""
        release = self._hold()
        if release is None:
            return
        try:
            found = self._found()
            if found is not None and (found.st_dev, found.st_ino) == self._is:
                self.close()
                self._shift()
            self._open()
        finally:
            release()

    def _hold(self) -> Callable[[], None] | None:
        file = os.open(f"{self._path}.lock", os.O_RDWR | os.O_CREAT | OPEN_FLAGS, 0o600)
        if locked(file):
            return lambda: os.close(file)
        os.close(file)
        return None

    def _shift(self) -> None:
        if self._keep < 1:
            self._path.unlink()
            return
        for number in range(self._keep - 1, 0, -1):
            with suppress(FileNotFoundError):
                os.replace(f"{self._path}.{number}", f"{self._path}.{number + 1}")
        os.replace(self._path, f"{self._path}.1")
