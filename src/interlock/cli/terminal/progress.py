"""How far a call has come, as one line that is drawn over itself: on a terminal only, never in a pipe."""

from __future__ import annotations

import sys
from time import monotonic
from typing import TextIO

from ...wire.escaping import cut_columns
from .output import one_line, writable
from .output_buffer import OUTPUT, columns_of

__all__ = ["Progress"]

_AGAIN = 0.05  # seconds between two drawings: a server decides how often it tells, not how often we draw
_WIDTH = 24


class Progress:
    """The `on_progress` of a call. `clear` takes the line away, for whatever else is to be said."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._drawn = False
        self._next = 0.0
        self.shows = self._stream.isatty()

    def __call__(self, done: float, total: float | None, message: str | None) -> None:
        now = monotonic()
        if not self.shows or now < self._next or OUTPUT.is_held:  # a question has the line to itself
            return
        self._next, self._drawn = now + _AGAIN, True
        line = writable(bar(done, total, message), self._stream)
        shown = cut_columns(line, columns_of(self._stream) or 80)
        self._stream.write(f"\r\x1b[K{shown}")
        self._stream.flush()
        OUTPUT.clear_status = self.clear

    def clear(self) -> None:
        if self._drawn:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._drawn, OUTPUT.clear_status = False, None


def bar(done: float, total: float | None, message: str | None) -> str:
    """One line; a server that says no total, or nonsense, gets no bar."""
    told = f" {one_line(message, 60)}" if message else ""
    if not total or total <= 0 or not 0 <= done <= total:
        return f"{done:g}{told}"
    filled = int(_WIDTH * done / total)
    return f"[{'#' * filled}{'.' * (_WIDTH - filled)}] {done:g}/{total:g}{told}"
