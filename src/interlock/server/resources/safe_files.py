"""Reading below one folder and nowhere else: no name leads out of it, no link is followed.

Where the system has it (Linux, macOS, the BSDs) every step of a path is opened relative to the step before and without
following links, so that nobody can put a link in between: there is no moment between looking and opening. Elsewhere
(Windows) a path is looked at before and after it is read, and read only if no link is in it: whoever can write to the
folder and swaps a link in and out between these two looks can still win that race.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from ...wire.errors import InternalError
from .uri_values import is_relative_path

__all__ = ["Entry", "FileTree", "NotThere"]

_STEPWISE = os.open in os.supports_dir_fd and os.scandir in os.supports_fd and hasattr(os, "O_NOFOLLOW")
_CAREFUL = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
_FOLDER = os.O_RDONLY | _CAREFUL | getattr(os, "O_DIRECTORY", 0)
_DEEPEST = 64  # folders below the root; deeper is not there


class NotThere(Exception):
    """No file and no folder of that name, or none that may be seen."""


class Entry(msgspec.Struct, frozen=True):
    """A file or a folder, by its name in its own folder."""

    name: str
    folder: bool
    size: int
    changed: float


class FileTree:
    """One folder. `hidden` lets names that begin with a dot be seen; `most_bytes` is the largest file that is read."""

    def __init__(self, root: str | os.PathLike[str], *, hidden: bool, most_bytes: int, stepwise: bool = True) -> None:
        self.root = Path(root).resolve(strict=True)  # the links on the way to it are the author's own
        if not self.root.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "not a directory", str(root))
        self.most_bytes = most_bytes
        self._hidden = hidden
        self._stepwise = stepwise and _STEPWISE

    def read(self, parts: Sequence[str]) -> bytes | list[Entry]:
        """The bytes of a file, or what is in a folder. Raises `NotThere`."""
        with self._opened(parts) as place:
            found = os.stat(place)
            if stat.S_ISDIR(found.st_mode):
                return self._entries(place)
            if not stat.S_ISREG(found.st_mode):
                raise NotThere  # a pipe or a device would never end
            return self._bytes(place, found.st_size)

    def entries(self, parts: Sequence[str]) -> list[Entry]:
        """What is in a folder; nothing where there is none."""
        try:
            with self._opened(parts) as place:
                return self._entries(place) if stat.S_ISDIR(os.stat(place).st_mode) else []
        except NotThere:
            return []

    def _bytes(self, place: int | str, size: int) -> bytes:
        if size <= self.most_bytes:
            with open(place, "rb", closefd=isinstance(place, str)) as file:
                data = file.read(self.most_bytes + 1)  # it may grow while it is read, or say nothing of its size
            if len(data) <= self.most_bytes:
                return data
            size = len(data)
        raise InternalError(f"Too large to be read here: {size} bytes, where {self.most_bytes} are the most")

    def _entries(self, place: int | str) -> list[Entry]:
        """In the order of their names; links, devices and what no URI can name are left out."""
        found: list[Entry] = []
        with os.scandir(place) as entries:
            for entry in entries:
                if self._may_be_seen(entry.name) and (seen := _entry(entry)) is not None:
                    found.append(seen)
        return sorted(found, key=lambda entry: entry.name)

    def _may_be_seen(self, name: str) -> bool:
        """A name that a URI can say: `{+path}` takes no others. And no hidden one, if the author wants none."""
        plain = "/" not in name and is_relative_path(name) and _is_text(name)
        return plain and (self._hidden or not name.startswith("."))

    # --- opening ----------------------------------------------------------------------------------

    @contextmanager
    def _opened(self, parts: Sequence[str]) -> Generator[int | str]:
        """The file or folder, open (or, where that cannot be, its path while it holds no link)."""
        if len(parts) > _DEEPEST or not all(self._may_be_seen(part) for part in parts):
            raise NotThere
        try:
            if self._stepwise:
                place: int | str = self._step_by_step(parts)
            else:
                place = self._looked_at(parts)
        except (OSError, UnicodeEncodeError):
            # Missing, a link, a file where a folder should be, not for us, or a letter that no file name has here.
            raise NotThere from None
        try:
            yield place
            if isinstance(place, str):
                self._looked_at(parts)
        except OSError:
            if isinstance(place, int):
                raise  # open already: this is a defect of the disk
            raise NotThere from None  # only now opened or looked at again: gone by now, or not for us
        finally:
            if isinstance(place, int):
                os.close(place)

    def _step_by_step(self, parts: Sequence[str]) -> int:
        at = os.open(self.root, _FOLDER)
        for number, part in enumerate(parts, start=1):
            above = at
            try:
                at = os.open(part, _FOLDER if number < len(parts) else os.O_RDONLY | _CAREFUL, dir_fd=above)
            finally:
                os.close(above)
        return at

    def _looked_at(self, parts: Sequence[str]) -> str:
        path = str(self.root.joinpath(*parts))
        if os.path.realpath(path, strict=True) != path:
            raise NotThere  # a link is in it, or another spelling
        return path


def _entry(entry: os.DirEntry[str]) -> Entry | None:
    """None for a link, a device, or what is gone by now."""
    try:
        facts = entry.stat(follow_symlinks=False)
    except OSError:
        return None
    if not stat.S_ISDIR(facts.st_mode) and not stat.S_ISREG(facts.st_mode):
        return None
    return Entry(entry.name, stat.S_ISDIR(facts.st_mode), facts.st_size, facts.st_mtime)


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False  # bytes that are no UTF-8
    return True
