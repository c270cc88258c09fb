"""The terminal as somebody to ask: one line at a time, while the event loop goes on.

Only a real terminal is asked. Lines are read as the terminal gives them (it edits them itself), on the loop, so that
nothing is left behind that still waits for a key when the command ends.
"""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from typing import Protocol

from ...wire.escaping import break_lines
from .output import writable
from .output_buffer import columns_of

__all__ = ["Terminal", "Person", "terminal_or_none"]

_LONGEST_LINE = 64 * 1024  # bytes; a terminal gives far less at once


class Person(Protocol):
    """Somebody who reads what is said and answers."""

    def say(self, text: str) -> None: ...

    async def ask(self, shown: str) -> str | None:
        """One line; None when there will be none (Ctrl-D)."""
        ...


class Terminal:
    """Whoever sits before it. What is asked goes to stderr: stdout belongs to the result."""

    def __init__(self, fd: int = 0) -> None:
        self._fd = fd

    def say(self, text: str) -> None:
        """At once, also while output waits for an answer: this is the question."""
        shown = break_lines(text, columns_of(sys.stderr))
        print(writable(shown, sys.stderr), file=sys.stderr, flush=True)

    async def ask(self, shown: str) -> str | None:
        sys.stderr.write(shown)
        sys.stderr.flush()
        loop = asyncio.get_running_loop()
        line: asyncio.Future[bytes] = loop.create_future()
        loop.add_reader(self._fd, self._take, line)
        try:
            data = await line
        finally:
            loop.remove_reader(self._fd)
        return data.decode("utf-8", "replace").rstrip("\r\n") if data else None

    def forget_typed(self) -> None:
        """Drop the lines that nobody has read yet."""
        import termios  # only where there is a terminal

        with suppress(termios.error):
            termios.tcflush(self._fd, termios.TCIFLUSH)

    def _take(self, line: asyncio.Future[bytes]) -> None:
        try:
            data = os.read(self._fd, _LONGEST_LINE)
        except OSError:  # it was hung up
            data = b""
        if not line.done():
            line.set_result(data)


def terminal_or_none() -> Terminal | None:
    """None where nobody sees the question or could answer it."""
    return Terminal(sys.stdin.fileno()) if sys.stdin.isatty() and sys.stderr.isatty() else None
