"""What a command waits for, on stderr, once it has waited for a while: a silent screen looks like a hang.

On a terminal it is one line that counts the seconds and is taken away at the end; elsewhere it is printed once.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from time import monotonic
from typing import TextIO

from ...wire.escaping import cut_columns
from .output import note, writable
from .output_buffer import OUTPUT, columns_of

__all__ = ["WaitStatus"]

SHOW_AFTER = 2.0  # seconds: what is quicker needs no words
_INTERVAL = 1.0  # seconds between two drawings on a terminal


class WaitStatus:
    """Of one command. Other output takes the line away; it is drawn again below."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._drawn = False

    @asynccontextmanager
    async def waiting_for(self, what: str, limit: float) -> AsyncGenerator[None]:
        """`what` is named after a while, with the seconds that it may take (`limit`)."""
        shown = asyncio.get_running_loop().create_task(self._show(what, limit))
        try:
            yield
        finally:
            shown.cancel()
            await asyncio.wait([shown])
            self._clear()

    async def _show(self, what: str, limit: float) -> None:
        began = monotonic()
        await asyncio.sleep(SHOW_AFTER)
        if not self._stream.isatty():
            note(f"waiting for {what} (up to {limit:g} s)")
            return
        while True:
            self._draw(f"waiting for {what}: {monotonic() - began:.0f} s (up to {limit:g} s)")
            await asyncio.sleep(_INTERVAL)

    def _draw(self, text: str) -> None:
        if not OUTPUT.is_held:  # a question has the line to itself
            line = cut_columns(writable(text, self._stream), columns_of(self._stream) or 80)
            self._stream.write(f"\r\x1b[K{line}")
            self._stream.flush()
            self._drawn = True
            OUTPUT.clear_status = self._clear

    def _clear(self) -> None:
        if self._drawn:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._drawn, OUTPUT.clear_status = False, None
