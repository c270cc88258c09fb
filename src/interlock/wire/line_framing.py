"""Lines out of a byte stream: the framing of stdio, also for any other reliable byte stream.

Pure: bytes in, lines out, in linear time whatever the sizes of the chunks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

__all__ = ["LineFramer", "Oversized", "joined"]


class Oversized:
    """Stands in the place of a line over the limit: how long it was, and how it began."""

    __slots__ = ("beginning", "size")

    def __init__(self, beginning: bytes, size: int) -> None:
        self.beginning, self.size = beginning, size


_KEPT: Final = 1024  # of an oversized line, enough to find its id


def joined(beginning: bytes | bytearray, *more: bytes) -> bytearray:
    """All of it in one place, which takes as much memory as it has bytes: kept apart, two bytes at a time would take
    twenty times as much. `beginning` is not used again."""
    whole = beginning if isinstance(beginning, bytearray) else bytearray(beginning)
    for part in more:
        whole += part
    return whole


class LineFramer:
    """Collects chunks until a newline; skips a line over `limit` and goes on with the next one."""

    __slots__ = ("_beginning", "_limit", "_rest", "_size", "_skipping")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._rest: bytes | bytearray = b""
        self._size = 0
        self._skipping = False
        self._beginning = b""

    def feed(self, chunk: bytes) -> Sequence[bytes | Oversized]:
        """The lines that `chunk` completes, without their newlines."""
        if not self._size and len(chunk) <= self._limit and chunk[-1:] == b"\n":
            return chunk[:-1].split(b"\n")  # whole lines and nothing else, as most chunks are
        head, *lines = chunk.split(b"\n")
        self._keep(head)
        if not lines:
            return []
        done: list[bytes | Oversized] = [self._take()]
        tail = lines.pop()
        done += [line if len(line) <= self._limit else Oversized(line[:_KEPT], len(line)) for line in lines]
        self._keep(tail)
        return done

    def _keep(self, part: bytes) -> None:
        if not part:
            return
        self._size += len(part)
        if self._skipping:
            return
        self._rest = joined(self._rest, part) if self._rest else part
        if self._size > self._limit:
            self._skipping = True
            self._beginning = bytes(self._rest[:_KEPT])
            self._rest = b""

    def _take(self) -> bytes | Oversized:
        if self._skipping:
            whole: bytes | Oversized = Oversized(self._beginning, self._size)
        else:
            whole = bytes(self._rest)
        self._rest = b""
        self._size = 0
        self._skipping = False
        return whole
