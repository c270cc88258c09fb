"""The rest of a stream for a client that came to another worker than the one that writes it."""

from __future__ import annotations

from collections.abc import Callable

from ....state.store import Event
from ....wire.errors import EventsGone, InternalError
from ....wire.messages import encode_error
from ....wire.sse import COMMENT, encode_event
from ..server.request import HttpCall
from ..server.session_headers import event_id
from .event_log import Log, Mark, unanswered
from .message_bus import Colleagues, worker_of

__all__ = ["LogReader"]

_LOOKS = 2  # at a worker from which nothing comes, in the time after which it counts as dead
_GONE = InternalError("Cancelled: the worker that served this request is gone")


class LogReader:
    """One way along one log, from an event on."""

    def __init__(self, colleagues: Colleagues, log: Log, name: int) -> None:
        self._colleagues, self._log, self._name = colleagues, log, name
        self._position = 0
        self._events: list[Event] = []
        self._end = b""
        self.sent_away = False
        """Has somebody else come to read the same?"""
        self.is_known = False
        """Have all heard that this one reads?"""

    async def begin(self, number: int, *, standing: bool = False) -> bool:
        """False: what comes behind this event is not kept, or was never said, or is the end of a request that was not
        answered. A stream that belongs to no request goes on elsewhere."""
        if not await self._log.exists():
            return False
        self._position = number
        try:
            self._events = await self._log.read(self._position)
            if self._events:
                return standing or self._events[0].data[:1] != Mark.END
            self._end = await self._end_here()
        except EventsGone:
            return False
        return standing or self._end in (b"", Mark.LAST)

    async def _end_here(self) -> bytes:
        """The mark of the event from which it reads on, if that is an end."""
        here = await self._log.read(self._position - 1)
        return here[0].data[:1] if here and here[0].data[:1] in Mark.ENDS else b""

    async def follow(self, call: HttpCall, is_over: Callable[[], bool], *, last: bool) -> None:
        """Hand on what comes until the end; with `last` the response ends with it."""
        said = COMMENT  # so that the head of the response does not wait for an event
        while True:
            more, end = self._take()
            if self.sent_away:
                break
            said += more
            if not end and said:
                await call.send_events(said)
                said = b""
            end = end or await self._read_on(is_over)
            if end:
                break
        if last:
            broken = end == Mark.BROKEN and not self.sent_away and not is_over()
            await call.end_events(said + (await self._errors() if broken else b""))
        elif said:
            await call.send_events(said)

    def _take(self) -> tuple[bytes, bytes]:
        """What is to be sent of the events that were read, and the mark of the end if it was among them."""
        said: list[bytes] = []
        end = self._end
        for event in self._events:
            mark, self._position = event.data[:1], event.id
            if mark in Mark.MESSAGES:
                said.append(encode_event(event.data[1:], id=event_id(self._name, event.id)))
            if mark in Mark.ENDS:
                end = mark
                break
        return b"".join(said), end

    async def _read_on(self, is_over: Callable[[], bool]) -> bytes:
        """Wait for more events and read them; a mark where none can come any more."""
        try:
            while True:
                news = await self._log.wait(self._position, self._colleagues.lease / _LOOKS)
                if not news and not await self._colleagues.alive(worker_of(self._name)):
                    await self._log.fence()  # before anything is told: it may only stand still
                self._events = await self._log.read(self._position)
                if self._events:
                    return b""
                if is_over():
                    return Mark.BROKEN
        except EventsGone:  # it was trimmed or dropped under us
            return Mark.END

    async def _errors(self) -> bytes:
        """For each request that the log does not answer, and that no worker can answer any more. They are not in the
        log, so they have no event id."""
        left = await unanswered(self._log)
        return b"".join(encode_event(encode_error(id, _GONE)) for id in left)
