"""One POST on its way to its answer: its body, its stream, and everything that may end it early.

The author's code runs in the request's own task. Whoever ends the request (the client by going away, a deadline, the
server by stopping) cancels that task and says why; the carrier then takes the cancellation back, as a timeout does.
Most calls are over before anything beside that task is started: the client is watched only from the first tick on, and
where the client reads both, the answer becomes a stream of events only with the first notification. What is said within
one turn of the loop leaves together, with the answer if that is there by then: one write instead of one for each.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, cast

import msgspec

from ....web.asgi.guard import Accepts, too_large
from ....web.asgi.message import HttpRefusal, Message, Receive, Send
from ....wire.channel import Patience
from ....wire.errors import InternalError, Refused
from ....wire.exchange import ANONYMOUS, Principal, Silenced, Work
from ....wire.http_headers import SESSION
from ....wire.messages import Frame, Id, encode_error, encode_notice
from ....wire.quota import Shares, caller_of
from ....wire.sse import COMMENT, encode_event
from ..headers import status_of
from .session_headers import UNKNOWN
from .timeouts import End, Timing

__all__ = ["HttpCall", "Beat", "Timing", "End"]

log = logging.getLogger("interlock.http")
_TOGETHER = 64 * 1024  # bytes said in one turn of the loop, from which on they are written and it is over
_TURN = 32  # events, as above; and writes of one stream after which everybody else has a turn
_MAX_STREAM_SECONDS = 86_400.0  # that a stream lasts which was opened with a token, however long that is valid
_NO_ROOM = HttpRefusal.saying(
    503, InternalError("Too many request bodies are incomplete: try again"), ("retry-after", "1")
)
_JSON = (b"content-type", b"application/json")
_EVENTS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),  # proxies pass events on at once (#receiving-messages)
]


class Beat:
    """One timer for all calls of an endpoint that began lately, instead of one set and cancelled for each.

    A call that lasts is ticked once, at its second beat; what it waits for after that is its own affair.
    """

    __slots__ = ("_fresh", "_loop", "_older", "_on_lasting", "_seconds")

    def __init__(self, seconds: float, on_lasting: Callable[[Collection[HttpCall]], None] | None = None) -> None:
        self._seconds = seconds / 2
        self._on_lasting = on_lasting
        self._loop: asyncio.AbstractEventLoop | None = None
        self._fresh: set[HttpCall] = set()
        self._older: set[HttpCall] = set()

    def join(self, call: HttpCall) -> None:
        loop = call.loop
        if self._loop is not loop:  # at rest, or used on a loop that is over
            self._loop = loop
            self._fresh, self._older = set(), set()
            loop.call_later(self._seconds, self._pass, loop)
        self._fresh.add(call)

    def leave(self, call: HttpCall) -> None:
        self._fresh.discard(call)
        self._older.discard(call)

    def _pass(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._loop is not loop:
            return
        due, self._older, self._fresh = self._older, self._fresh, set()
        if self._older:
            loop.call_later(self._seconds, self._pass, loop)
        else:
            self._loop = None
        if due and self._on_lasting is not None:
            self._on_lasting(due)
        for call in due:
            call.tick()


class HttpCall(msgspec.Struct, eq=False):
    """The state of one request, and the `Outlet` its handler speaks through. Made in the request's own task."""

    _receive: Receive
    _send: Send
    accepts: Accepts
    """What this client can read: a stream, an answer in one piece."""
    _timing: Timing
    _limit: int
    _beat: Beat
    loop: asyncio.AbstractEventLoop = msgspec.field(default_factory=asyncio.get_running_loop)
    _task: asyncio.Task[Any] | None = msgspec.field(default_factory=asyncio.current_task)
    _exchange: Silenced | None = None
    _waits_for: End | None = End.LATE
    """What it is if this takes too long; None once the handler runs."""
    _late: bool = False
    _answered: bool = False
    _streaming: bool = False
    _lock: asyncio.Lock | None = None
    _held: list[bytes] = []
    """Events that were said and are not written yet."""
    _held_bytes: int = 0
    _flusher: asyncio.Handle | asyncio.Task[None] | None = None
    """What writes them when this turn of the loop is over."""
    _written: int = 0
    _background: list[asyncio.Task[None]] = []
    _timer: asyncio.TimerHandle | None = None
    _expiry: asyncio.TimerHandle | None = None
    """Ends a stream together with the token it was opened with."""
    id: Id | None = None
    end: End | None = None
    session: bytes | None = None
    """The id of the session that this call has begun: its client is told with the answer."""
    address: str = ""
    """Of whoever connected, the client or a proxy before it: what tells one nameless caller from another. All those of
    whom nothing is known are one."""
    server: Sequence[Any] | None = None
    """Where its connection came in, as the ASGI server says it."""
    principal: Principal | None = None
    """Who calls; None until that is known."""
    until: float | None = None
    """Unix time at which the caller's token ends; None: it has no token."""
    standing: bool = False
    """Does its stream last as long as its client reads (a GET, subscriptions/listen)? It ends with the caller's token.
    The answer to a call that was allowed when it was made still comes."""
    continues: bool = False
    """Can its client open the stream again? A stream that ends early then ends without an answer."""

    @property
    def answered(self) -> bool:
        """Has its response ended, or is it about to?"""
        return self._answered

    @property
    def streaming(self) -> bool:
        """Has a stream begun?"""
        return self._streaming

    # --- what may end it --------------------------------------------------------------------------

    def tick(self) -> None:
        """One timer at a time serves the whole call: it bounds the wait for the body, begins to watch a running
        handler, or bounds the writing of the answer."""
        if self._answered:
            self._bound_writing()
        elif self._waits_for is None:
            self._background.append(self.loop.create_task(self._watch()))
        elif self._late:
            self.stop(self._waits_for)
        else:
            self._late = True
            self._timer = self.loop.call_later(self._timing.body, self.tick)

    def _bound_writing(self) -> None:
        self._timer = self.loop.call_later(self._timing.stalled, self.stop, End.STALLED)

    async def _watch(self) -> None:
        """Closing the stream is how a stateless client cancels (#cancellation)."""
        try:
            while (await self._receive())["type"] != "http.disconnect":
                pass
        except Exception as error:
            log.debug("= watching a client failed: %r", error)
        self.stop(End.GONE)

    def stop(self, end: End) -> None:
        """End it now: nothing more is said for it, its handler is cancelled."""
        if self.end is not None or self._task is None or (self._answered and end not in (End.STALLED, End.STOPPING)):
            return  # a client that goes once it has its answer cancels nothing
        self.end = end
        if self._exchange is not None:
            self._exchange.silence()
        self._task.cancel()

    def is_of(self, task: asyncio.Task[Any] | None) -> bool:
        """Is it served by this task?"""
        return task is not None and self._task is task

    def close(self) -> None:
        """Leave nothing behind. A cancellation of ours is over with the call; anybody else's goes on."""
        self._beat.leave(self)
        for timer in (self._timer, self._expiry, self._flusher):
            if timer is not None:
                timer.cancel()
        for task in self._background:
            task.cancel()
        self._background.clear()  # else they know each other: a task keeps the frames it was cancelled in
        if self.end is not None and self._task is not None:
            self._task.uncancel()
        self._task = self._exchange = None  # they know this call: without the circle it is freed at once

    # --- in ---------------------------------------------------------------------------------------

    async def check(self, waiting: Awaitable[Any]) -> Any:
        """Wait for a hook that looks at the credentials."""
        self._waits_for = End.UNCHECKED
        found = await waiting
        self._waits_for = End.LATE
        return found

    async def read(self, limit: int, unfinished: Shares) -> bytes | None:
        """The whole body; None when it is over before that, because it is too long or the client is gone, or because
        there is no room among the `unfinished` bytes of all requests."""
        take_body = getattr(getattr(self._receive, "__self__", None), "take_body", None)  # beside ASGI, as _json does
        body: bytes | None = None if take_body is None else take_body()
        if body is None:
            body = await self._read_on(limit, unfinished)
        elif len(body) > limit:
            await self.refuse(too_large(limit))
            return None
        if body is None:
            return None
        self._waits_for = None
        if self._late and self._timer is not None:
            self._timer.cancel()
            self._timer = self.loop.call_later(self._timing.watch, self.tick)
        return body

    async def _read_on(self, limit: int, unfinished: Shares) -> bytes | None:
        parts: list[bytes] = []
        size = held = 0
        caller = caller_of(self.principal or ANONYMOUS, self.address)
        try:
            while (message := await self._receive())["type"] == "http.request":
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > limit:
                    await self.refuse(too_large(limit))
                    return None
                if not message.get("more_body"):
                    return b"".join(parts)
                if not unfinished.take(caller, len(parts[-1])):
                    parts.clear()
                    await self.refuse(_NO_ROOM)
                    return None
                held = size
        finally:
            unfinished.give(caller, held)
        self._answered = True  # gone before it said what it wanted
        return None

    def run(self, work: Work) -> Awaitable[bytes]:
        """The work as it is, to be awaited: nothing stands between the request's task and the author's code."""
        coroutine, self._exchange = work
        return coroutine

    # --- out --------------------------------------------------------------------------------------

    def answer(self, answer: bytes) -> Awaitable[None]:
        """The response: as JSON in one piece, or as the last event of the stream there is."""
        if self.end is not None:
            return _DONE  # its handler did not let itself be stopped, and nobody waits any more
        if len(answer) > self._limit:
            told = f"The answer is too large: {len(answer)} bytes, the limit is {self._limit}"
            answer = encode_error(self.id, InternalError(told))
        self._answered = True
        status = status_of(answer)
        if self._streaming or self._held or (status == 200 and not self.accepts.json):
            return self._write(encode_event(answer), last=True)
        return self._json(status, answer)  # a status that says no comes with JSON, whatever its client reads besides

    def respond(self, status: int, body: bytes) -> Awaitable[None]:
        """JSON in one piece, with a status that the caller chose."""
        if self.end is not None:
            return _DONE
        self._answered = True
        if self.session is None:
            return self._json(status, body)
        return self._respond(status, [_JSON, (SESSION, self.session)], body)

    def _json(self, status: int, body: bytes) -> Awaitable[None]:
        """By what our own runner can do more than ASGI asks, unless it is another one, or somebody stands between."""
        answer_json = getattr(getattr(self._send, "__self__", None), "answer_json", None)
        if answer_json is not None and answer_json(status, body):
            return _DONE
        return self._respond(status, [_JSON], body)

    async def refuse(self, refusal: HttpRefusal) -> None:
        """Say no without a JSON-RPC answer."""
        self._answered = True
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in refusal.headers]
        await self._respond(refusal.status, headers, refusal.body)

    async def tell_end(self) -> None:
        """Say what is still to be said when it was ended early, to who reads it."""
        if self.end in (None, End.GONE, End.STALLED) or self._answered:
            return
        try:
            async with asyncio.timeout(self._timing.stalled):
                await self._tell_end()
        except TimeoutError:
            log.debug("= a client that was to be told of its end does not read")
        finally:
            if self._timer is not None:
                self._timer.cancel()

    async def _tell_end(self) -> None:
        ends_token = self.end in (End.EXPIRED, End.REVOKED)
        if self._streaming and (self.id is None or (self.continues and ends_token)):
            await self._write(b"", last=True)  # its client may come back
        elif self.end is End.REVOKED and (self.id is None or self.continues):
            await self.refuse(UNKNOWN)
        elif self.id is not None and self.end is not None and (self.end is End.STOPPING or ends_token):
            self._answered = True
            answer = encode_error(self.id, InternalError(f"Cancelled: {self.end.value}"))
            if self._streaming or self._held:
                await self._write(encode_event(answer), last=True)
            else:
                await (self._json(200, answer) if ends_token else self._unavailable(answer))
        elif self.end is End.LATE:
            await self.refuse(HttpRefusal.saying(408, f"Refused: {self.end.value}", ("connection", "close")))
        else:
            refused: Refused = InternalError(f"Refused: {self.end.value}" if self.end else "Refused")
            await self.refuse(HttpRefusal.saying(503, refused, ("retry-after", "1")))

    async def _unavailable(self, answer: bytes) -> None:
        await self._respond(503, [_JSON, (b"retry-after", b"1")], answer)

    async def _respond(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        if self._background:  # its tick is over
            self._bound_writing()
        length = (b"content-length", b"%d" % len(body))
        try:
            await self._send({"type": "http.response.start", "status": status, "headers": [*headers, length]})
            await self._send({"type": "http.response.body", "body": body})
        except OSError:
            self._gone()

    async def _put(self, message: Message) -> None:
        try:
            await self._send(message)
        except OSError:
            self._gone()

    def _gone(self) -> None:
        """An OSError is how some servers tell that the client is gone (ASGI 2.4)."""
        # in a turn of its own: what is cancelled must wait for something, and this may be its own task
        self.loop.call_soon(self.stop, End.GONE)

    # --- the stream -------------------------------------------------------------------------------

    async def tell(self, method: str, params: Mapping[str, Any] | None) -> None:
        """Waits while the client does not read. Nothing is said after the answer, nor to who reads no streams."""
        if self._answered or self.end is not None or not self.accepts.events:
            return
        event = encode_event(encode_notice(method, params))
        self._held.append(event)
        self._held_bytes += len(event)
        if self._held_bytes >= _TOGETHER or len(self._held) >= _TURN:
            await self._write(b"")
            await asyncio.sleep(0)  # writing waits for nothing while there is room: who speaks on and on does
        elif self._lock is not None and self._lock.locked():
            await self._write(b"")
        elif self._flusher is None:
            self._flusher = self.loop.call_soon(self._flush)

    def _flush(self) -> None:
        held = self._held and self.end is None
        self._flusher = self.loop.create_task(self._write_held()) if held else None

    async def _write_held(self) -> None:
        try:
            await self._write(b"")
        finally:
            self._flusher = None

    async def call(
        self, method: str, params: Mapping[str, Any], meta: Mapping[str, Any], *, patience: Patience
    ) -> Frame:
        """A response stream carries no requests (#receiving-messages)."""
        raise InternalError(f"{method}: a stateless client cannot be called")

    async def send_events(self, events: bytes) -> None:
        """Some that are encoded already."""
        await self._write(events)

    async def end_events(self, events: bytes) -> None:
        """The last ones; the response ends with them."""
        if self.end is None:
            self._answered = True
            await self._write(events, last=True)

    async def _write(self, event: bytes, *, last: bool = False) -> None:
        """What is held and this, whoever writes; the first event begins the stream."""
        if self._lock is None:
            self._lock = asyncio.Lock()
        async with self._lock:
            if self._answered and not last:
                return
            if self._held:
                event = self._take_held() + event
            elif not event and not last:
                return  # somebody else has written it meanwhile
            self._written += 1
            if not self._written % _TURN:
                await asyncio.sleep(0)  # writing waits for nothing while there is room, or once the client is gone
            stalled = self.loop.call_later(self._timing.stalled, self.stop, End.STALLED)
            try:
                if not self._streaming:
                    await self._begin_stream(len(event) if last else None)
                await self._put({"type": "http.response.body", "body": event, "more_body": not last})
            finally:
                stalled.cancel()

    def _take_held(self) -> bytes:
        events = b"".join(self._held)
        self._held.clear()
        self._held_bytes = 0
        return events

    async def _begin_stream(self, length: int | None) -> None:
        """Its head; with the length of a stream that is over as it begins."""
        self._streaming = True
        headers = _EVENTS if self.session is None else [*_EVENTS, (SESSION, self.session)]
        if length is not None:
            headers = [*headers, (b"content-length", b"%d" % length)]
        await self._put({"type": "http.response.start", "status": 200, "headers": headers})
        if length is None:
            self._background.append(self.loop.create_task(self._keep_alive()))
            if self.standing and self.until is not None:
                left = min(max(0.0, self.until - time.time()), _MAX_STREAM_SECONDS)
                self._expiry = self.loop.call_later(left, self.stop, End.EXPIRED)

    async def _keep_alive(self) -> None:
        """Comments, so that no proxy takes a quiet stream for a dead one."""
        while True:
            await asyncio.sleep(self._timing.quiet)
            await self._write(COMMENT)


class _Done(tuple[()]):
    """To be awaited, and over at once."""

    __await__: Any = vars(tuple)["__iter__"]


_DONE = cast(Awaitable[None], _Done())
