"""What a chat shows: who speaks, which tool runs, how far it is, what servers log, and what the host has to say.

Everything that comes from a server, a model or a file goes through `plain`: nothing of it moves a cursor or changes a
colour. Only lines of ours begin at the left margin; all others are indented, and broken before the terminal breaks
them. While a question is open, everything else waits until it is answered.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TextIO

from ...host.chat.conversation import (
    Called,
    Calling,
    Cancelled,
    ConversationEvent,
    Finished,
    Progressed,
    Said,
    Shortened,
)
from ...host.user import Notice
from ...wire.escaping import IndentedText, break_lines, display_block
from ..terminal.output import as_json, is_colourful, one_line, plain, writable
from ..terminal.output_buffer import OUTPUT, OutputBuffer, columns_of
from ..terminal.progress import Progress

__all__ = ["WARNING", "Screen"]

_DIM, _BOLD, _RED, _YELLOW, _PLAIN = "\x1b[2m", "\x1b[1m", "\x1b[31m", "\x1b[33m", "\x1b[0m"
WARNING = _YELLOW
_LEVELS = {"warning": _YELLOW, "error": _RED, "critical": _RED, "alert": _RED, "emergency": _RED}
_TOLD = {"denied": _YELLOW, "quarantined": _YELLOW, "cut": _DIM, "server": _DIM, "audit": _RED, "asked": _YELLOW}
_RUN = ("tool", "resource", "prompt")  # answers to servers are shown by their questions
_LONGEST_RESULT = 400  # characters of a result that are shown; all of it is in the transcript


class Screen:
    """Writes to one stream, in the order in which things happen."""

    def __init__(
        self, stream: TextIO | None = None, *, all_results: bool = False, output: OutputBuffer = OUTPUT
    ) -> None:
        self._stream = sys.stdout if stream is None else stream
        self._output = output
        self._colours = is_colourful(self._stream)
        self._progress = Progress(self._stream)
        self._all = all_results
        self._speech: IndentedText | None = None

    # --- lines ------------------------------------------------------------------------------------

    def line(self, text: str = "", colour: str = "") -> None:
        """A line of ours; what is in it of others is escaped already. Whatever follows a line break is indented: a text
        of others cannot begin a line of ours."""
        self._lines(text.replace("\n", "\n    "), colour)

    def block(self, text: str) -> None:
        """The whole of a text of others, apart from our lines."""
        self._lines(display_block(text, lines=None, columns=columns_of(self._stream)))

    def _lines(self, text: str, colour: str = "") -> None:
        self.end_speech()
        self._write(f"{self._painted(break_lines(text, columns_of(self._stream)), colour)}\n")

    def bold(self, text: str) -> None:
        self.line(text, _BOLD)

    def dim(self, text: str) -> None:
        self.line(text, _DIM)

    def warn(self, text: str) -> None:
        self.line(text, _YELLOW)

    def failed(self, text: str) -> None:
        self.line(text, _RED)

    def _painted(self, text: str, colour: str) -> str:
        return f"{colour}{text}{_PLAIN}" if colour and self._colours else text

    def _write(self, text: str) -> None:
        self._progress.clear()
        self._output.write(self._stream, writable(text, self._stream))

    def end_speech(self) -> None:
        """What comes next begins on a line of its own."""
        self._progress.clear()
        if self._speech is not None:
            self._speech = None
            self._write("\n")

    @contextmanager
    def question(self) -> Generator[Screen]:
        """A screen for one question. Whatever is written to others meanwhile waits until the question is over."""
        self.end_speech()
        own = Screen(self._stream, output=OutputBuffer())
        own.line()
        with self._output.hold():
            try:
                yield own
            except BaseException:
                own.line()
                own.dim("(this question was withdrawn: no answer counts)")
                raise

    # --- what happens -----------------------------------------------------------------------------

    def happened(self, event: ConversationEvent) -> None:
        match event:
            case Said(text):
                if self._speech is None:
                    self._speech = IndentedText("  ", columns_of(self._stream))
                self._write(self._speech.feed(plain(text)))
            case Calling(call, server):
                where = one_line(server, 60) if server else "host"
                self.bold(f"> {where}: {one_line(call.name, 80)} {one_line(as_json(call.arguments), 160)}")
            case Progressed(_, progress, total, message):
                self._progress(progress, total, message)
            case Called():
                self._called(event)
            case Shortened(cut, dropped):
                self.dim(f"  (to keep within the budget: {cut} results cut, {dropped} old messages left out)")
            case Cancelled():
                self.warn("  cancelled: what was under way was told to stop")
            case Finished(reason, _):
                self.end_speech()
                if reason not in ("endTurn", "toolUse"):
                    self.dim(f"  (the model stopped: {one_line(reason, 60)})")

    def _called(self, event: Called) -> None:
        took = f"{event.seconds:.1f} s"
        if event.result is None:
            self.warn(f"< it was not called ({took}): {plain(event.because or '')}")
            return
        text = plain(event.result.text)
        shown = (
            text if self._all or len(text) <= _LONGEST_RESULT else f"{text[:_LONGEST_RESULT]}… ({len(text)} characters)"
        )
        colour = _YELLOW if event.result.is_error else _DIM
        self.line(f"< {'it failed' if event.result.is_error else 'done'} ({took}): {shown}", colour)

    def tell(self, notice: Notice) -> None:
        if notice.kind == "done":
            return  # the conversation says it, with what came back
        if notice.kind == "calling":
            if notice.text.startswith(_RUN):
                self.dim(f"  … running: {plain(notice.text)}")
        elif notice.kind == "log":
            self.line(f"  {plain(notice.text)}", _LEVELS.get(notice.name, _DIM))
        else:
            self.line(f"! {plain(notice.text)}", _TOLD.get(notice.kind, _YELLOW))
