"""The client's end of Streamable HTTP (2026-07-28): a `Link` on which every request is a POST of its own.

There is no connection to lose: each call stands or falls alone, and the next one dials again. Per call a task of its
own reads the response, so that a slow listener never hides an answer or a sign of life; the caller waits as it does
on every other carrier (`calls.py`). Ending that task closes the response stream, and that is the cancellation
(transports/http#cancellation).
"""

from __future__ import annotations

import asyncio
import errno
import io
import os
import socket
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakSet

from msgspec import UNSET

from ..revisions.client_edge import ClientEdge, meta_of, params_of
from ..revisions.http_requests import Reply, answer_in, form_of, headers_for, is_redirect, message_in, status_error
from ..wire.display import display
from ..wire.errors import (
    CLASS_OF,
    BadResult,
    CallTimeout,
    ConnectionClosed,
    ConnectionEnded,
    ConnectionLost,
    InterlockError,
    MessageTooLarge,
    NotOpen,
    RemoteError,
)
from ..wire.frames import Frame, encode_call, encode_notice, error_of
from ..wire.limits import DEFAULT_LIMITS, Limits
from ..wire.link import Patience, Told
from ..wire.meta import PROTOCOL_VERSION, SUBSCRIPTION_ID
from ..wire.sse import EventParser
from .calls import Call, Calls, progress_of
from .endpoints import Endpoint

if TYPE_CHECKING:
    import aiohttp

__all__ = ["HttpLink"]

_CONNECTIONS = 256  # sockets to the server at once; a further call waits for one within its own deadline
_REUSED_FOR = 4.0  # seconds an idle socket is kept: shorter than the 5 s after which common servers close theirs
_LINGER = 1.0  # seconds a stream may take to end after its answer before its socket is closed instead of reused
_REDIRECTS = 3  # hops within the origin; a further one is an error
_NOTICE_WITHIN = 30.0  # seconds the server may take to accept a notification
_AT_ONCE = 512 * 1024  # bytes of a body that are written in one go; a larger one is written in pieces
_TURNS_TO_CLOSE = 20  # of the loop, in which a socket that was shut down is let go
_NO_HEADERS: Mapping[str, str] = {}


