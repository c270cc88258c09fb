"""One session of a handshake client over HTTP: a connection whose messages come by POST and leave by streams.

It is what `Duplex` is to a pipe, with one difference: every request has a stream of its own, and what is said for it
goes there. What belongs to no request goes to a standing stream, which the client opens with GET.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from types import CoroutineType
from typing import Any, cast

import msgspec

from ....protocol.server.router import ServerSide
from ....protocol.server.subscription_quota import WatchMeter
from ....revisions.revision import Revision
from ....wire.channel import Patience
from ....wire.errors import (
    BadFrame,
    BadResult,
    ConnectionClosed,
    ConnectionEnded,
    ConnectionLost,
    InternalError,
    InvalidRequest,
    MessageTooLarge,
)
from ....wire.exchange import Handler, Principal
from ....wire.limits import Limits
from ....wire.messages import Frame, Id, encode_call, encode_error, encode_notice
from ....wire.quota import Shares, caller_of
from ....wire.types.notifications import Cancelled
from ...jsonrpc.executor import Runs
from ...jsonrpc.pending import Calls, progress_of
from .event_stream import Keeping, Reader, Stream
from .replay_buffer import Shelf

__all__ = ["Replies", "Session", "Surroundings", "read_cancelled"]

log = logging.getLogger("interlock.http")
_STANDING = 4  # of one session; a further one ends the oldest that nobody reads, or the oldest
_cancelled = msgspec.json.Decoder(Cancelled)
Asked = Frame | bytes
"""A request, or the answer to one that was refused where it was read."""


class Surroundings(msgspec.Struct, eq=False):
    """What all sessions of an endpoint have in common."""

    handler: Handler
    rows: dict[str, Revision]
    limits: Limits
    keeping: Keeping
    shelf: Shelf
    strict: bool
    on_end: Callable[[Session], None]
    first_id: int = 0
    """Our questions have ids above this one."""
    running: int = 0
    """POSTs whose answers are not all there yet, whether their clients still wait or not."""
    watching: Shares | None = None
    """Bytes of what all clients watch."""
    at_once: bool = False
    """Do streams begin with their requests, where these can be resumed from there, and not with what is said first?"""


class Session:
    """What one client said in `initialize`, its runs, its questions and its streams. It is its own `Outlet`."""

    def __init__(self, id: str, principal: Principal, around: Surroundings, address: str = "") -> None:
        self.id = id
        self.principal = principal
        self.address = address
        self.caller = caller_of(principal, address)
        self._around = around
        self.most_bytes = around.limits.message_bytes
        loop = asyncio.get_running_loop()
        self.used = self.since = loop.time()
        self.said = 0
        """Bytes in which its client introduced itself."""
        self.busy = 0
        """Requests of its client that are being served, streams included: while there are any, it is in use."""
        self._calls = Calls(loop, self._withdraw, around.limits.waiting, around.first_id)
        self._asked: dict[int, Stream] = {}
        self._runs = Runs(loop, around.limits.in_flight)
        self._streams: dict[int, Stream] = {}
        self._standing: list[Stream] = []
        self._names = 0
        self.ready = False
        self._end: ConnectionEnded | None = None
        self._revision: Revision | None = None
        self.version_said: bytes | None = None
        """The name of that revision, as most of its requests repeat it."""
        self.meter = WatchMeter(around.watching, self.caller)
        """What it watches."""
        self._side = ServerSide(
            around.handler,
            around.rows,
            strict=around.strict,
            principal=principal,
            on_ready=self._on_ready,
            meter=self.meter,
        )
        self._side.attach(self)

    def _on_ready(self) -> None:
        self.ready = True

    @property
    def revision(self) -> Revision | None:
        """What was negotiated, once and for all; None before `initialize` was answered."""
        if self._revision is None:
            self._revision = self._side.handshake.revision
            self.version_said = self._revision.name.encode() if self._revision is not None else None
        return self._revision

    @property
    def batches(self) -> bool:
        return self._side.batches

    @property
    def end(self) -> ConnectionEnded | None:
        return self._end

    @property
    def in_flight(self) -> int:
        return len(self._runs.by_id)

    @property
    def idle(self) -> bool:
        """Does nothing run in it, and is nobody served?"""
        return self._runs.idle and not self.busy

    # --- what comes in ----------------------------------------------------------------------------

    def request(self, frame: Frame, address: str, events: bool) -> Replies:
        """Begin what a POST asks for. Most of it is answered when this returns, and needs no stream."""
        replies = Replies(self, [frame], address, events)
        self._requested(frame, replies)
        return replies

    def requests(self, asked: list[Asked], address: str, events: bool) -> tuple[Stream, Reader]:
        """Begin what one POST asks for; its answers, and all that is said on the way, come on this stream."""
        replies = Replies(self, asked, address, events)
        opened = replies.opened()
        for frame in asked:
            if self._end is not None:
                break  # by one before it: nobody would ever end what begins now
            if isinstance(frame, Frame):
                self._requested(frame, replies)
            else:
                replies.take(None, frame)
        return opened

    def _requested(self, frame: Frame, replies: Replies) -> None:
        id: Any = frame.id
        if id in self._runs.by_id:
            replies.take(id, encode_error(id, InvalidRequest("A request with this id is still running")))
            return
        try:
            work = self._side.request(frame, replies)
        except Exception:  # a mistake of ours: one request fails, the session lives
            log.exception("! request %.100r could not be begun", id)
            work = encode_error(id, InternalError("Internal error"))
        if work is None or isinstance(work, bytes):
            replies.take(id, work)
        elif not self._runs.start(id, work, replies.take, frame.method != "initialize"):
            work[0].close()
            told = f"More than {self._around.limits.in_flight} requests at once: wait for answers first"
            replies.take(id, encode_error(id, InternalError(told)))

    def too_large(self, id: Id | None, answer: bytes) -> bytes:
        return encode_error(id, InternalError(f"The answer is too large: {self._over(answer)}"))

    def begin_stream(self, asked: list[Asked], events: bool) -> Stream:
        """One on which the answers to these come; in a session that has ended meanwhile, none do."""
        stream = self._new(asked, events)
        if self._end is None:
            self._around.running += 1
            if self._around.at_once and events and stream.primed:  # else nobody could come back who has read nothing
                stream.begin()
        else:  # by what the handler did before it said or waited for anything
            stream.close()
            self.forget(stream)
        return stream

    def answer_on(self, stream: Stream, answer: bytes | None) -> None:
        if stream.ended:
            return  # with its session
        stream.answer(answer)
        if not stream.expects:
            self._around.running -= 1
        if stream.ended and stream.reader is None:
            self.shelve(stream)

    def notified(self, frame: Frame) -> None:
        if frame.method == "notifications/progress":
            self._calls.progressed(progress_of(frame), frame)
        elif frame.method != "notifications/cancelled":
            work = self._side.notification(frame)
            if work is not None and not self._runs.hear(work):
                work.close()
                log.warning("! too many notifications are being handled: %.200r was dropped", frame.method)
        else:
            self._cancel(frame)

    def _cancel(self, frame: Frame) -> bool:
        """Stop the named run. Unknown, late or malformed cancellations are ignored (CANC-08, CANC-13).

        False: it is none of those that run here.
        """
        told = read_cancelled(frame)
        if told is None:
            return True
        if not self._runs.cancel(told.request_id):
            return False
        log.info("= request %.100r was cancelled: %.200r", told.request_id, told.reason or "no reason given")
        return True

    def answered(self, frame: Frame) -> None:
        """The answer to a question of ours; one to nothing is dropped."""
        if not self._calls.resolve(frame):
            log.debug("= a response to nothing we asked (id %r) was dropped", frame.id)

    def spoilt(self, bad: BadFrame) -> None:
        """A broken answer: whoever waits for it is told now, and not when his patience is over."""
        if bad.answers is not None:
            self._calls.spoil(bad.answers, BadResult(f"a broken response: {bad}"))

    # --- its streams ------------------------------------------------------------------------------

    def _new(self, asked: Sequence[Asked] = (), events: bool = True) -> Stream:
        self._names += 1
        revision = self.revision
        primed = revision is not None and revision.polling
        stream = Stream(self._names, self._around.keeping, expected=len(asked), events=events, primed=primed)
        self._streams[stream.name] = stream
        return stream

    def standing(self) -> Stream:
        """A new stream for what belongs to no request; it begins with what nobody has read of another one."""
        stream = self._new()
        stream.begin()  # what is said before somebody listens waits
        for other in self._standing:
            if other.reader is None:
                for message in other.take_unread():
                    stream.put(message)
        if len(self._standing) >= _STANDING:
            left = next((other for other in self._standing if other.reader is None), self._standing[0])
            self._standing.remove(left)
            left.close()
            self.forget(left)
        self._standing.append(stream)
        return stream

    def stream(self, name: int) -> Stream | None:
        """One that can be resumed."""
        return self._streams.get(name)

    def shelve(self, stream: Stream) -> None:
        """It has ended. Only what has begun, so that its client may know of it, can be asked for again."""
        if stream.begun and self._end is None:
            self._around.shelf.put(stream, stream.size, self.forget, taken=stream.taken, caller=self.caller)
        else:
            self.forget(stream)

    def forget(self, stream: Stream) -> None:
        self._streams.pop(stream.name, None)

    def _listener(self) -> Stream:
        """The one stream for what belongs to no request: the last that is read, if any is (#multiple-connections)."""
        read = [stream for stream in self._standing if stream.reader is not None]
        return read[-1] if read else (self._standing[-1] if self._standing else self.standing())

    # --- what we say ------------------------------------------------------------------------------

    async def tell(self, method: str, params: Mapping[str, Any] | None) -> None:
        await self.tell_on(self._listener(), method, params)

    async def call(
        self, method: str, params: Mapping[str, Any] | None, meta: Mapping[str, Any] | None, *, patience: Patience
    ) -> Frame:
        return await self.call_on(self._listener(), method, params, meta, patience)

    async def tell_on(self, stream: Stream, method: str, params: Mapping[str, Any] | None) -> None:
        message = encode_notice(method, params)
        self._check(message)
        if self._end is None:
            await stream.tell(message)

    async def call_on(
        self,
        stream: Stream,
        method: str,
        params: Mapping[str, Any] | None,
        meta: Mapping[str, Any] | None,
        patience: Patience,
    ) -> Frame:
        """Ask, and wait for the answer that comes by POST."""
        if self._end is not None:
            raise self._end.for_call(method, False)
        call = self._calls.add(method, patience, None, True)
        try:
            message = encode_call(call.id, method, params if meta is None else call.with_token(params, meta))
            self._check(message)
            if not stream.put(message):
                raise ConnectionLost(f"{method}: the client is not there to be asked")
            self._asked[call.id] = stream
            return await call.answer()
        except asyncio.CancelledError:
            if call.outcome is None:
                self._withdraw(call.id, "the caller gave up", True)
            raise
        finally:
            self._asked.pop(call.id, None)
            self._calls.remove(call)

    def _withdraw(self, id: int, reason: str, cancellable: bool) -> None:
        """On the stream where it was asked."""
        stream = self._asked.get(id)
        if stream is not None:
            stream.put(encode_notice("notifications/cancelled", {"requestId": id, "reason": reason}))

    def _check(self, message: bytes) -> None:
        if len(message) > self.most_bytes:
            raise MessageTooLarge(self._over(message))

    def _over(self, message: bytes) -> str:
        return f"{len(message)} bytes, the limit is {self.most_bytes}"

    # --- the end ----------------------------------------------------------------------------------

    def finish(self, error: ConnectionEnded | None = None) -> None:
        """The single end: every waiter is told, every run is cancelled, every stream is closed."""
        if self._end is not None:
            return
        self._end = error or ConnectionClosed("the session has ended")
        self._calls.fail(self._end, None)
        self._runs.end()
        self._side.ended(self._end)
        for stream in list(self._streams.values()):
            self._around.shelf.drop(stream)
            self._around.running -= stream.expects
            stream.close()
        self._streams.clear()
        self._standing.clear()
        self._around.on_end(self)

    def stop_listening(self) -> None:
        """End the streams that have no end of their own."""
        for stream in self._standing:
            stream.close()

    async def settle(self, seconds: float) -> None:
        """Wait for the runs in flight, at most so long."""
        await self._runs.settle(seconds)


class Replies:
    """Of one POST, and where things said for it go: its own stream, made when it is needed.

    A single request that was answered where it began, with nothing said on the way, never has one.
    """

    __slots__ = ("_asked", "_events", "_reader", "_stream", "address", "answer", "connection", "over")

    def __init__(self, session: Session, asked: list[Asked], address: str, events: bool) -> None:
        self.connection = session
        self._asked = asked
        self.address = address
        self._events = events
        self._stream: Stream | None = None
        self._reader: Reader | None = None
        self.over = False
        """Was a single request answered before it had a stream?"""
        self.answer: bytes | None = None
        """Then this is its answer; None if it was cancelled."""

    def take(self, id: Id | None, answer: bytes | None) -> None:
        """One of the answers; None where none may be given."""
        if answer is not None and len(answer) > self.connection.most_bytes:
            answer = self.connection.too_large(id, answer)
        if self._stream is None:
            self.answer, self.over = answer, True
        else:
            self.connection.answer_on(self._stream, answer)

    def opened(self) -> tuple[Stream, Reader]:
        """The stream, with whoever carries it to the client."""
        over, self.over = self.over, False
        stream = self._speaks()
        if over:
            self.connection.answer_on(stream, self.answer)
        return stream, cast(Reader, self._reader)

    def _speaks(self) -> Stream:
        if self._stream is None:
            if self.over:
                return _closed()  # it is answered in one piece, and somebody speaks on
            self._stream = self.connection.begin_stream(self._asked, self._events)
            self._reader = self._stream.attach()
        return self._stream

    def tell(self, method: str, params: Mapping[str, Any] | None) -> CoroutineType[Any, Any, None]:
        return self.connection.tell_on(self._speaks(), method, params)

    async def call(
        self, method: str, params: Mapping[str, Any], meta: Mapping[str, Any], *, patience: Patience
    ) -> Frame:
        return await self.connection.call_on(self._speaks(), method, params, meta, patience)

    def release(self, retry_ms: int) -> bool:
        """Let the client go and come back (basic/transports#sending-messages-to-the-server)."""
        return self._speaks().release(retry_ms)


def _closed() -> Stream:
    stream = Stream(0, Keeping())
    stream.close()
    return stream


def read_cancelled(frame: Frame) -> Cancelled | None:
    """None for a malformed one."""
    try:
        return _cancelled.decode(cast(bytes, frame.params))
    except (msgspec.DecodeError, UnicodeDecodeError, TypeError):
        return None
