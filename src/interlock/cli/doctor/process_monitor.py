"""A server's process, watched while it is examined: what it writes where messages belong, and how it ends.

The client skips such lines and goes on, because that is what its user wants; the doctor wants to know of them.
"""

from __future__ import annotations

from time import monotonic
from typing import cast

import msgspec

from ...transport.stdio.child_process import ChildChannel, Command
from ...wire.channel import Receiver
from ...wire.errors import BadFrame, ConnectionEnded
from ...wire.messages import is_batch, read_batch, read_frame

__all__ = ["Evidence", "WatchedChild"]

_MOST_LINES = 5  # of each kind that are kept; the rest is counted
_LONGEST = 200


class Evidence(msgspec.Struct):
    """What was seen of one server, over all its processes."""

    starts: int = 0
    messages: int = 0
    junk: int = 0
    """Lines on stdout that are no messages."""
    junk_lines: list[str] = []
    broken: int = 0
    """Those among them that were meant as messages: they begin like JSON and are none."""
    oversized: int = 0
    began: float = 0.0
    first_line: float | None = None
    """Seconds from the start to the first line."""

    def line(self, line: bytes, command: Command) -> None:
        if self.first_line is None:
            self.first_line = monotonic() - self.began
        try:
            read_batch(line) if is_batch(line) else read_frame(line)
        except BadFrame:
            self.junk += 1
            self.broken += line.lstrip()[:1] in (b"{", b"[")
            if len(self.junk_lines) < _MOST_LINES:
                self.junk_lines.append(command.hidden(line.decode("utf-8", "replace"))[:_LONGEST])
        else:
            self.messages += 1


class _Spy:
    """Hears everything first."""

    def __init__(self, receiver: Receiver, evidence: Evidence, command: Command) -> None:
        self._receiver, self._evidence, self._command = receiver, evidence, command

    def received(self, message: bytes) -> None:
        self._evidence.line(message, self._command)
        self._receiver.received(message)

    def oversized(self, beginning: bytes, size: int) -> None:
        self._evidence.oversized += 1
        self._receiver.oversized(beginning, size)

    def ended(self, error: ConnectionEnded) -> None:
        self._receiver.ended(error)


class WatchedChild(ChildChannel):
    """The same process for the client, and everything it says for us."""

    def __init__(self, command: Command, evidence: Evidence) -> None:
        super().__init__(command)
        self._watched, self._evidence = command, evidence

    async def open(self, receiver: Receiver) -> None:
        self._evidence.starts += 1
        self._evidence.began = monotonic()
        await super().open(cast(Receiver, _Spy(receiver, self._evidence, self._watched)))
