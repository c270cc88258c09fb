"""A text file changed as a whole: another program never sees half of it, and a change of its own is never lost.

Programs write their settings while they run. What was read is written back only while the file is as it was read; else
the change is made again to what is there now.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ...client.config.parser import ConfigError
from ...wire.escaping import display

__all__ = ["change_file", "read_whole"]

MOST_BYTES = 16 * 1024 * 1024  # settings are smaller; a larger file is left alone
MOST_TRIES = 5  # while another program writes the file again and again
_MARK = b"\xef\xbb\xbf"
_State = tuple[int, int, int] | None


def read_whole(path: Path) -> str:
    """The text of the file without a mark at its beginning; nothing where there is no file."""
    return _read(path)[1]


def change_file(path: Path, change: Callable[[str], str]) -> bool:
    """Write `change(text)`; whether there was anything to write. A link stays a link: what it leads to is changed."""
    real = Path(os.path.realpath(path))
    for _ in range(MOST_TRIES):
        mark, text, state = _read(real)
        changed = change(text)
        if changed == text:
            return False
        if _replace(real, mark + _encoded(changed, path), state):
            return True
    raise ConfigError(f"{display(str(path), 300)}: another program keeps writing it; nothing was changed")


def _read(path: Path) -> tuple[bytes, str, _State]:
    where = display(str(path), 300)
    try:
        with open(path, "rb") as file:
            state = _state(os.fstat(file.fileno()))
            data = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        return b"", "", None
    except OSError as error:
        raise ConfigError(f"{where} cannot be read: {error.strerror}") from None
    if len(data) > MOST_BYTES:
        raise ConfigError(f"{where} is larger than {MOST_BYTES} bytes")
    mark = _MARK if data.startswith(_MARK) else b""
    try:
        return mark, data[len(mark) :].decode("utf-8"), state
    except UnicodeDecodeError as error:
        raise ConfigError(f"{where} is no UTF-8 (byte {error.start})") from None


def _encoded(text: str, path: Path) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise ConfigError(f"{display(str(path), 300)}: a name or a path has no spelling in UTF-8") from None


def _state(found: os.stat_result) -> _State:
    return found.st_ino, found.st_size, found.st_mtime_ns


def _replace(path: Path, data: bytes, state: _State) -> bool:
    """Through a file beside it; False where somebody else was faster."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
    try:
        file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise ConfigError(f"{display(str(path), 300)} cannot be written: {error.strerror}") from None
    try:
        with os.fdopen(file, "wb") as opened:
            opened.write(data)
            opened.flush()
            os.fsync(file)
        return _swap(beside, path, state)
    except OSError as error:
        raise ConfigError(f"{display(str(path), 300)} cannot be written: {error.strerror}") from None
    finally:
        with suppress(OSError):
            beside.unlink()


def _swap(beside: Path, path: Path, state: _State) -> bool:
    """Mode and owner of the old file are those of the new one; a new file is its owner's alone."""
    try:
        found = path.stat()
    except FileNotFoundError:
        found = None
    if (None if found is None else _state(found)) != state:
        return False
    if found is not None:
        if hasattr(os, "chown") and (found.st_uid, found.st_gid) != (os.geteuid(), os.getegid()):
            os.chown(beside, found.st_uid, found.st_gid)
        beside.chmod(found.st_mode & 0o7777)
    os.replace(beside, path)
    return True
