"""A conversation on disk: one JSON object a line, appended as it happens, readable by its owner only.

A line that was cut off by a crash is the last one. It is left out when it is read again, and taken away before the next
one is written, or the two would make one line that nobody can read; what follows from that (a call without its result)
is put right by whoever goes on with it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import msgspec

from ...auth.client.token_storage import OPEN_FLAGS
from ...state.private_folder import make_private_folder
from ...wire.errors import LocalError
from ...wire.escaping import display
from ...wire.json.reader import JsonReader
from ..models.model import Message

__all__ = ["Transcript", "read_transcript"]

_MOST_BYTES = 256 * 1024 * 1024
_BLOCK = 64 * 1024
_FIRST = b'{"role":'


class _Line(msgspec.Struct, omit_defaults=True):
    role: Literal["user", "assistant"]
    content: list[dict[str, Any]]
    sources: list[str] = []
    """The servers whose data is in it."""


_decoder = JsonReader(_Line, bounded=False)


class Transcript:
    """Appends to the file at `path`, which is made when the first message is."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)

    def add(self, message: Message, sources: Iterable[str] = ()) -> None:
        line = _Line(message["role"], [*message["content"]], sorted(sources))
        data = msgspec.json.encode(line) + b"\n"
        try:
            make_private_folder(self._path.parent)
            file = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | OPEN_FLAGS, 0o600)
            try:
                _end_last_line(file)
                _write(file, data)
            finally:
                os.close(file)
        except OSError as error:
            raise LocalError(f"the transcript {self._path} cannot be written: {error.strerror}") from error


def _end_last_line(file: int) -> None:
    size = os.fstat(file).st_size
    if not size or os.pread(file, 1, size - 1) == b"\n":
        return
    start = _start_of_last(file, size)
    if _was_cut_off(os.pread(file, size - start, start)):
        os.ftruncate(file, start)
    else:
        _write(file, b"\n")  # only its end is missing, or it is nothing that we wrote


def _was_cut_off(line: bytes) -> bool:
    """A part of a line of ours. Of a file that somebody names by mistake nothing is taken away."""
    try:
        _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return line.startswith(_FIRST[: len(line)])
    return False


def _start_of_last(file: int, size: int) -> int:
    end = size
    while end:
        begin = max(0, end - _BLOCK)
        if (found := os.pread(file, end - begin, begin).rfind(b"\n")) >= 0:
            return begin + found + 1
        end = begin
    return 0


def _write(file: int, data: bytes) -> None:
    """All of it or nothing: a disk that fills up takes a part."""
    before = os.fstat(file).st_size
    try:
        while data:
            data = data[os.write(file, data) :]
    except OSError:
        os.ftruncate(file, before)
        raise


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
