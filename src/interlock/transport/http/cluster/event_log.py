"""Streams of a session that any worker can read: what is said is in the log of a shared store before it is sent.

The worker on which a request runs is the only one that writes its log. Its own response reads along in memory; a client
that comes back to another worker reads the log there, from its place on to the end. Where the writer of a log is gone,
its reader breaks the log with a fence before the client is told so: a worker that only stood still can write nothing
more, and ends what it did. So a request has one outcome, whichever worker is asked.

A log begins with a head, which names the requests it answers. The first end mark in it is its end. A stream that ends
before it has begun has no log: it is a response in one piece, which cannot be resumed.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Any

import msgspec

from ....state.store import Event, State
from ....wire.errors import EventsGone, Fenced
from ....wire.messages import Id
from ..server.event_stream import Keeping, Reader, Stream
from .message_bus import UNUSABLE

__all__ = ["Head", "Log", "LoggedStream", "Logs", "Mark", "unanswered"]

log = logging.getLogger("interlock.http")
_ENDED_SECONDS = 120.0  # that the log of a stream is kept behind its end
_READER_FENCE = 1  # of a reader that breaks a log; its writer appends with 0
Spawn = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
OnEnd = Callable[[Stream], None]
OnFence = Callable[["LoggedStream", list[bytes]], None]


class Head(msgspec.Struct, frozen=True):
    """What a log is about: the requests it answers, none if it belongs to no request."""

    ids: tuple[Id, ...] = ()


class Mark:
    """The first byte of an event: what it is. The last answer and the end are one, so that they are kept together."""

    HEAD, MESSAGE, LAST, END, BROKEN = b"h", b"m", b"l", b"e", b"x"
    MESSAGES = (MESSAGE, LAST)
    ENDS = (LAST, END, BROKEN)


_heads = msgspec.json.Decoder(Head)


class _Answer(msgspec.Struct):
    id: int | str | None = None
    method: str | None = None


_answers = msgspec.json.Decoder(_Answer)


class Log:
    """The log of one stream in a store."""

    def __init__(self, state: State, name: str, seconds: float) -> None:
        self._state, self._name, self._seconds = state, name, seconds
        self.size = 0
        """Bytes that were written here."""

    async def append(self, events: Sequence[bytes], *, last: bool = False) -> int:
        """With `last` nothing comes behind them: it is kept a while for who lost the end, and not for longer."""
        seconds = min(self._seconds, _ENDED_SECONDS) if last else self._seconds
        self.size += sum(map(len, events))
        return await self._state.append(self._name, events, until=time.time() + seconds)

    async def lasts(self) -> bool:
        """Keep it, though nothing is said. False: there is none. Raises `Fenced` where a reader has broken it."""
        return await self._state.append(self._name, [], until=time.time() + self._seconds) > 0

    async def fence(self) -> None:
        """Lock out the writer, which is gone: the log breaks off here, if the writer has not ended it before."""
        until = time.time() + min(self._seconds, _ENDED_SECONDS)
        await self._state.append(self._name, [Mark.BROKEN], until=until, fence=_READER_FENCE)

    async def exists(self) -> bool:
        return await self._state.last(self._name) > 0

    async def read(self, after: int) -> list[Event]:
        return await self._state.read(self._name, after)

    async def wait(self, after: int, seconds: float) -> bool:
        return await self._state.wait(self._name, after, seconds=seconds)

    async def drop(self) -> None:
        await self._state.drop(self._name)

    async def whole(self) -> AsyncIterator[bytes]:
        """From the beginning to what is there now; raises `EventsGone` where that is not kept."""
        position = 0
        while events := await self.read(position):
            for event in events:
                position = event.id
                yield event.data


class Logs:
    """All logs of one session. `spawn` begins what is not waited for, `on_end` is called with a stream that has ended,
    `on_fence` with one whose log was broken elsewhere and the messages that did not get into it."""

    def __init__(
        self, state: State, session: str, seconds: float, spawn: Spawn, *, on_end: OnEnd, on_fence: OnFence
    ) -> None:
        self._state, self._session, self._seconds = state, session, seconds
        self.spawn, self.on_end, self.on_fence = spawn, on_end, on_fence

    def of(self, stream: int) -> Log:
        return Log(self._state, f"{self._session}/{stream}", self._seconds)


async def unanswered(log: Log) -> list[Id]:
    """The requests of a log that have no answer in it; none of one that belongs to no request."""
    left: list[Id] = []
    try:
        async for data in log.whole():
            if data[:1] == Mark.HEAD:
                left.extend(_heads.decode(data[1:]).ids)
            elif data[:1] in Mark.MESSAGES:
                answer = _answers.decode(data[1:])
                if answer.method is None and answer.id in left:
                    left.remove(answer.id)
            if data[:1] in Mark.ENDS:
                break
    except EventsGone:
        return []
    return left


class LoggedStream(Stream):
    """A stream that is in the log before anybody sees it. Its numbers are those of the log."""

    def __init__(
        self, name: int, keeping: Keeping, logs: Logs, ids: tuple[Id, ...] = (), *, expected: int, **facts: bool
    ) -> None:
        super().__init__(name, keeping, expected=expected, **facts)
        self.log = logs.of(name)
        self.ids = ids
        """Of the requests that it answers."""
        self._logs = logs
        self._waiting: list[tuple[bytes, Any]] = []
        self._waiting_bytes = 0
        self._writer: asyncio.Task[None] | None = None
        self._logged = self._ending = self._failed = False
        self._head = self._next = 0
        self.followed = False
        """Does somebody read it at another worker?"""
        self.claims = 0
        """How many came back to read it here, of whom not all have heard yet?"""

    # --- saying -----------------------------------------------------------------------------------

    def put(self, message: bytes) -> bool:
        if self.ended or self._ending or self.lost or not self.events:
            return False
        self._say(Mark.MESSAGE, message)
        return True

    async def tell(self, message: bytes) -> None:
        await super().tell(message)
        while self._waiting_bytes > self._keeping.pressure and not self.ended:
            await self.changed()

    def answer(self, message: bytes | None) -> None:
        if not self._logged:
            super().answer(message)
        elif not (self.ended or self._ending):
            self._expected -= 1
            self._ending = self._expected <= 0
            self.answered = self.answered or message is not None
            if message is not None and not self.lost:
                self._say(Mark.LAST if self._ending else Mark.MESSAGE, message)
            elif self._ending:
                self._say(Mark.END)

    def close(self) -> None:
        """Who reads the log elsewhere is told, too; with answers missing that is a break and no end."""
        if self._logged and not self._ending:
            self._ending = True
            self._say(Mark.BROKEN if self._expected > 0 else Mark.END)
        super().close()

    def release(self, retry: int) -> bool:
        reader = self.reader
        if reader is None or not self.events or reader.until is not None or self.ended or self._ending:
            return False
        if self._failed:
            return False  # who goes finds nothing to come back to
        self._say(b"", (reader, retry))
        return True

    def begin(self) -> None:
        """There is a log of it from now on, also while nothing is said."""
        super().begin()
        self._say(b"")

    def _is_full(self) -> bool:
        return not self.followed and super()._is_full()

    # --- writing ----------------------------------------------------------------------------------

    def _say(self, mark: bytes, what: Any = None) -> None:
        if not self._logged:
            self._logged = True
            self._waiting.append((Mark.HEAD, msgspec.json.encode(Head(self.ids))))
            self._waiting.extend((Mark.MESSAGE, message) for message in self.take_unread())
        self._waiting.append((mark, what))
        self._waiting_bytes += len(what) if isinstance(what, bytes) else 0
        if self._writer is None:
            self._writer = self._logs.spawn(self._write())

    async def _write(self) -> None:
        """All that waits at once, until nothing does."""
        while self._waiting:
            said, self._waiting, self._waiting_bytes = self._waiting, [], 0
            last = any(mark in Mark.ENDS for mark, _ in said)
            try:
                number = await self._commit([mark + (what or b"") for mark, what in said if mark], last)
            except Fenced:
                self._lock_out(said)
                break
            for mark, what in said:
                number = self._show(mark, what, number)
            self._wake()
        self._writer = None

    async def _commit(self, events: list[bytes], last: bool) -> int:
        """The number of the first one. What could not be written is said all the same, but cannot be resumed: nothing
        is ever written after a gap. Raises `Fenced` where it must not be said: another worker has reported that no
        answer will come."""
        if events and not self._failed:
            try:
                return await self._append_log(events, last)
            except Fenced:
                raise
            except Exception as error:  # the caller has waited long enough
                log.warning("! a stream cannot be resumed: %s", error)
                self._failed = True
        return self.last + 1

    async def _append_log(self, events: list[bytes], last: bool) -> int:
        number = await self.log.append(events, last=last)
        first = number - len(events) + 1
        if self._head and first != self._next:
            self._logs.spawn(self._drop())
            raise Fenced("the log has ended, and this would be another one")
        self._next = number + 1
        return first

    def _lock_out(self, said: list[tuple[bytes, Any]]) -> None:
        """A reader at another worker took this one for dead: nothing more is said here."""
        unsaid = [what for mark, what in (*said, *self._waiting) if mark == Mark.MESSAGE]
        self._waiting, self._waiting_bytes = [], 0
        self._logs.on_fence(self, unsaid)
        self.ended = self._ending = self._failed = True
        self._wake()

    def _show(self, mark: bytes, what: Any, number: int) -> int:
        """Let who reads here see it; the number of the next one."""
        if mark == Mark.HEAD:
            self._head = self.last = self._read = number
            if self.reader is not None:
                self.reader.position = number
        elif not mark:
            if what is not None and not self._failed:
                self._send_away(*what)
            return number
        if mark in Mark.MESSAGES:
            self.told = True
            if not self.ended and not self.lost:
                self._append_here(what)
        if mark in Mark.ENDS:
            self.ended = True
            self._logs.on_end(self)
        return number + 1

    def _append_here(self, message: bytes) -> None:
        self._append(message)
        if self.followed:
            self._read, self._unread = self.last, 0
            self._prune()

    def _send_away(self, reader: Reader, retry: int) -> None:
        self.told = True
        reader.until, reader.retry = self.last, retry

    async def lasts(self) -> None:
        """It goes on, though nothing is said; or it ends, where its log was broken or is not kept any more."""
        if not self._head or self.ended:
            return
        try:
            kept = await self.log.lasts() or self._failed
        except Fenced:
            kept = False
        if not kept:
            self._lock_out([])

    async def noted(self) -> None:
        """Its log has begun, or never will."""
        while self._writer is not None and not self._head:
            await self.changed()

    @property
    def settled(self) -> bool:
        return self._writer is None

    async def settle(self) -> None:
        """All that was said is in the log."""
        if self._writer is not None:
            await asyncio.wait([self._writer])

    # --- reading ----------------------------------------------------------------------------------

    @property
    def start(self) -> int:
        return self._head

    def can_resume(self, number: int) -> bool:
        return super().can_resume(number or self.start)

    def attach(self, position: int = 0) -> Reader:
        self.followed = False
        return super().attach(position or self.start)

    def discard(self) -> None:
        """What was on it is said elsewhere: nobody shall come back for it here."""
        self.ended = self._failed = True
        if self._logged:
            self._logs.spawn(self._drop())

    async def _drop(self) -> None:
        try:
            await self.log.drop()
        except UNUSABLE as error:
            log.warning("! a stream that was given up could not be dropped: %s", error)

    def follow(self) -> None:
        """Somebody reads the log elsewhere now: whoever reads here is sent away."""
        self.followed, self.reader = True, None
        self._wake()
