"""All sessions of an endpoint: how they begin and end, and what a POST, GET or DELETE does in one.

They live in the memory of this process. A session ends when its client says so (DELETE), when nothing was heard of it
for a while, or with the server. Its id is no credential: it is worth something only to the principal who began it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Any

import msgspec
from msgspec import UNSET

from ....revisions.revision import Era, Revision
from ....web.asgi.message import Headers, HttpRefusal
from ....wire.errors import BadFrame, InternalError, InvalidRequest
from ....wire.exchange import Handler, Principal
from ....wire.http_headers import VERSION
from ....wire.limits import MIB, Limits
from ....wire.messages import Frame, encode_error, is_batch, read_batch, read_frame
from ....wire.quota import Shares, caller_of
from ....wire.sse import COMMENT, encode_event
from ...jsonrpc.batch import refused_in_batch
from ...jsonrpc.served_handler import Lives
from .event_stream import Keeping, Reader, Stream
from .replay_buffer import Shelf
from .request import HttpCall
from .session import Asked, Session, Surroundings
from .session_headers import (
    FULL,
    NO_SESSION,
    UNKNOWN,
    UNRESUMABLE,
    TurnedAway,
    asked_session,
    check_version,
    event_id,
    seen_event,
)
from .session_ids import SessionIds

__all__ = ["ENDED", "NO_EVENTS", "Sessions", "SessionBounds"]

_SWEEPS = 4  # looks for sessions to end, in the shortest time after which one ends
_SAID_BYTES = 64 * MIB  # that clients said of themselves, of all sessions together; a further one is refused with 503
_LAST_SECONDS = 1.0  # for cancelled runs to end, when the server stops
_ACCEPTED, ENDED = HttpRefusal(202), HttpRefusal(204)
_BUSY = HttpRefusal.saying(503, InternalError("Too many requests at once: try again"), ("retry-after", "1"))
NO_EVENTS = HttpRefusal.saying(406, "Accept must allow text/event-stream: GET opens a stream")


class SessionBounds(msgspec.Struct, frozen=True, kw_only=True):
    """How many sessions there may be, how long they last, and what is kept of their streams."""

    most: int = 4096
    """At once; a further `initialize` is refused with 503."""
    each: int | None = None
    """Of one caller, who is refused in the same way; None for a quarter of `most`."""
    idle: float = 1800.0
    """Seconds without a request or an open stream, after which a session ends; its id is then 404."""
    unready: float = 60.0
    """The same for one whose client has not yet said `notifications/initialized`."""
    keeping: Keeping = Keeping()
    lease: float = 5.0
    """Seconds without a sign of life, after which one of several workers counts as dead."""


class Sessions:
    def __init__(
        self,
        handler: Handler,
        rows: dict[str, Revision],
        *,
        limits: Limits,
        bounds: SessionBounds,
        lives: Lives,
        ids: SessionIds,
        strict: bool = False,
        watching: Shares | None = None,
        at_once: bool = False,
    ) -> None:
        self._bounds = bounds
        self._limits = limits
        self._ids = ids
        self._lives = lives
        spoken = {name: row for name, row in rows.items() if row.era is Era.HANDSHAKE}
        shelf = Shelf(bounds.keeping)
        facts: Any = {"watching": watching, "at_once": at_once}
        self._around = Surroundings(handler, spoken, limits, bounds.keeping, shelf, strict, self._ended, **facts)
        self._by_id: dict[str, Session] = {}
        self._seats, self._said = Shares(bounds.most, bounds.each), Shares(_SAID_BYTES)
        self._sweeper: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def __len__(self) -> int:
        return len(self._by_id)

    @property
    def running(self) -> int:
        """Calls of sessions, also those whose client has gone."""
        return self._around.running

    # --- POST -------------------------------------------------------------------------------------

    async def post(self, call: HttpCall, body: bytes, headers: Headers, principal: Principal) -> None:
        """Whatever a client of the handshake era has to say."""
        try:
            id = asked_session(headers)
            if id is None:
                await self._open(call, body, headers, principal)
                return
            session = self._find(id, headers, principal, call.loop)
            try:
                frame = read_frame(body, self._limits)
            except BadFrame as bad:
                await self._read_more(call, session, body, bad)
                return
            await self._receive(call, session, frame)
        except TurnedAway as away:
            await call.refuse(away.refusal)

    def _receive(self, call: HttpCall, session: Session, frame: Frame) -> Awaitable[None]:
        if frame.method is not UNSET and frame.id is not UNSET:
            call.id = frame.id
            return self._serve_one(call, session, frame)
        _hear(session, frame)
        return self._accept(call, session)

    def _accept(self, call: HttpCall, session: Session) -> Awaitable[None]:
        """202, once all that came with it has been heard."""
        return call.refuse(_ACCEPTED)

    async def _read_more(self, call: HttpCall, session: Session, body: bytes, bad: BadFrame) -> None:
        """It is no message: an array of them, where these exist, or a mistake."""
        if is_batch(body) and isinstance(bad.refusal, InvalidRequest):
            if session.batches:
                await self._batch(call, session, body)
                return
            bad = BadFrame(InvalidRequest("Batches do not exist in this revision"))
        session.spoilt(bad)
        await call.respond(400, encode_error(bad.id, bad.refusal or InvalidRequest("Not a JSON-RPC 2.0 message")))

    async def _batch(self, call: HttpCall, session: Session, body: bytes) -> None:
        """An array of requests and notifications, or one of responses (basic/transports, batching)."""
        try:
            frames = read_batch(body, self._limits)
            asked, heard = _sorted(frames)
        except BadFrame as bad:
            await call.respond(400, encode_error(None, bad.refusal or InvalidRequest("Not a batch")))
            return
        for frame in frames:
            if isinstance(frame, BadFrame):
                session.spoilt(frame)
        for frame in heard:
            _hear(session, frame)
        if asked:
            await self._serve(call, session, asked, array=True)
        else:
            await self._accept(call, session)

    def _check_busy(self) -> None:
        if self._around.running >= self._limits.in_flight:
            raise TurnedAway(_BUSY)

    def _serve_one(self, call: HttpCall, session: Session, frame: Frame) -> Awaitable[None]:
        self._check_busy()
        accepts = call.accepts
        replies = session.request(frame, call.address, accepts.events)
        if replies.answer is not None and accepts.json:
            return call.respond(200, replies.answer)  # the usual end, with nothing to come back to
        stream, reader = replies.opened()
        return self._deliver(call, session, stream, reader, False)

    def _serve(self, call: HttpCall, session: Session, asked: list[Asked], *, array: bool = False) -> Awaitable[None]:
        self._check_busy()
        stream, reader = session.requests(asked, call.address, call.accepts.events)
        return self._deliver(call, session, stream, reader, array)

    # --- how one begins ---------------------------------------------------------------------------

    async def _open(self, call: HttpCall, body: bytes, headers: Headers, principal: Principal) -> None:
        """`initialize`: the session is there, and its id is told, once that has succeeded."""
        frame = read_frame(body, self._limits)  # it was read before
        if frame.method != "initialize" or frame.id is UNSET:
            raise TurnedAway(NO_SESSION)
        self._now(call.loop)
        self._check_room(caller_of(principal, call.address), len(body))
        self._check_busy()
        call.id = frame.id  # pyright: ignore[reportAttributeAccessIssue] - a request's is never null
        session = self._begin(self._ids.issue(), principal, call.address)
        self._enter(session, len(body))
        try:
            stream, reader = session.requests([frame], call.address, call.accepts.events)
            while not stream.ended:
                await stream.changed()
            if session.revision is not None:
                self._add(session)
                call.session = session.id.encode()
        finally:
            if session.id not in self._by_id:
                session.finish()
        await self._deliver(call, session, stream, reader, False)

    def _check_room(self, caller: Hashable | None, said: int) -> None:
        """Who has had his share is refused, too: one of his sessions may be another's who calls from the same place."""
        if not (self._seats.has_room(caller) and self._said.has_room(caller, said)):
            raise TurnedAway(FULL)

    def _enter(self, session: Session, said: int) -> None:
        """From now on it counts, with what is kept of its client's words."""
        self._lives.enter(session)
        session.said = said
        self._seats.add(session.caller)
        self._said.add(session.caller, said)

    def _begin(self, id: str, principal: Principal, address: str) -> Session:
        return Session(id, principal, self._around, address)

    def _add(self, session: Session) -> None:
        self._by_id[session.id] = session
        if self._sweeper is None:
            self._set_sweeper()

    def _now(self, loop: asyncio.AbstractEventLoop) -> float:
        """What lived on a loop that is over has ended with it."""
        if self._loop is not loop:
            self._loop, self._sweeper = loop, None
            for session in self._by_id.values():
                session.meter.end()
            self._by_id.clear()
            self._seats.clear()
            self._said.clear()
            self._around.shelf.clear()
            self._around.running = 0
        return loop.time()

    def _find(self, id: str, headers: Headers, principal: Principal, loop: asyncio.AbstractEventLoop) -> Session:
        """404 for others' sessions as for none: nobody learns that there is one."""
        now = self._now(loop)
        session = self._by_id.get(id)
        if session is None or (session.principal is not principal and session.principal != principal):
            raise TurnedAway(self._ids.refuse(id))
        if headers.values.get(VERSION, b"") != session.version_said:
            check_version(headers, session.revision)
        session.used = now
        return session

    # --- GET and DELETE ---------------------------------------------------------------------------

    async def get(self, call: HttpCall, headers: Headers, principal: Principal) -> None:
        """A stream: a new one for what belongs to no request, or the rest of one that broke."""
        try:
            session = self._named(call, headers, principal)
            if not call.accepts.events:
                raise TurnedAway(NO_EVENTS)
            seen = seen_event(headers)
            stream = session.standing() if seen is None else session.stream(seen[0])
            if stream is None or (seen is not None and not stream.can_resume(seen[1])):
                raise TurnedAway(UNRESUMABLE)
            reader = stream.attach(0 if seen is None else seen[1])
            await self._deliver(call, session, stream, reader, False, resumed=seen is not None)
        except TurnedAway as away:
            await call.refuse(away.refusal)

    async def delete(self, call: HttpCall, headers: Headers, principal: Principal) -> None:
        try:
            self._named(call, headers, principal).finish()
            await call.refuse(ENDED)
        except TurnedAway as away:
            await call.refuse(away.refusal)

    def _named(self, call: HttpCall, headers: Headers, principal: Principal) -> Session:
        id = asked_session(headers)
        if id is None:
            raise TurnedAway(NO_SESSION)
        return self._find(id, headers, principal, call.loop)

    # --- what goes out ----------------------------------------------------------------------------

    async def _deliver(
        self, call: HttpCall, session: Session, stream: Stream, reader: Reader, array: bool, *, resumed: bool = False
    ) -> None:
        """Answer in one piece while nothing but answers is said, else with the stream."""
        session.busy += 1
        call.continues = True
        try:
            while not (stream.ended or stream.told or stream.begun):
                await stream.changed()
            if stream.told or stream.begun or (stream.last and not call.accepts.json):
                await _follow(call, stream, reader, resumed)
            elif answers := stream.answers():
                await call.respond(200, b"[" + b",".join(answers) + b"]" if array else answers[0])
            elif session.end is not None:
                await call.refuse(UNKNOWN)
            elif call.accepts.events:
                await call.end_events(COMMENT)  # it was cancelled: no answer may follow
            else:
                await call.refuse(_ACCEPTED)
        finally:
            session.busy -= 1
            session.used = call.loop.time()
            stream.detach(reader)
            if stream.ended and stream.reader is None:
                session.shelve(stream)

    # --- how one ends -----------------------------------------------------------------------------

    def _set_sweeper(self) -> None:
        seconds = min(self._bounds.idle, self._bounds.unready) / _SWEEPS
        self._sweeper = asyncio.get_running_loop().call_later(seconds, self._sweep)

    def _sweep(self) -> None:
        now = asyncio.get_running_loop().time()
        self._sweeper = None
        for session in list(self._by_id.values()):
            patience = self._bounds.idle if session.ready else self._bounds.unready
            if not session.busy and now - session.used >= patience:
                session.finish()
        if self._by_id:
            self._set_sweeper()

    def _ended(self, session: Session) -> None:
        self._by_id.pop(session.id, None)
        self._seats.give(session.caller)
        self._said.give(session.caller, session.said)
        self._lives.leave(session)

    def end_principal(self, is_theirs: Callable[[Principal], bool]) -> None:
        for session in list(self._by_id.values()):
            if is_theirs(session.principal):
                session.finish()

    def stop(self) -> None:
        """End the streams that have no end of their own."""
        for session in self._by_id.values():
            session.stop_listening()

    async def close(self) -> None:
        """End all sessions, and wait a moment for what ran in them."""
        self._now(asyncio.get_running_loop())
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        sessions = list(self._by_id.values())
        for session in sessions:
            session.finish()
        await asyncio.gather(*(session.settle(_LAST_SECONDS) for session in sessions))


