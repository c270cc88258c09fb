"""Where tokens and registrations are kept: in memory, in files that only their owner can read, or in a keyring.

All three are small tables of bytes, and a record can be held: then nobody else who shares the table has it, in this
process or another. Holding never blocks; who does not get it asks again.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, cast

import msgspec

from ...state.private_folder import make_private_folder
from ...wire.errors import LocalError, StoreError, StoreFull

__all__ = [
    "OPEN_FLAGS",
    "FileRecords",
    "KeyringRecords",
    "MemoryRecords",
    "Records",
    "Release",
    "check_private",
    "locked",
    "records_of",
]

_MOST_BYTES = 1024 * 1024  # of one record; a larger one is refused, and a larger file is not ours
OPEN_FLAGS = os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0) if os.name != "nt" else getattr(os, "O_BINARY", 0)
Release = Callable[[], None]


class Records(Protocol):
    """Write one of your own to keep tokens elsewhere; its methods may block."""

    def load(self, key: str) -> bytes | None: ...

    def save(self, key: str, value: bytes | None) -> None:
        """Whole or not at all; None removes it."""
        ...

    def try_hold(self, key: str) -> Release | None:
        """Take the record for ourselves, until what is returned is called; None: somebody else has it."""
        ...


class MemoryRecords:
    """As long as the process."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}
        self._held: set[str] = set()
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"MemoryRecords({len(self._values)} records)"

    def load(self, key: str) -> bytes | None:
        return self._values.get(key)

    def save(self, key: str, value: bytes | None) -> None:
        if value is None:
            self._values.pop(key, None)
        else:
            self._values[key] = value

    def try_hold(self, key: str) -> Release | None:
        with self._lock:
            if key in self._held:
                return None
            self._held.add(key)
        return lambda: self._held.discard(key)


class _Kept(msgspec.Struct):
    key: str
    value: msgspec.Raw


class FileRecords:
    """One file (0600) per record in a directory of the owner's (0700); every change replaces a file whole."""

    def __init__(self, folder: str | Path, *, what: str = "a token record", most_bytes: int = _MOST_BYTES) -> None:
        self._folder = Path(folder).expanduser()
        self._what, self._most = what, most_bytes

    def __repr__(self) -> str:
        return f"FileRecords({str(self._folder)!r})"

    def load(self, key: str) -> bytes | None:
        try:
            file = os.open(self._path(key, "json"), os.O_RDONLY | OPEN_FLAGS)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(f"{self._what} cannot be read: {error.strerror}") from None
        with os.fdopen(file, "rb") as opened:
            check_private(os.fstat(file), self._what)
            data = opened.read(self._most + 1)
        try:
            kept = msgspec.json.decode(data, type=_Kept)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None  # damaged: what it held can be had again
        return bytes(kept.value) if kept.key == key and len(data) <= self._most else None

    def save(self, key: str, value: bytes | None) -> None:
        path = self._path(key, "json")
        try:
            if value is None:
                path.unlink(missing_ok=True)
                return
            data = msgspec.json.encode(_Kept(key, msgspec.Raw(value)))
            if len(data) > self._most:  # nobody would read it back
                raise StoreFull(f"{self._what} of {len(data)} bytes is larger than {self._most}")
            self._make()
            self._replace(path, data)
        except OSError as error:
            raise StoreError(f"{self._what} cannot be written: {error.strerror}") from None

    def _replace(self, path: Path, data: bytes) -> None:
        beside = path.with_suffix(f".{secrets.token_hex(8)}.new")
        file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | OPEN_FLAGS, 0o600)
        try:
            with os.fdopen(file, "wb") as opened:
                opened.write(data)
                opened.flush()
                os.fsync(file)
            os.replace(beside, path)
        except BaseException:
            with suppress(OSError):
                beside.unlink()
            raise

    def try_hold(self, key: str) -> Release | None:
        try:
            self._make()
            file = os.open(self._path(key, "lock"), os.O_RDWR | os.O_CREAT | OPEN_FLAGS, 0o600)
        except OSError as error:
            raise StoreError(f"{self._what} cannot be held: {error.strerror}") from None
        if not locked(file):
            os.close(file)
            return None
        return lambda: os.close(file)  # the system lets go of the lock with it, also when the process dies

    def _path(self, key: str, kind: str) -> Path:
        return self._folder / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.{kind}"

    def _make(self) -> None:
        make_private_folder(self._folder)
        check_private(self._folder.stat(), f"the directory of {self._what}")


def check_private(found: os.stat_result, what: str) -> None:
    """Raises unless it is the owner's, who runs this, and nobody else's."""
    if os.name == "nt":
        return
    if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise StoreError(f"{what} can be used by others than its owner: that must be changed first (chmod go-rwx)")


def locked(file: int) -> bool:
    """Is the open file ours alone now? Until it is closed, and never waiting for somebody else."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


class KeyringRecords:
    """In the keyring of the system, by the package `keyring`, which is not installed with this one.

    A keyring has no locks, so that empty files in `locks` stand for them.
    """

    def __init__(self, service: str = "interlock", locks: str | Path = "~/.interlock/locks") -> None:
        try:
            import keyring  # pyright: ignore
        except ImportError:
            raise LocalError('tokens="keyring" needs the package keyring: install it, or give a directory') from None
        self._keyring = cast(Any, keyring)
        self._service = service
        self._locks = FileRecords(locks)

    def load(self, key: str) -> bytes | None:
        found = self._keyring.get_password(self._service, key)
        return found.encode() if isinstance(found, str) else None

    def save(self, key: str, value: bytes | None) -> None:
        if value is not None:
            self._keyring.set_password(self._service, key, value.decode())
        elif self.load(key) is not None:
            self._keyring.delete_password(self._service, key)

    def try_hold(self, key: str) -> Release | None:
        return self._locks.try_hold(key)


def records_of(tokens: Any) -> Records:
    """What `tokens=` means: nothing, the name of a directory, "keyring", or a `Records` of the owner's."""
    if tokens is None:
        return MemoryRecords()
    if tokens == "keyring":
        return KeyringRecords()
    if isinstance(tokens, str | Path):
        return FileRecords(tokens)
    if all(hasattr(tokens, name) for name in ("load", "save", "try_hold")):
        return cast(Records, tokens)
    raise LocalError('tokens= is a directory, "keyring", or an object with load, save and try_hold')
