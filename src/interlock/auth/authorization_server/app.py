"""An authorization server on HTTP: its endpoints as a plain ASGI application, alone or beside an MCP endpoint."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable

from ...web.asgi.cors import telling
from ...web.asgi.guard import Guard
from ...web.asgi.message import Headers, Message, Receive, Send, send_whole
from ...web.outbound.endpoint import endpoint_of
from ...wire.errors import LocalError, StoreError
from ..discovery import issuer_urls
from ..flow import Ask, Said
from ..flow_http import asked
from ..urls import checked_url
from .authorize_endpoint import Door
from .client_store import ClientStore
from .grant_store import GrantStore
from .responses import OAuthError, Reply, as_json
from .server import AuthorizationServer
from .token_endpoint import Desk

__all__ = ["IssuerApp"]

log = logging.getLogger("interlock.http")
_BODY_BYTES = 64 * 1024
_BODY_SECONDS = 10.0  # for the body to come; then 408
_SECONDS = 30.0  # for the answer to be found
_AT_ONCE = 100  # requests that are answered; further ones are 503
_COMING = 1000  # requests whose body is not there yet: who sends slowly takes no place from who is answered
_FORM = b"application/x-www-form-urlencoded"
_JSON = b"application/json"
_BUSY = Reply(503, (("retry-after", "1"),))
_Answer = Callable[[Message, Headers, bytes], Awaitable[Reply]]


class IssuerApp:
    """`server` at its own paths. It serves the names in its issuer and resources, and `allowed_hosts`.

    Pages of `allowed_origins` may call everything but the page where people agree, and read what they get.
    """

    def __init__(
        self, server: AuthorizationServer, *, allowed_hosts: Iterable[str] = (), allowed_origins: Iterable[str] = ()
    ) -> None:
        self.server = server
        names = [checked_url(url, "a URL").hostname or "" for url in (server.issuer, *server.resources)]
        shown = [f"[{name}]" if ":" in name else name for name in names]
        hosts = (*shown, *allowed_hosts)
        self._guard = Guard(hosts, allowed_origins, body_bytes=_BODY_BYTES)
        self._guard_of_page = Guard(hosts, body_bytes=_BODY_BYTES)
        self._base = endpoint_of(server.issuer, allowed_hosts=server.allowed_hosts)
        grants = GrantStore(server.store, server.issuer, server.clock, server.refresh_seconds, server.answer_seal)
        self._clients = ClientStore(server, self._ask)
        self._door = Door(server, self._clients, grants)
        self._desk = Desk(server, self._clients, grants, self._ask)
        self._running = self._coming = 0
        above = server.path
        self._page = f"{above}/authorize"
        documents = {checked_url(url, "metadata").path: self._metadata for url in issuer_urls(server.issuer)}
        self._routes: dict[tuple[str, str], tuple[_Answer, bytes | None]] = {
            **{("GET", path): (answer, None) for path, answer in documents.items()},
            ("GET", f"{above}/keys"): (self._keys, None),
            ("GET", self._page): (self._show, None),
            ("POST", self._page): (self._decide, _FORM),
            ("POST", f"{above}/token"): (self._token, _FORM),
            ("POST", f"{above}/revoke"): (self._revoke, _FORM),
        }
        if server.registration:
            self._routes["POST", f"{above}/register"] = (self._register, _JSON)
        self._paths = {path for _, path in self._routes}

    def serves(self, path: str) -> bool:
        return path in self._paths

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _live(receive, send)
            return
        if scope["type"] != "http":
            raise LocalError(f"ASGI {scope['type']!r} is nothing that an authorization server speaks")
        headers = Headers(scope["headers"])
        guard = self._guard_of_page if scope["path"] == self._page else self._guard
        send = telling(guard.origins, scope["method"], headers, send)
        reply = await self._reply(scope, receive, headers, guard)
        await send_whole(send, reply.status, reply.headers, reply.body)

    async def _reply(self, scope: Message, receive: Receive, headers: Headers, guard: Guard) -> Reply:
        if (refusal := guard.foreign(headers, reads=scope["method"] == "GET")) is not None:
            return Reply(refusal.status, refusal.headers, refusal.body)
        route = self._routes.get((scope["method"], scope["path"]))
        if route is None:
            return self._no_route(scope["method"], scope["path"], headers, guard)
        answer, kind = route
        if kind is not None and (headers.get(b"content-type") or b"").partition(b";")[0].strip().lower() != kind:
            return OAuthError("invalid_request", f"Content-Type must be {kind.decode()}", 415).reply()
        body = await self._come(receive) if kind is not None else b""
        if isinstance(body, Reply):
            return body
        return await self._answered(lambda: answer(scope, headers, body))

    async def _come(self, receive: Receive) -> bytes | Reply:
        if self._coming >= _COMING:
            return _BUSY
        self._coming += 1
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                body = await _body(receive)
        except TimeoutError:
            return OAuthError("invalid_request", "the body did not come in time", 408, ("connection", "close")).reply()
        finally:
            self._coming -= 1
        return OAuthError("invalid_request", f"at most {_BODY_BYTES} bytes", 413).reply() if body is None else body

    async def _answered(self, answer: Callable[[], Awaitable[Reply]]) -> Reply:
        if self._running >= _AT_ONCE:
            return _BUSY
        self._running += 1
        try:
            async with asyncio.timeout(_SECONDS):
                return await answer()
        except TimeoutError:
            return OAuthError("temporarily_unavailable", "this took too long", 503).reply()
        except StoreError as error:
            log.warning("! the store of the authorization server cannot be used: %s", error)
            return OAuthError("temporarily_unavailable", "nothing can be kept here now: try again", 503).reply()
        except Exception:
            log.exception("! the authorization server failed")
            return OAuthError("server_error", "something went wrong here", 500).reply()
        finally:
            self._running -= 1

    def _no_route(self, method: str, path: str, headers: Headers, guard: Guard) -> Reply:
        if not self.serves(path):
            return as_json(404, {"error": "not_found"})
        allowed = ", ".join(sorted(verb for verb, known in self._routes if known == path))
        if (answer := guard.origins.preflight(method, headers, allowed)) is not None:
            return _BUSY if self._running >= _AT_ONCE else Reply(answer.status, answer.headers, answer.body)
        return as_json(405, {"error": "invalid_request"}, ("allow", allowed))

    async def _ask(self, step: Ask) -> Said:
        return await asked(step, self._base, redirects=False)

    # --- the endpoints ----------------------------------------------------------------------------

    async def _metadata(self, scope: Message, headers: Headers, body: bytes) -> Reply:
        return as_json(200, self.server.metadata(), ("cache-control", "public, max-age=300"))

    async def _keys(self, scope: Message, headers: Headers, body: bytes) -> Reply:
        return as_json(200, self.server.key_set(), ("cache-control", "public, max-age=300"))

    async def _show(self, scope: Message, headers: Headers, body: bytes) -> Reply:
        query, cookies = scope.get("query_string", b"").decode("latin-1"), headers.as_text().get("cookie", "")
        return await self._door.show(query, cookies, _address(scope))

    async def _decide(self, scope: Message, headers: Headers, body: bytes) -> Reply:
        return await self._door.decide(body, headers.as_text(), _address(scope))

    async def _token(self, scope: Message, headers: Headers, body: bytes) -> Reply:
        return await self._desk.token(body, headers.as_text(), _address(scope))

    async def _revoke(self, scope: Message, headers: Headers, body: bytes) -> Reply:
        return await self._desk.revoke(body, headers.as_text(), _address(scope))

    async def _register(self, scope: Message, headers: Headers, body: bytes) -> Reply:
        try:
            return as_json(201, await self._clients.register(body, _address(scope)))
        except OAuthError as error:
            return error.reply()


def _address(scope: Message) -> str:
    """Of whoever connected: the client, or a proxy before it."""
    client = scope.get("client")
    return str(client[0]) if client else ""


async def _body(receive: Receive) -> bytes | None:
    """The whole of it; None for one that is too long or never ends."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += message.get("body", b"")
        if len(body) > _BODY_BYTES:
            return None
        if not message.get("more_body"):
            return bytes(body)


async def _live(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": message["type"] + ".complete"})
        if message["type"] == "lifespan.shutdown":
            return