async def _follow(call: HttpCall, stream: Stream, reader: Reader, resumed: bool) -> None:
    """Read along and hand on, until the stream ends, its reader is sent away, or another one comes."""
    stream.begun = True
    opening = COMMENT  # so that the head of the response does not wait for an event
    if stream.primed and not resumed:
        opening = encode_event(b"", id=event_id(stream.name, stream.start))
    while stream.reader is reader:
        unread = stream.unread(reader)
        events = opening + b"".join(encode_event(data, id=event_id(stream.name, number)) for number, data in unread)
        last = unread[-1][0] if unread else reader.position
        if reader.until is not None:  # behind which nothing is unread for it
            await call.end_events(events + b"retry: %d\n\n" % reader.retry)
        elif stream.ended:
            await call.end_events(events)
        elif events:
            await call.send_events(events)
        else:
            await stream.changed()
            continue
        opening = b""
        stream.took(reader, last)
        if call.answered:
            return
    await call.end_events(b"")


def _hear(session: Session, frame: Frame) -> None:
    """What gets no answer. A request's method without an id is never a way to run its handler unanswered."""
    if frame.method is UNSET:
        session.answered(frame)
    elif frame.method.startswith("notifications/"):
        session.notified(frame)
    else:
        raise TurnedAway(HttpRefusal.saying(400, "A request needs an id"))


def _sorted(frames: list[Frame | BadFrame]) -> tuple[list[Asked], list[Frame]]:
    """The requests of a batch, those that cannot be served as their refusals, and what gets no answer."""
    asked: list[Asked] = []
    heard: list[Frame] = []
    ids: set[Any] = set()
    for frame in frames:
        if isinstance(frame, BadFrame):
            if frame.refusal is not None:
                asked.append(encode_error(frame.id, frame.refusal))
        elif frame.method is UNSET or frame.id is UNSET:
            heard.append(frame)
        else:
            asked.append(_refused(frame, ids) or frame)
            ids.add(frame.id)
    if (asked or any(frame.method is not UNSET for frame in heard)) and any(frame.method is UNSET for frame in heard):
        raise BadFrame(InvalidRequest("A batch holds requests and notifications, or responses, not both"))
    return asked, heard


def _refused(frame: Frame, ids: set[Any]) -> bytes | None:
    told = refused_in_batch(frame, ids)
    id: Any = frame.id
    return None if told is None else encode_error(id, told)
