"""A conversation on disk: one JSON object a line, appended as it happens, readable by its owner only.

A line that was cut off by a crash is the last one, and is left out when it is read again; what follows from that (a
call without its result) is put right by whoever goes on with it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import msgspec

from ..auth.records import OPEN_FLAGS
from ..wire.display import display
from ..wire.errors import LocalError
from .models.model import Message

__all__ = ["Transcript", "read_transcript"]

_MOST_BYTES = 256 * 1024 * 1024


class _Line(msgspec.Struct, omit_defaults=True):
    role: Literal["user", "assistant"]
    content: list[dict[str, Any]]
    sources: list[str] = []
    """The servers whose data is in it."""


_decoder = msgspec.json.Decoder(_Line)


class Transcript:
    """Appends to the file at `path`, which is made when the first message is."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)

    def add(self, message: Message, sources: Iterable[str] = ()) -> None:
        line = _Line(message["role"], [*message["content"]], sorted(sources))
        data = msgspec.json.encode(line) + b"\n"
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | OPEN_FLAGS, 0o600)
            try:
                _append(file, data)
            finally:
                os.close(file)
        except OSError as error:
            raise LocalError(f"the transcript {self._path} cannot be written: {error.strerror}") from error


def _append(file: int, line: bytes) -> None:
    """All of it or nothing: half a line would swallow the next one."""
    before = os.fstat(file).st_size
    if os.write(file, line) != len(line):
        os.ftruncate(file, before)
        raise OSError(errno.ENOSPC, "a line could be written in part only")


def read_transcript(path: str | Path) -> tuple[list[Message], set[str]]:
    """The messages of a transcript, and the servers whose data is in them."""
    messages: list[Message] = []
    sources: set[str] = set()
    lines = _lines(Path(path))
    for number, line in enumerate(lines, 1):
        try:
            found = _decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            if number == len(lines) and not line.endswith(b"\n"):
                break  # it was being written when everything ended
            raise LocalError(f"{path}, line {number}: {display(str(error), 200)}") from None
        messages.append({"role": found.role, "content": found.content})
        sources.update(found.sources)
    return messages, sources


def _lines(path: Path) -> list[bytes]:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise LocalError(f"the transcript {path} is larger than {_MOST_BYTES} bytes")
        return path.read_bytes().splitlines(keepends=True)
    except OSError as error:
        raise LocalError(f"the transcript {path} cannot be read: {error.strerror}") from error
