"""A handler as an ASGI application: the Streamable HTTP transport, for any ASGI server or framework.

It needs nothing but `scope`, `receive` and `send`. What may be asked at all is decided by the headers
(web/asgi/guard.py), then who asks (authentication.py), then the body is read and judged
(transport/http/server/stateless.py)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Any

from msgspec import UNSET

from ....auth.resource_server.protection import Protection
from ....revisions.revision import Era, Revision
from ....revisions.table import pick
from ....web.asgi.cors import telling
from ....web.asgi.forwarded import trust
from ....web.asgi.guard import Guard, accepts_of, rather_events
from ....web.asgi.lifespan import serve_other
from ....web.asgi.message import Headers, HttpRefusal, Message, Receive, Send
from ....wire.aio import task_of
from ....wire.errors import BadFrame, InternalError, InvalidRequest, LocalError, Refused
from ....wire.escaping import display
from ....wire.exchange import Filter, Handler, Principal
from ....wire.http_headers import SESSION, VERSION
from ....wire.limits import ALL_WATCHED_BYTES, DEFAULT_LIMITS, MIB, Limits
from ....wire.messages import Frame, encode_error, read_frame
from ....wire.quota import Shares, caller_of
from ...event_loop import Watcher
from ...jsonrpc.served_handler import asker_of, lives_of
from ..headers import is_modern
from .authentication import ANYBODY, Admission, Authenticate
from .backends import Shared, endpoint_name, joined, old_of, sessions_of, share, side_of
from .health import Pulse
from .legacy_sse import OldConnections
from .lifecycle import DRAIN, HttpLifecycle
from .request import Beat, End, HttpCall, Timing
from .routes import Place, Places, messages_reference, nowhere, sign_of_life
from .session_headers import asks, is_outside, refusal_of
from .session_ids import SessionIds
from .sessions import SessionBounds, Sessions
from .stateless import OfSession

__all__ = ["HttpApp", "HttpRefusal", "Authenticate", "SessionBounds", "Timing"]

log = logging.getLogger("interlock.http")
BODY_BYTES = 4 * MIB
_MAX_UNFINISHED_BYTES = 128 * MIB  # of bodies that are still coming, a quarter (eight of the longest) for one caller
_STREAM_SHARE = 16  # a caller may have one in so many of the streams: 64, sixteen programs with four GET streams each
DEFAULT_TIMING = Timing()
DEFAULT_SESSIONS = SessionBounds()
_BUSY = HttpRefusal.saying(503, InternalError("Too many requests at once: try again"), ("retry-after", "1"))
_STOPPING = HttpRefusal.saying(503, InternalError("This server is stopping"), ("retry-after", "1"))
_NO_STREAM = HttpRefusal.saying(406, "Accept must allow text/event-stream: change notices are a stream")
_ONLY_POST = HttpRefusal.saying(405, "Messages come by POST", ("allow", "POST"))
_ONLY_THESE = HttpRefusal.saying(405, "Messages come by POST", ("allow", Place.ENDPOINT.value))


class HttpApp:
    """`handler` at one path. Every caller is anonymous unless `auth` (tokens) or `authenticate` (a hook) is given.

    `allowed_hosts` are the names of this server beside the loopback ones, `allowed_origins` those whose pages may call
    it and read its answers. A body over `body_bytes` is refused with 413; `limits.in_flight` requests, and as many
    streams of change notices (a sixteenth for one caller), are served at once, further ones get 503. Clients of the
    handshake revisions have sessions within the bounds of `sessions`; None serves the stateless revision alone.
    GET `health` tells all callers whether new requests are taken; None leaves it out. `always_stream` answers with a
    stream wherever clients read them. `strict_json` refuses JSON objects with a name twice: by default where headers or
    tokens decide on a message. Processes with one `state`, a store or its path, are one endpoint for all sessions.

    `trusted_proxies` are the addresses whose `X-Forwarded-For` is believed; by default none.
    Under an ASGI server that stops, calls in flight have `drain` seconds to end; `run` has its own.
    """

    def __init__(
        self,
        handler: Handler,
        *,
        path: str = "/mcp",
        allowed_hosts: Iterable[str] = (),
        allowed_origins: Iterable[str] = (),
        authenticate: Authenticate | None = None,
        auth: Protection | None = None,
        body_bytes: int = BODY_BYTES,
        timing: Timing = DEFAULT_TIMING,
        sessions: SessionBounds | None = DEFAULT_SESSIONS,
        state: Shared | None = None,
        health: str | None = "/health",
        always_stream: bool = False,
        strict_json: bool | None = None,
        trusted_proxies: Iterable[str] = (),
        drain: float = DRAIN,
        limits: Limits = DEFAULT_LIMITS,
        rows: dict[str, Revision] | None = None,
    ) -> None:
        self.path = path
        self.handler = handler
        self._guard = Guard(allowed_hosts, allowed_origins, body_bytes=body_bytes)
        self._origins = self._guard.origins or None  # no request asks more than whether there are any
        self._admission = Admission(path, handler, self._guard, authenticate=authenticate, auth=auth)
        self._proxies = trust(trusted_proxies)
        self.body_bytes = body_bytes
        self._accepts_of = rather_events if always_stream else accepts_of
        self._timing = timing
        self._limits = limits = limits.with_strict_json(strict_json, self._admission.asks)
        self._stateless_limits = limits.with_strict_json(strict_json, True)  # its headers repeat what the body says
        spoken: dict[str, Revision] = rows or getattr(handler, "rows", None) or pick(None)
        filter: Filter | None = getattr(handler, "http_filter", None)
        outer = filter(handler) if filter else handler  # one for both eras: a caller has no second allowance
        asker = asker_of(handler)
        self._sharing = share(state, handler, path, asker, lease=(sessions or DEFAULT_SESSIONS).lease)
        self.shared = self._sharing is not None
        if self._sharing is not None:
            self._admission.share(self._sharing)
            self._sharing.on_principal_end = self._end_principal
        self._pulse = Pulse(self._sharing, (getattr(handler, "store", None), *self._admission.stores))
        self._sessions: Sessions | None = None
        self._old: OldConnections | None = None
        if sessions is not None and any(row.era is Era.HANDSHAKE for row in spoken.values()):
            ids = SessionIds(endpoint_name(handler, path), shared=self.shared)
            common: Any = {"limits": limits, "lives": lives_of(handler), "ids": ids}
            common |= {"strict": bool(getattr(handler, "strict", False)), "watching": Shares(ALL_WATCHED_BYTES)}
            own: Any = {"bounds": sessions, "at_once": always_stream, **common}
            self._sessions = sessions_of(self._sharing, outer, spoken, **own)
            self._old = old_of(self._sharing, outer, spoken, seats=Shares(sessions.most, sessions.each), **common)
        self._places = Places(path, health=health, old=self._old is not None)
        self._side = side_of(
            self._sharing, handler, spoken, asker=asker, filter=lambda _: outer, sessions=self._sessions is not None
        )
        self._calls: set[HttpCall] = set()
        self._streams = Shares(limits.in_flight, max(1, limits.in_flight // _STREAM_SHARE))
        self._unfinished = Shares(max(_MAX_UNFINISHED_BYTES, 8 * body_bytes))
        self._lifecycle = HttpLifecycle(handler, self._calls, drain, self._sharing, self._sessions, self._old)
        self._beat = Beat(timing.watch, self._lifecycle.watch_listener)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._other(scope["type"], receive, send)
            return
        if self._admission.asks and self._admission.serves(scope["path"]):
            seen = scope if self._proxies is None else self._proxies.scope_of_client(scope)
            await self._admission.serve(seen, receive, send)
            return
        life = self._lifecycle
        if not life.ready:
            life.begin(scope.get("server"))
        if life.stopping:
            life.resume(scope.get("server"))
        headers = Headers(scope["headers"])
        place = self._places.find(scope)
        if self._origins is not None and place is not Place.HEALTH:
            send = telling(self._origins, scope["method"], headers, send)
        accepts = self._accepts_of(headers.values.get(b"accept"))
        loop = asyncio.get_running_loop()
        limit = self._limits.message_bytes
        call = HttpCall(receive, send, accepts, self._timing, limit, self._beat, loop, task_of(loop))
        if client := scope.get("client"):
            call.address = client[0]
        if self._proxies is not None:
            call.address = self._proxies.client_address(call.address, headers)
        call.server = scope.get("server")
        self._beat.join(call)
        try:
            refusal = self._refusal(place, scope, headers)
            if refusal is not None:
                if place is Place.HEALTH and self._pulse.matters:
                    refusal = await self._pulse.judged(refusal)
                await call.refuse(refusal)
                return
            self._calls.add(call)
            await self._serve(call, headers, place, scope)
        except asyncio.CancelledError:
            if call.end is None:
                raise
        finally:
            call.close()
            self._calls.discard(call)
        if call.end is not None:
            await self._ended(call)

    async def _other(self, kind: str, receive: Receive, send: Send) -> None:
        try:
            await serve_other(kind, receive, send, self._lifecycle.try_start, self._lifecycle.finish)
        except asyncio.CancelledError:
            if not self._lifecycle.stopping:
                raise  # else its end took longer than the process has

    # --- its life ---------------------------------------------------------------------------------

    def lifespan(self, _: Any = None) -> AbstractAsyncContextManager[None]:
        """The life of a mounted application, which gets no lifespan events: `FastAPI(lifespan=app.lifespan)`, or
        `async with app.lifespan(): yield` in a lifespan of your own. The app lifespan of the server begins and ends
        with it; `LocalError` when it cannot begin."""
        return self._lifecycle.lifespan()

    @property
    def allowed_hosts(self) -> tuple[str, ...]:
        """The names this server was said to go by, beside the loopback ones."""
        return self._guard.named

    def allow_host(self, host: str) -> None:
        """One more name this server goes by: the address it is bound to."""
        self._guard.allow(f"[{host}]" if ":" in host else host)

    @property
    def watcher(self) -> Watcher | None:
        """Who looks after the loop it is served on, if its handler brings somebody."""
        return getattr(self.handler, "stalls", None)

    @property
    def in_flight(self) -> int:
        """Requests being served, streams of change notices included."""
        return len(self._calls)

    @property
    def failure(self) -> LocalError | None:
        """Why it could not start, if it could not."""
        return self._lifecycle.failure

    def stop(self) -> None:
        """Refuse new requests and end the streams of change notices with their results."""
        self._lifecycle.stop()

    def ignore_listener(self) -> None:
        """The caller tells when to stop: do not take the end of a listening socket for it."""
        self._lifecycle.ignore_listener()

    async def end_sessions(self, principal: Principal) -> None:
        """End what `principal` has here: its sessions, its streams and its running requests, at all workers.

        Call it on the loop that serves. When it returns, the sessions are over; other workers that share the state end
        their part as soon as they read of it. New requests are judged by `auth` or `authenticate` as before: refuse the
        principal there first. Raises `StoreError` if the shared state cannot be used; this worker's part ends anyway.
        """
        try:
            if self._sharing is not None:
                await self._sharing.ready()
                await self._sharing.end_principal(principal)
        finally:
            self._end_principal(lambda other: other == principal)

    def _end_principal(self, is_theirs: Callable[[Principal], bool]) -> None:
        """This worker's part. The request that asks for it, if it is one of them, may end by itself."""
        task = asyncio.current_task()
        if self._sessions is not None:
            self._sessions.end_principal(is_theirs)
        for call in list(self._calls):
            if call.principal is not None and is_theirs(call.principal) and not call.is_of(task):
                call.stop(End.REVOKED)

    async def settle(self, seconds: float) -> None:
        """Wait for what is in flight, at most so long; then cancel it and answer that the server stops."""
        await self._lifecycle.settle(seconds)

    # --- one request ------------------------------------------------------------------------------

    async def _ended(self, call: HttpCall) -> None:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError  # somebody else wants this task to end, too
        told = log.info if call.end is End.STALLED else log.debug
        told("= a request of %s was ended: %s", display(call.address, 60) or "somebody", call.end and call.end.value)
        await call.tell_end()

    def _refusal(self, place: Place | None, scope: Message, headers: Headers) -> HttpRefusal | None:
        method: str = scope["method"]
        if place is None:
            return nowhere(self.path, scope)
        if place is not Place.ENDPOINT:
            return self._refusal_elsewhere(place, method, headers)
        if method != "POST":
            refusal = self._guard.foreign(headers) or self._preflight(place, method, headers)
            return refusal or self._no_method(method, headers)
        if not self._guard.lets_through(headers):
            refusal = self._guard.foreign(headers) or self._guard.unreadable(headers)
            if refusal is not None:
                return refusal
        if self._lifecycle.stopping and self._turns_away(unless=SESSION in headers.values):
            return _STOPPING
        return _BUSY if len(self._calls) - self._streams.held >= self._limits.in_flight else None

    def _turns_away(self, *, unless: bool) -> bool:
        """While it stops, what helps the calls in flight to end gets through; afterwards nothing does."""
        return self._lifecycle.stopping and (self._lifecycle.settled or not unless)

    def _preflight(self, place: Place, method: str, headers: Headers) -> HttpRefusal | None:
        """A browser asks before it calls. Its question needs the same room as the call."""
        if self._origins is None:
            return None
        answer = self._origins.preflight(method, headers, "POST" if self._sessions is None else place.value)
        if answer is None or not (
            self._lifecycle.settled or len(self._calls) - self._streams.held >= self._limits.in_flight
        ):
            return answer
        return _STOPPING if self._lifecycle.settled else _BUSY

    def _no_method(self, method: str, headers: Headers) -> HttpRefusal | None:
        """GET and DELETE belong to sessions; the stateless revision has nothing but POST."""
        if self._sessions is None:
            return _ONLY_POST
        said = (headers.get(VERSION) or b"").decode("latin-1") or None
        if SESSION not in headers.values and is_modern(said):
            return _ONLY_POST
        if method not in ("GET", "DELETE"):
            return _ONLY_THESE
        if self._turns_away(unless=method == "DELETE" or b"last-event-id" in headers.values):
            return _STOPPING
        return _BUSY if method == "GET" and self._streams.held >= self._limits.in_flight else None

    def _refusal_elsewhere(self, place: Place, method: str, headers: Headers) -> HttpRefusal | None:
        if place is Place.HEALTH:
            return sign_of_life(method, self._lifecycle.stopping)
        if (refusal := self._guard.foreign(headers) or self._preflight(place, method, headers)) is not None:
            return refusal
        if method != place.value:
            return HttpRefusal.saying(405, f"This is for {place.value}", ("allow", place.value))
        if method == "POST" and (refusal := self._guard.unreadable(headers)) is not None:
            return refusal
        if self._turns_away(unless=method == "POST"):
            return _STOPPING
        busy = self._streams.held if method == "GET" else len(self._calls) - self._streams.held
        return _BUSY if busy >= self._limits.in_flight else None

    async def _serve(self, call: HttpCall, headers: Headers, place: Place | None, scope: Message) -> None:
        if self._sharing is not None and not await joined(self._sharing, call):
            return
        found: Any = ANYBODY
        if self._admission.asks:
            found = await self._admission.who(call, headers, scope)
            if isinstance(found, HttpRefusal):
                await call.refuse(found)
                return
        call.principal, call.until = found.principal, found.until
        body = await call.read(self.body_bytes, self._unfinished)
        if body is None:
            return
        if self._admission.asks and (lacks := self._admission.lacking(found, body)) is not None:
            await call.refuse(lacks)
            return
        principal = found.principal
        sessions = self._sessions
        if self._lifecycle.stopping and scope["method"] == "POST" and asks(body, self._limits):
            await call.refuse(_STOPPING)  # answers and cancellations help what is in flight to end
        elif sessions is None:
            await self._serve_one(call, body, headers, principal)
        elif scope["method"] != "POST" or place is not Place.ENDPOINT:
            await self._serve_old(call, body, headers, principal, scope)
        elif SESSION in headers.values and is_outside(body):
            await sessions.post(call, body, headers, principal)
        else:
            try:
                await self._serve_one(call, body, headers, principal)
            except OfSession:
                await sessions.post(call, body, headers, principal)

    async def _serve_old(
        self, call: HttpCall, body: bytes, headers: Headers, principal: Principal, scope: Message
    ) -> None:
        """What the stateless revision has no more. A stream that stays takes no place from the requests that do not."""
        assert self._sessions is not None and self._old is not None
        if scope["method"] == "DELETE":
            await self._sessions.delete(call, headers, principal)
        elif scope["method"] == "POST":
            await self._old.post(call, body, scope.get("query_string", b""), principal)
        elif not self._streams.take(caller := caller_of(principal, call.address)):
            await call.refuse(_BUSY)
        else:
            call.standing = True
            try:
                if self._places.find(scope) is Place.ENDPOINT:
                    await self._sessions.get(call, headers, principal)
                else:
                    await self._old.listen(call, principal, messages_reference(scope))
            finally:
                self._streams.give(caller)

    async def _serve_one(self, call: HttpCall, body: bytes, headers: Headers, principal: Principal) -> None:
        """A message of the stateless era; `OfSession` if it turns out to be none."""
        try:
            frame = read_frame(body, self._stateless_limits)
            if frame.method is UNSET:
                raise BadFrame(InvalidRequest("Responses are not posted: nothing was asked"))
        except BadFrame as bad:
            if self._sessions is not None and SESSION in headers.values:
                raise OfSession from None
            await call.answer(encode_error(bad.id, refusal_of(bad, body)))
            return
        if frame.id is UNSET:
            await self._hear(call, frame, headers, principal)
            return
        call.id = frame.id  # pyright: ignore[reportAttributeAccessIssue] - looked at just now
        if frame.method == "subscriptions/listen":
            await self._listen(call, frame, headers, principal)
            return
        work = self._side.request(frame, headers, principal, call)
        await call.answer(work if isinstance(work, bytes) else await call.run(work))

    async def _listen(self, call: HttpCall, frame: Frame, headers: Headers, principal: Principal) -> None:
        """A request that lasts takes no place from those that do not."""
        if not call.accepts.events:
            await call.refuse(_NO_STREAM)
            return
        caller = caller_of(principal, call.address)
        if not self._streams.take(caller):
            await call.refuse(_BUSY)
            return
        call.standing = call.continues = True
        try:
            work = self._side.request(frame, headers, principal, call)
            await call.answer(work if isinstance(work, bytes) else await call.run(work))
        finally:
            self._streams.give(caller)

    async def _hear(self, call: HttpCall, frame: Frame, headers: Headers, principal: Principal) -> None:
        """202 for what is accepted, then the work, in the same task: it counts as in flight until it ends."""
        try:
            work = self._side.notification(frame, headers, principal)
        except Refused as refused:
            await call.answer(encode_error(None, refused))
            return
        await call.refuse(HttpRefusal(202))
        if work is not None:
            await work
