"""What a chat shows: who speaks, which tool runs, how far it is, what servers log, and what the host has to say.

Everything that comes from a server, a model or a file goes through `plain`: nothing of it moves a cursor or changes a
colour. The marks are ours.
"""

from __future__ import annotations

import sys
from typing import TextIO

from ..host.conversation import (
    Called,
    Calling,
    Cancelled,
    ConversationEvent,
    Finished,
    Progressed,
    Said,
    Shortened,
)
from ..host.user import Notice
from .progress import Progress
from .showing import as_json, is_colourful, one_line, plain, writable

__all__ = ["Screen"]

_DIM, _BOLD, _RED, _YELLOW, _PLAIN = "\x1b[2m", "\x1b[1m", "\x1b[31m", "\x1b[33m", "\x1b[0m"
_LEVELS = {"warning": _YELLOW, "error": _RED, "critical": _RED, "alert": _RED, "emergency": _RED}
_TOLD = {"denied": _YELLOW, "quarantined": _YELLOW, "cut": _DIM, "server": _DIM, "audit": _RED, "asked": _YELLOW}
_RUN = ("tool", "resource", "prompt")  # answers to servers are shown by their questions
_LONGEST_RESULT = 400  # characters of a result that are shown; all of it is in the transcript


class Screen:
    """Writes to one stream, in the order in which things happen."""

    def __init__(self, stream: TextIO | None = None, *, all_results: bool = False) -> None:
        self._stream = sys.stdout if stream is None else stream
        self._colours = is_colourful(self._stream)
        self._progress = Progress(self._stream)
        self._all = all_results
        self._speaking = False

    # --- lines ------------------------------------------------------------------------------------

    def line(self, text: str = "", colour: str = "") -> None:
        """One or more lines of ours; what is in them of others is escaped already."""
        self.end_speech()
        self._write(f"{self._painted(text, colour)}\n")

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
        self._stream.write(writable(text, self._stream))
        self._stream.flush()

    def end_speech(self) -> None:
        """What comes next begins on a line of its own."""
        self._progress.clear()
        if self._speaking:
            self._speaking = False
            self._stream.write("\n")

    # --- what happens -----------------------------------------------------------------------------

    def happened(self, event: ConversationEvent) -> None:
        match event:
            case Said(text):
                self._write(plain(text))
                self._speaking = True
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
