"""Output that waits while a question is open: no text of a server can stand between a question and its answer.

While the user is at a prompt, output is printed above it and the prompt is drawn again below; what comes while a line
is being typed waits until the line is entered.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TextIO

from ...wire.escaping import break_lines

__all__ = ["OUTPUT", "OutputBuffer", "columns_of", "hold_logs"]

_DEFAULT_COLUMNS = 80
MAX_WAITING = 1_000_000  # characters; what is printed beyond that while a question is open is dropped and counted


class OutputBuffer:
    """Of one terminal. Whatever is printed goes through `write`; a question is asked within `hold`."""

    def __init__(self) -> None:
        self._questions = 0
        self._prompt: _Prompt | None = None
        self._waiting: list[tuple[TextIO, str]] = []
        self._size = self._dropped = 0
        self._last: TextIO = sys.stderr
        self.clear_status: Callable[[], None] | None = None
        """Takes a status line (a wait, progress) off the screen: other output does not continue it."""

    @property
    def is_held(self) -> bool:
        """Is there a line on the screen that nothing may be drawn over?"""
        return self._questions > 0 or self._prompt is not None

    def write(self, stream: TextIO, text: str) -> None:
        """Now, or when the question that is open is answered, or the line that is being typed is entered."""
        prompt = self._prompt
        if self.clear_status is not None:
            self.clear_status()
        if not self.is_held or (prompt is not None and not stream.isatty()):
            stream.write(text)
            stream.flush()
        elif prompt is not None and not self._waiting and text.endswith("\n") and prompt.is_free():
            stream.write(f"\r\x1b[K{text}{prompt.shown}")
            stream.flush()
        elif self._size + len(text) > MAX_WAITING:
            self._dropped, self._last = self._dropped + len(text), stream
        else:
            self._waiting.append((stream, text))
            self._size += len(text)

    @contextmanager
    def hold(self) -> Generator[None]:
        self._questions += 1
        try:
            yield
        finally:
            self._questions -= 1
            if not self._questions:
                self._release()

    @contextmanager
    def prompt(self, shown: str, typed: Callable[[], str]) -> Generator[Callable[[], None]]:
        """The user is at the prompt `shown`, and `typed` tells what stands there so far. What is given is to be called
        when the prompt is on the screen: until then everything waits."""
        self._prompt = prompt = _Prompt(shown, typed)

        def drawn() -> None:
            prompt.is_drawn = True
            if self._prompt is prompt:
                self._release()

        try:
            yield drawn
        finally:
            self._prompt = None
            self._release()

    def _release(self) -> None:
        waiting, dropped = self._waiting, self._dropped
        self._waiting, self._size, self._dropped = [], 0, 0
        for stream, text in waiting:
            self.write(stream, text)
        if dropped:
            self.write(self._last, f"({dropped:,} more characters came during the question and are not shown)\n")


class _Prompt:
    def __init__(self, shown: str, typed: Callable[[], str]) -> None:
        self.shown, self._typed = shown, typed
        self.is_drawn = False

    def is_free(self) -> bool:
        """Is it on the screen, and nothing typed yet?"""
        return self.is_drawn and not self._typed()


OUTPUT = OutputBuffer()
"""Of the terminal that this process has."""


def columns_of(stream: TextIO) -> int | None:
    """How wide a terminal is; None for what is not a terminal."""
    if not stream.isatty():
        return None
    told = os.environ.get("COLUMNS", "")
    wanted = int(told) if told.isdecimal() and 0 < len(told) < 5 else 0
    try:
        found = os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):  # it does not tell
        found = 0
    return min(filter(None, (wanted, found)), default=_DEFAULT_COLUMNS)


class _LogHandler(logging.Handler):
    """Log records beside the output. They may quote servers, so they wait like everything else."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream

    def emit(self, record: logging.LogRecord) -> None:
        text = self.format(record).replace("\n", "\n  ")
        OUTPUT.write(self._stream, f"{break_lines(text, columns_of(self._stream))}\n")


def hold_logs(debug: bool = False) -> None:
    """Print log records on stderr, warnings or with `debug` all of them, and never below an open question. A program
    that has set up logging keeps what it has."""
    level, text = (logging.DEBUG, "%(name)s %(message)s") if debug else (logging.WARNING, "%(message)s")
    logging.basicConfig(level=level, format=text, handlers=[_LogHandler(sys.stderr)])
