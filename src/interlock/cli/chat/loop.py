"""One chat: lines are read, said to the model, and what happens is shown; Ctrl-C stops the step and not the program."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from ...host.chat.conversation import Conversation
from ...host.gate.audit import Audit, Entry, MemoryAudit
from ...host.host import Host
from ...wire.errors import InterlockError
from ..terminal.output import plain
from .input_lock import Floor
from .screen import Screen
from .slash_commands import attach, candidates, obey

__all__ = ["ChatRoom", "Watched"]

log = logging.getLogger("interlock.cli")
T = TypeVar("T")
_COMPLETION = 2.0  # seconds that a server may take to suggest something: whoever types waits
_PROMPT = "you> "
_REMEMBERED = 500  # lines of the audit that can be looked at here; the file has all


class ChatRoom:
    """`read` gives one line after the other, or None at the end."""

    def __init__(
        self,
        host: Host,
        conversation: Conversation,
        screen: Screen,
        read: Callable[[str], Coroutine[Any, Any, str | None]],
        book: Watched,
        floor: Floor,
    ) -> None:
        self.host, self.conversation, self.screen = host, conversation, screen
        self.over = False
        self._read, self._book, self._floor = read, book, floor
        self._loop = asyncio.get_running_loop()
        self._step: asyncio.Task[Any] | None = None

    async def run(self) -> None:
        """Until Ctrl-D or /quit."""
        self._loop.add_signal_handler(signal.SIGINT, self._interrupted)
        try:
            while not self.over:
                async with self._floor.for_prompt():
                    line = await self._read(_PROMPT)
                if line is None:
                    break
                await self._floor.answered()
                if line.strip():
                    await self._stoppable(self._do(line.strip()))
        finally:
            self._loop.remove_signal_handler(signal.SIGINT)

    def _interrupted(self) -> None:
        if self._step is not None:
            self.screen.end_speech()
            self.screen.warn("stopping … (Ctrl-D or /quit leaves)")
            self._step.cancel()
        else:
            self.screen.line()
            self.screen.dim("(nothing is under way; Ctrl-D or /quit leaves)")

    async def _stoppable(self, work: Coroutine[Any, Any, None]) -> None:
        self._step = self._loop.create_task(work)
        try:
            await asyncio.wait([self._step])
            if not self._step.cancelled():
                self._step.result()
        except InterlockError as error:
            self.screen.failed(f"! {plain(error.explain())}")
        except Exception as error:  # a mistake of ours ends the step: a talk is too dear to end with it
            log.exception("! a step of the chat failed")
            self.screen.failed(f"! this failed as it should not: {type(error).__name__}: {plain(str(error))}")
        finally:
            if not self._step.done():
                self._step.cancel()
            self._step = None
            self.screen.end_speech()

    async def _do(self, line: str) -> None:
        if line.startswith("/"):
            if not await obey(self, line):
                await self.conversation.say()
            return
        await attach(self, line)
        await self.conversation.say(line)

    # --- for its commands -------------------------------------------------------------------------

    def complete(self, line: str, word: str) -> Sequence[str]:
        """For whoever types, in the thread that reads."""
        return candidates(self, line, word)

    def wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        """From another thread than the loop's, for a moment."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_COMPLETION)

    def audit_lines(self, number: int) -> list[str]:
        """The last of the book, one line each."""
        return [_told(entry) for entry in [*self._book.entries][-number:]] if number else []


class Watched:
    """A book whose newest lines can be looked at."""

    def __init__(self, book: Audit) -> None:
        self._book, self._newest = book, MemoryAudit(_REMEMBERED)

    @property
    def entries(self) -> Sequence[Entry]:
        return self._newest.entries

    def write(self, entry: Entry) -> None:
        self._book.write(entry)
        self._newest.write(entry)

    def close(self) -> None:
        self._book.close()


def _told(entry: Entry) -> str:
    what = f"{entry.at[11:19]} {entry.kind} {entry.name!r:.80} of {entry.server!r:.60}"
    if entry.step == "decision":
        return f"{what}: {entry.decision} ({entry.rule}{', ' + entry.scope if entry.scope else ''}: {entry.because})"
    return f"{what}: {entry.outcome} after {entry.ms:.0f} ms{': ' + entry.error if entry.error else ''}"
