"""The head of a request that was read before: what clients say with every call, but for the length of its body.

Reading a head costs a call for each of its lines, a third of what it takes to serve a small request. A head that
differs from one read on the same connection in nothing but the digits of its Content-Length means the same, so it is
compared instead. Pure: bytes in, bytes out.
"""

from __future__ import annotations

from typing import Any

import msgspec

__all__ = ["Head", "Heads"]

Lines = list[tuple[bytes, bytes]]

_END = b"\r\n\r\n"
_NAME = b"content-length"
_HEAD_BYTES, _LINES = 2048, 24  # of one that is remembered
_KEPT, _KEPT_BYTES = 8, 8192  # of one connection: a client says much the same for each of the tools it calls
_DIGITS = 5  # of the length of a body that comes in one piece with its head
_PRICE = 4  # times that remembered heads must be of use, for each further one that is remembered
_CREDIT = 16 * _PRICE  # at first, and at most


class Head(msgspec.Struct, frozen=True, eq=False):
    """One that was read, around the digits of its length."""

    before: bytes
    behind: bytes
    lines: Lines
    length_at: int
    """Which of the lines is Content-Length."""
    target: dict[str, Any]
    """What the scope of a request says because of its first line."""

    def lines_with(self, length: bytes) -> Lines:
        lines = self.lines.copy()
        lines[self.length_at] = (_NAME, length)
        return lines

    def split(self, data: bytes) -> tuple[bytes, bytes] | None:
        """The digits and the body, if `data` is a whole request with this head and nothing else."""
        begin = len(self.before)
        if not data.startswith(self.before):
            return None
        end = data.find(b"\r", begin, begin + _DIGITS + 1)
        length = bytes(data[begin:end])  # some loops hand over what can change
        if end < 0 or not length.isdigit() or not data.startswith(self.behind, end):
            return None
        body = data[end + len(self.behind) :]
        return (length, body) if body and len(body) == int(length) else None


class Heads:
    """Those of one connection. To remember one costs more than to read it, and may push out another: who says something
    else with every request, or has more to say than is kept, soon has no credit for that."""

    __slots__ = ("_credit", "_kept")

    def __init__(self) -> None:
        self._kept: list[Head] = []
        self._credit = _CREDIT

    def find(self, data: bytes) -> tuple[Head, bytes, bytes] | None:
        """The head of this request, the digits of its length, and its body."""
        for head in self._kept:
            if (found := head.split(data)) is not None:
                self._used(head)
                return head, *found
        return None

    def _used(self, head: Head) -> None:
        """It is the first that is looked at next time, and the last to leave."""
        if head is not self._kept[0]:
            self._kept.remove(head)
            self._kept.insert(0, head)
        if self._credit < _CREDIT:
            self._credit += 1

    def learn(self, data: bytes, lines: Lines, target: dict[str, Any]) -> None:
        """`data` began a request, with these lines; it is remembered if it was a whole one and nothing else."""
        if self._credit < _PRICE or any(head.split(data) for head in self._kept):
            return  # known: it had to be read since it came while another one was answered
        if (head := _head_of(data, lines, target)) is not None:
            self._credit -= _PRICE
            self._kept = [head, *self._kept]
            while len(self._kept) > _KEPT or sum(map(_size, self._kept)) > _KEPT_BYTES:
                self._kept.pop()


def _size(head: Head) -> int:
    return len(head.before) + len(head.behind)


def _head_of(data: bytes, lines: Lines, target: dict[str, Any]) -> Head | None:
    """Only what is framed by the one length it names: whatever else a parser might see in it is left to the parser."""
    size = data.find(_END, 0, _HEAD_BYTES) + len(_END)
    names = [name for name, _ in lines]
    if size < len(_END) or len(names) > _LINES or names.count(_NAME) != 1 or b"transfer-encoding" in names:
        return None
    head, length_at = data[:size], names.index(_NAME)
    length = lines[length_at][1]
    if head.count(b"\r\n") != len(lines) + 2 or not length.isdigit() or len(length) > _DIGITS:
        return None  # a first line, a last one, and those between: nothing folded, nothing left out
    *earlier, line = head.split(b"\r\n")[: length_at + 2]
    name, _, value = line.partition(b":")
    if name.lower() != _NAME or value.strip(b" \t") != length or int(length) != len(data) - size:
        return None
    before = sum(len(one) + 2 for one in earlier) + len(name) + 1 + value.find(length)
    behind = head[before + len(length) :]
    return Head(head[:before], behind, lines.copy(), length_at, target) if behind.startswith(b"\r\n") else None
