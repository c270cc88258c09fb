"""Server-sent events: bytes ↔ events. Pure, incremental, linear, bounded (WHATWG HTML §9.2)."""

from __future__ import annotations

import msgspec

from .errors import MessageTooLarge
from .line_framing import joined

__all__ = ["Event", "EventParser", "encode_event", "COMMENT"]

COMMENT = b":\n\n"
"""Keeps a quiet stream alive through proxies; readers skip it."""
_BOM = b"\xef\xbb\xbf"


class Event(msgspec.Struct, frozen=True):
    """One event. `retry` is in milliseconds, as it came."""

    data: bytes
    name: str = "message"
    id: str | None = None
    retry: int | None = None


def encode_event(data: bytes, *, id: str | None = None, retry: int | None = None, name: str | None = None) -> bytes:
    """One event. `data` is JSON on one line, as our encoder writes it; ids hold no line breaks."""
    if name is None and retry is None:
        return b"data: %b\n\n" % data if id is None else b"id: %b\ndata: %b\n\n" % (id.encode(), data)
    head = b""
    if name is not None:
        head += b"event: %s\n" % name.encode()
    if id is not None:
        head += b"id: %s\n" % id.encode()
    if retry is not None:
        head += b"retry: %d\n" % retry
    return b"%sdata: %s\n\n" % (head, data)


class EventParser:
    """Collects chunks; every event is given once it is complete. More than `limit` bytes unfinished are refused.

    What is unfinished takes about as much memory as it has bytes, in however many chunks and lines it comes.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._rest: bytes | bytearray = b""  # of a line that is not finished
        self._began = False
        self._after_cr = False
        self._held = 0  # bytes of the unfinished event
        self._clear()

    def _clear(self) -> None:
        self._data: bytes | bytearray | None = None
        self._name = ""
        self._id: str | None = None
        self._retry: int | None = None

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that `chunk` completes."""
        if not self._began:
            chunk = self._without_mark(chunk)
        if self._after_cr and chunk[:1] == b"\n":
            chunk = chunk[1:]  # the second half of a CRLF that was cut
            self._after_cr = False
        if not chunk:
            return []
        self._after_cr = chunk[-1:] == b"\r"
        first, *lines = _split(chunk)
        found: list[Event] = []
        self._keep(first)
        for line in lines:
            self._line(bytes(self._rest), found)
            self._rest = b""
            self._keep(line)
        return found

    def _without_mark(self, chunk: bytes) -> bytes:
        """A byte order mark at the very beginning is no text."""
        chunk = bytes(self._rest) + chunk
        self._rest = b""
        self._held = 0
        if len(chunk) < len(_BOM) and _BOM.startswith(chunk):
            self._keep(chunk)
            return b""
        self._began = True
        return chunk.removeprefix(_BOM)

    def _keep(self, part: bytes) -> None:
        self._held += len(part)
        if self._held > self._limit:
            raise MessageTooLarge(f"an event of more than {self._limit} bytes (see Limits.event_bytes)")
        self._rest = joined(self._rest, part) if self._rest else part

    def _line(self, line: bytes, found: list[Event]) -> None:
        if not line:
            self._held = 0
            if self._data is not None or self._id is not None or self._retry is not None:
                found.append(Event(bytes(self._data or b""), self._name or "message", self._id, self._retry))
            self._clear()
            return
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data = value if self._data is None else joined(self._data, b"\n", value)
        elif field == b"event":
            self._name = value.decode("utf-8", "replace")
        elif field == b"id" and 0 not in value:
            self._id = value.decode("utf-8", "replace")
        elif field == b"retry" and value.isdigit() and len(value) < 16:
            self._retry = int(value)


def _split(text: bytes) -> list[bytes]:
    """At LF, CRLF and CR; the last item is what is not finished yet."""
    if 0x0D in text:
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return text.split(b"\n")
