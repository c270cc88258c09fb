"""Lines that a person types at a prompt, with history and completion, while the event loop goes on.

The line is read in a thread of its own by the standard library's editing (readline, where there is one): the loop, and
with it every server, must not wait for a key. The thread is a daemon: a program that ends does not wait for a key
either.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ...auth.client.token_storage import OPEN_FLAGS
from ...state.private_folder import make_private_folder
from .output_buffer import OUTPUT

__all__ = ["LineReader", "editor_or_none", "keep_history", "prepare"]

_MOST_HISTORY = 1_000  # lines that are kept
Complete = Callable[[str, str], Sequence[str]]
"""(the whole line, the word at its end) → what the word may become. Called in the reading thread."""


class LineReader:
    """`history` is a file that only its owner can read; without a terminal lines are read as they come."""

    def __init__(self, history: Path | None = None, complete: Complete | None = None) -> None:
        self._history, self._complete = history, complete
        self._candidates: list[str] = []
        self._editor = editor_or_none() if sys.stdin.isatty() else None
        if self._editor is not None:
            prepare(self._editor, self._candidate, history)

    def completes(self, complete: Complete) -> None:
        self._complete = complete

    async def read(self, shown: str) -> str | None:
        """One line; None at the end (Ctrl-D)."""
        loop = asyncio.get_running_loop()
        found: asyncio.Future[str | None] = loop.create_future()

        def settle(line: str | None) -> None:
            if not found.done():
                found.set_result(line)

        def work() -> None:
            _call_soon(loop, settle, self._line(shown))

        with self._prompt(shown, loop):
            threading.Thread(target=work, name="interlock-prompt", daemon=True).start()
            return await found

    @contextmanager
    def _prompt(self, shown: str, loop: asyncio.AbstractEventLoop) -> Generator[None]:
        """Keep other output out of the line. Without a line editor it is not known what is typed: nothing waits."""
        editor = self._editor
        if editor is None or not hasattr(editor, "set_pre_input_hook") or not sys.stdout.isatty():
            yield
            return
        with OUTPUT.prompt(shown, editor.get_line_buffer) as drawn:
            editor.set_pre_input_hook(lambda: _call_soon(loop, drawn))
            yield

    def _line(self, shown: str) -> str | None:
        try:
            if sys.stdin.isatty():
                return _decode_again(input(shown))
            line = sys.stdin.readline()
            return _decode_again(line.rstrip("\n")) if line else None
        except (EOFError, KeyboardInterrupt, ValueError):  # Ctrl-D, or the terminal is gone
            return None

    # --- history and completion -------------------------------------------------------------------

    def _candidate(self, word: str, number: int) -> str | None:
        if number == 0:
            self._candidates = self._found(word)
        return self._candidates[number] if number < len(self._candidates) else None

    def _found(self, word: str) -> list[str]:
        line = self._editor.get_line_buffer() if self._editor is not None else word
        try:
            return [*self._complete(line, word)] if self._complete is not None else []
        except Exception:  # whoever types must not be stopped by what only helps
            return []

    def close(self) -> None:
        """Keep what was typed."""
        if self._editor is not None and self._history is not None:
            keep_history(self._editor, self._history)


def _call_soon(loop: asyncio.AbstractEventLoop, work: Callable[..., None], *arguments: object) -> None:
    """From the thread that reads, unless the program has ended."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(work, *arguments)


def _decode_again(line: str) -> str:
    """Terminals speak UTF-8 also where the locale does not, and Python kept its bytes as lone surrogates."""
    return line.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


# --- the line editor ------------------------------------------------------------------------------


def editor_or_none() -> Any:
    """The line editor of the platform, where it has one."""
    try:
        import readline
    except ImportError:  # there is none on Windows
        return None
    return readline


def prepare(editor: Any, completer: Callable[[str, int], str | None], history: Path | None) -> None:
    """Tab asks `completer`, and what was typed before can be called back."""
    editor.set_completer_delims(" \t\n")
    editor.set_completer(completer)
    editor.parse_and_bind("tab: complete")
    if history is not None:
        with suppress(OSError):
            editor.read_history_file(str(history))


def keep_history(editor: Any, history: Path) -> None:
    """In a file that only its owner reads, from its first moment on."""
    with suppress(OSError):
        make_private_folder(history.parent)
        os.close(os.open(history, os.O_WRONLY | os.O_CREAT | OPEN_FLAGS, 0o600))
        editor.set_history_length(_MOST_HISTORY)
        editor.write_history_file(str(history))