class HttpLink:
    """Calls to one endpoint, from any task of the loop it was made on."""

    def __init__(
        self,
        endpoint: Endpoint,
        limits: Limits = DEFAULT_LIMITS,
        on_notice: Callable[[str, dict[str, Any]], None] | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._limits = limits
        self._on_notice = on_notice
        self._loop = asyncio.get_running_loop()
        self._calls = Calls(self._loop, self._withdraw, limits.waiting)
        self._readers: dict[int, asyncio.Task[None]] = {}
        self._session: aiohttp.ClientSession | None = None
        self._sockets: WeakSet[socket.socket] = WeakSet()
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
            headers = self._headers(method, params or {})
            reader = self._readers[call.id] = self._loop.create_task(self._run(call, body, headers))
            reader.add_done_callback(lambda _: self._readers.pop(call.id, None))
            return await call.answer()
        finally:
            self._calls.remove(call)
            if not isinstance(call.outcome, Frame):
                self._withdraw(call.id, "the caller gave up", True)

    async def tell(self, method: str, params: Mapping[str, Any] | None) -> None:
        """POST a notification; returns when the server has accepted it."""
        self._check_open()
        body = self._bounded(encode_notice(method, params))
        try:
            async with asyncio.timeout(_NOTICE_WITHIN), self._posted(body, self._headers(method, params or {})) as got:
                reply, response = got
                if not 200 <= reply.status < 300:
                    form_of(reply, method)
                    frame = answer_in(await self._whole(response, method), reply, 0, method, self._limits)
                    raise error_of(frame, CLASS_OF) or status_error(reply, method)
        except InterlockError:
            raise
        except TimeoutError:
            raise CallTimeout(method, _NOTICE_WITHIN, "total") from None
        except Exception as error:
            raise self._as_ours(error, method, False) from error

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
        return headers_for(method, params, version, {**self._endpoint.headers, **more})

    def _withdraw(self, id: int, reason: str, cancellable: bool) -> None:
        """Closing the response stream tells the server; no message does."""
        reader = self._readers.get(id)
        if reader is not None:
            reader.cancel()

    def _check_open(self) -> None:
        if self._end is not None:
            raise NotOpen("this connection was closed")

    # --- one exchange over HTTP -------------------------------------------------------------------

    async def _run(self, call: Call, body: bytes, headers: dict[str, str]) -> None:
        """Never raises: whatever happens is the outcome of the call."""
        begun = False
        try:
            async with self._posted(body, headers) as (reply, response):
                begun = True
                await self._read(call, reply, response)
        except Exception as error:
            self._settle(call, self._as_ours(error, call.method, begun))

    async def _read(self, call: Call, reply: Reply, response: aiohttp.ClientResponse) -> None:
        if form_of(reply, call.method) == "json":
            body = await self._whole(response, call.method)
            self._settle(call, answer_in(body, reply, call.id, call.method, self._limits))
            return
        await self._follow(call, response)

    async def _follow(self, call: Call, response: aiohttp.ClientResponse) -> None:
        """A stream, up to the answer."""
        parser = EventParser(self._limits.message_bytes)
        async for chunk in response.content.iter_any():
            for data in _events_in(parser, chunk, call.method):
                frame = message_in(data, call.method, self._limits, call.id)
                if frame.method is UNSET:
                    self._settle(call, frame)
                    await _drain(response)
                    return
                self._notified(call, frame)
        raise _lost(f"{call.method}: the server ended the stream without an answer: call again if that is safe", True)

    def _notified(self, call: Call, frame: Frame) -> None:
        """What comes on the stream of a call belongs to it; what is not marked so is news for the whole client too."""
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
        if self._on_notice is not None:
            self._on_notice(cast(str, frame.method), params)

    def _settle(self, call: Call, outcome: Frame | InterlockError) -> None:
        self._calls.remove(call)
        call.settle(outcome)

    @asynccontextmanager
    async def _posted(
        self, body: bytes, headers: dict[str, str]
    ) -> AsyncGenerator[tuple[Reply, aiohttp.ClientResponse]]:
        """The response to a POST; its socket is closed on the way out unless everything was read."""
        url = self._endpoint.url
        for hop in range(_REDIRECTS + 1):
            async with await self._post(url, body, headers, hop > 0) as response:
                reply = _reply_of(response)
                further = self._endpoint.redirected(reply.location or "") if is_redirect(reply) else None
                if further is None or hop == _REDIRECTS:
                    yield reply, response
                    return
                url = further

    async def _post(self, url: str, body: bytes, headers: dict[str, str], again: bool) -> aiohttp.ClientResponse:
        data = body if len(body) < _AT_ONCE else io.BytesIO(body)
        try:
            return await self._opened().post(_as_it_is(url), data=data, headers=headers, allow_redirects=False)
        except OSError as error:
            if again:  # whoever redirected us has read the request: it was sent, whatever happened since
                raise _lost(f"the connection broke after a redirect: {display(str(error), 200)}", True) from error
            raise

    def _opened(self) -> aiohttp.ClientSession:
        """One pool of sockets. Nothing of the environment, no cookie, no redirect and no unpacking is let in."""
        if self._session is None:
            import aiohttp

            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=_CONNECTIONS, keepalive_timeout=_REUSED_FOR, ssl=True, socket_factory=self._socket
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),  # our own deadlines stand around it
                trust_env=False,
                auto_decompress=False,
            )
        return self._session

    def _socket(self, address: Any) -> socket.socket:
        made = socket.socket(*address[:3])
        self._sockets.add(made)
        return made

    async def _whole(self, response: aiohttp.ClientResponse, method: str) -> bytes:
        limit = self._limits.message_bytes
        body = bytearray()
        if (response.content_length or 0) <= limit:
            async for part in response.content.iter_any():
                body += part
                if len(body) > limit:
                    break
            else:
                return bytes(body)
        raise BadResult(f"{method}: the answer is larger than {limit} bytes")

    def _as_ours(self, error: Exception, method: str, begun: bool) -> InterlockError:
        """Errors of the HTTP library in the words of this one."""
        import aiohttp

        if isinstance(error, InterlockError):
            return error
        where, told = self._endpoint.origin, display(str(error) or type(error).__name__, 200)
        if isinstance(error, aiohttp.ClientSSLError):
            return _lost(f"{method}: no trusted connection to {where}: {told}", False)
        if isinstance(error, aiohttp.ClientConnectorError):
            return _lost(f"{method}: could not connect to {where}: {_reason(error.os_error)}", False)
        if isinstance(error, aiohttp.ClientResponseError):
            told = display(error.message, 200)  # its whole text would show the query of the URL
            return RemoteError(f"{method}: {where} does not speak proper HTTP: {told}")
        if self._end is not None:
            return self._end.for_call(method, True if begun else None)
        return _lost(f"{method}: the connection to {where} broke: {told}", True if begun else None)

    # --- the end ----------------------------------------------------------------------------------

    async def close(self) -> None:
        """Fail what waits, close every stream and socket. Who gives up waiting for it does not stop it."""
        if self._closing is None:
            self._end = ConnectionClosed("the connection was closed")
            self._calls.fail(self._end, None)
            self._closing = self._loop.create_task(self._finish())
        await asyncio.shield(self._closing)

    async def _finish(self) -> None:
        readers = [*self._readers.values()]
        for reader in readers:
            reader.cancel()
        if readers:
            await asyncio.wait(readers)
        if self._session is not None:
            await self._session.close()
        await self._cut_off()

    async def _cut_off(self) -> None:
        """A socket whose peer does not read what we wrote stays open to deliver it: nobody wants that any more."""
        for _ in range(_TURNS_TO_CLOSE):
            left = [each for each in self._sockets if each.fileno() >= 0]
            for each in left:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
            if not left:
                return
            await asyncio.sleep(0)

    def abandon(self) -> None:
        """Its loop is closed: what can be let go without one is let go."""
        self._end = self._end or ConnectionClosed("the event loop was closed")
        if self._session is not None:
            self._session.detach()
        for each in self._sockets:
            each.close()


