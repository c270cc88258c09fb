"""The client's end of Streamable HTTP of the stateless era: a `Link` on which every request is a POST of its own.

There is no connection to lose: each call stands or falls alone, and the next one dials again. What does not come whole
is read by a task of its own, so that a slow listener never hides an answer or a sign of life; the caller waits as it
does on every other carrier (`transport/jsonrpc/pending.py`). Ending that task, or what was begun without one
(`web/outbound/inline_request.py`), closes the response stream, and that is the cancellation
(transports/http#cancellation)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from msgspec import UNSET

from ....protocol.client.base import ClientEdge, meta_of, params_of
from ....protocol.client.inbound import ClientSide
from ....web.outbound.client import Credentials, Errands, Outbound, drain, lost
from ....web.outbound.deadlines import movable
from ....web.outbound.endpoint import Endpoint
from ....web.outbound.inline_request import PLAIN_YES, Begun
from ....web.outbound.reply import Reply
from ....wire.channel import Patience, Told
from ....wire.errors import BadResult, ConnectionClosed, ConnectionEnded, InterlockError, MessageTooLarge, NotOpen
from ....wire.limits import DEFAULT_LIMITS, Limits
from ....wire.messages import Frame, encode_call, encode_notice
from ....wire.meta import PROTOCOL_VERSION, SUBSCRIPTION_ID
from ....wire.sse import EventParser
from ...jsonrpc.pending import Call, Calls, progress_of
from .call_headers import headers_now
from .legacy_sse import SseSession
from .messages import answer_in, headers_for, message_in
from .post import post_accepted, read_form
from .post_channel import Posting
from .session import HttpSession
from .session_connection import HttpLine

if TYPE_CHECKING:
    from ....web.outbound.client import Response

__all__ = ["HttpLink"]

_NO_HEADERS: Mapping[str, str] = {}


class HttpLink:
    """Calls to one endpoint, from any task of the loop it was made on."""

    def __init__(
        self,
        endpoint: Endpoint,
        limits: Limits = DEFAULT_LIMITS,
        on_notice: Callable[[str, dict[str, Any]], None] | None = None,
        on_end: Callable[[ConnectionEnded], None] | None = None,
        begin: Callable[[], Credentials] | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._begin = begin
        self._limits = limits
        self._on_notice = on_notice
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._calls = Calls(self._loop, self._withdraw, limits.waiting)
        self._readers: dict[int, asyncio.Task[None] | Begun] = {}
        self._outbound = Outbound(endpoint, limits, begin)
        self._errands = Errands(self._loop)
        self._edge: ClientEdge | None = None
        self._end: ConnectionEnded | None = None
        self._closing: asyncio.Task[None] | None = None

    @property
    def end(self) -> ConnectionEnded | None:
        """Only we end it: a server that is away now may be back at the next call."""
        return self._end

    def adopt(self, edge: ClientEdge) -> None:
        """From now on this edge says which further headers a request has."""
        self._edge = edge

    # --- the same server, spoken to in the older ways (transport/http/client/probe.py) -----------------

    def session(self) -> HttpLine:
        """A line of the handshake era over Streamable HTTP; it must be opened, and closed for itself."""
        return self._line(HttpSession(self._endpoint, self._limits, self._begin))

    def stream(self) -> HttpLine:
        """One over HTTP+SSE, the transport before that."""
        return self._line(SseSession(self._endpoint, self._limits, self._begin))

    def _line(self, channel: Posting) -> HttpLine:
        side = ClientSide(self._on_notice or _ignore, self._on_end or _ignore, "a stream")
        return HttpLine(channel, side, self._limits)

    # --- what we send -----------------------------------------------------------------------------

    async def call(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        meta: Mapping[str, Any] | None = None,
        *,
        patience: Patience,
        told: Told | None = None,
        cancellable: bool = True,
    ) -> Frame:
        """POST a request and wait for its answer. With `meta`, the id doubles as progress token."""
        self._check_open()
        call = self._calls.add(method, patience, told, cancellable)
        try:
            if meta is not None:
                params = call.with_token(params, meta)
            body = self._bounded(encode_call(call.id, method, params))
            self._post(call, body, self._headers(method, params or {}))
            return await call.answer()
        finally:
            self._calls.remove(call)
            if not isinstance(call.outcome, Frame):
                self._withdraw(call.id, "the caller gave up", True)

    async def tell(self, method: str, params: Mapping[str, Any] | None) -> None:
        """POST a notification; returns when the server has accepted it."""
        self._check_open()
        body = self._bounded(encode_notice(method, params))
        await self._errands.run(post_accepted(self._outbound, method, body, self._headers(method, params or {})))
        if self._end is not None:
            raise self._end.for_call(method, None)

    def _bounded(self, message: bytes) -> bytes:
        if len(message) > self._limits.message_bytes:
            limit = self._limits.message_bytes
            raise MessageTooLarge(f"a message of {len(message)} bytes, where {limit} are allowed")
        return message

    def _headers(self, method: str, params: Mapping[str, Any]) -> dict[str, str]:
        version = meta_of(params).get(PROTOCOL_VERSION)
        if version is None and self._edge is not None:
            version = self._edge.revision.name
        more = self._edge.headers_of(method, params) if self._edge is not None else _NO_HEADERS
        return headers_for(method, params, version, {**headers_now(self._endpoint), **more})

    def _withdraw(self, id: int, reason: str, cancellable: bool) -> None:
        """Closing the response stream tells the server; no message does."""
        reader = self._readers.get(id)
        if reader is not None:
            reader.cancel()
        if isinstance(reader, Begun):
            del self._readers[id]  # a task does that itself when it has ended

    def _check_open(self) -> None:
        if self._end is not None:
            raise NotOpen("this connection was closed")

    # --- one exchange over HTTP -------------------------------------------------------------------

    def _post(self, call: Call, body: bytes, headers: dict[str, str]) -> None:
        """Now, if that can be; else by a task."""
        begun = self._outbound.begin(body, headers, partial(self._came, call, body, headers))
        if begun is None:
            self._start(call, self._run(call, body, headers))
        else:
            self._readers[call.id] = begun

    def _came(self, call: Call, body: bytes, headers: dict[str, str], begun: Begun, error: Exception | None) -> None:
        self._readers.pop(call.id, None)
        if error is not None:
            self._settle(call, self._outbound.as_ours(error, call.method, False))
        elif (found := begun.plain_yes(self._limits.message_bytes)) is not None:
            try:
                self._settle(call, answer_in(found, PLAIN_YES, call.id, call.method, self._limits))
            except InterlockError as broken:
                self._settle(call, broken)
        else:
            begun.pass_on(self._start, call, self._run(call, body, headers, begun))

    def _start(self, call: Call, run: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        reader = self._readers[call.id] = self._loop.create_task(run)
        reader.add_done_callback(lambda _: self._readers.pop(call.id, None))
        return reader

    async def _run(self, call: Call, body: bytes, headers: dict[str, str], begun: Begun | None = None) -> None:
        """Never raises: whatever happens is the outcome of the call."""
        answered = False
        try:
            with movable(lambda seconds: self._calls.move(call.id, seconds)):
                async with self._outbound.sent("POST", body, headers, begun=begun) as (reply, response):
                    answered = True
                    await self._read(call, reply, response)
        except Exception as error:
            self._settle(call, self._outbound.as_ours(error, call.method, answered))

    async def _read(self, call: Call, reply: Reply, response: Response) -> None:
        if await read_form(reply, response, call.method) == "json":
            body = await self._outbound.whole(response, call.method)
            self._settle(call, answer_in(body, reply, call.id, call.method, self._limits))
            return
        await self._follow(call, response)

    async def _follow(self, call: Call, response: Response) -> None:
        """A stream, up to the answer."""
        parser = EventParser(self._limits.max_event_bytes)
        async for chunk in response.content.iter_any():
            for data in _events_in(parser, chunk, call.method):
                frame = message_in(data, call.method, self._limits, call.id)
                if frame.method is UNSET:
                    self._settle(call, frame)
                    await drain(response)
                    return
                self._notified(call, frame)
        raise lost(f"{call.method}: the server ended the stream without an answer: call again if that is safe", True)

    def _notified(self, call: Call, frame: Frame) -> None:
        """What comes on the stream of a call is for its caller; where none listens it is news for the whole client."""
        if frame.method == "notifications/progress":
            if progress_of(frame) == call.id:
                self._calls.progressed(call.id, frame)
            return
        params = params_of(frame)
        subscription = meta_of(params).get(SUBSCRIPTION_ID)
        if subscription is not None:
            if subscription == call.id:
                self._calls.told(call.id, frame)
            return
        call.hear(frame)
        if call.told is None and self._on_notice is not None:
            self._on_notice(cast(str, frame.method), params)

    def _settle(self, call: Call, outcome: Frame | InterlockError) -> None:
        self._calls.remove(call)
        call.settle(outcome)

    # --- the end ----------------------------------------------------------------------------------

    async def close(self) -> None:
        """Fail what waits, close every stream and socket. Who gives up waiting for it does not stop it."""
        if self._closing is None:
            self._end = self._outbound.end = ConnectionClosed("the connection was closed")
            self._calls.fail(self._end, None)
            self._closing = self._loop.create_task(self._finish())
        await asyncio.shield(self._closing)

    async def _finish(self) -> None:
        readers = [*self._readers.values()]
        for reader in readers:
            reader.cancel()
        if tasks := [reader for reader in readers if isinstance(reader, asyncio.Task)]:
            await asyncio.wait(tasks)
        self._readers.clear()
        await self._errands.end()
        await self._outbound.close()

    def abandon(self) -> None:
        """Its loop is closed: what can be let go without one is let go."""
        self._end = self._end or ConnectionClosed("the event loop was closed")
        self._outbound.abandon()


def _ignore(*_: Any) -> None:
    """Nobody listens."""


def _events_in(parser: EventParser, chunk: bytes, method: str) -> list[bytes]:
    """The data of every event that carries some; comments and events of other names are none of our business."""
    try:
        return [event.data for event in parser.feed(chunk) if event.name == "message" and event.data]
    except MessageTooLarge as error:
        raise BadResult(f"{method}: the server sent {error}") from None