def _as_it_is(url: str) -> Any:
    """Checked already: the library must not spell it in another way."""
    import yarl

    return yarl.URL(url, encoded=True)


def _reply_of(response: aiohttp.ClientResponse) -> Reply:
    get = response.headers.get
    return Reply(
        status=response.status,
        content_type=get("Content-Type", ""),
        content_encoding=get("Content-Encoding", ""),
        location=get("Location"),
        challenge=get("WWW-Authenticate"),
        retry_after=get("Retry-After"),
    )


def _events_in(parser: EventParser, chunk: bytes, method: str) -> list[bytes]:
    """The data of every event that carries some; comments and events of other names are none of our business."""
    try:
        return [event.data for event in parser.feed(chunk) if event.name == "message" and event.data]
    except MessageTooLarge as error:
        raise BadResult(f"{method}: the server sent {error}") from None


async def _drain(response: aiohttp.ClientResponse) -> None:
    """The answer should be the last of its stream: then the socket can be used again. What comes late is dropped."""
    try:
        async with asyncio.timeout(_LINGER):
            while await response.content.readany():
                pass
    except Exception:
        pass  # the answer is here already; the socket is closed


def _reason(error: OSError) -> str:
    """Why there is no connection: in the system's words, or the resolver's, whose numbers are negative."""
    if error.errno == errno.ECONNREFUSED:
        return "connection refused; is the server running?"
    known = os.strerror(error.errno) if error.errno is not None and error.errno > 0 else error.strerror
    return display(known or str(error), 200)


def _lost(message: str, sent: bool | None) -> ConnectionLost:
    error = ConnectionLost(message)
    error.sent = sent
    return error
