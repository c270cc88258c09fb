"""Who asks at an endpoint: nobody in particular, whoever a hook of the author's says, or whom a token names.

Asked before the body is read. What a protected endpoint must tell everybody, its metadata and the endpoints of an
authorization server beside it, is answered here, too.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from ....auth.authorization_server.server import AuthorizationServer
from ....auth.resource_server.guard import Protector, protector_of
from ....auth.resource_server.protection import Protection
from ....auth.resource_server.token_verifier import Admitted
from ....state.store import State
from ....web.asgi.cors import telling
from ....web.asgi.guard import Guard
from ....web.asgi.message import Headers, HttpRefusal, Message, Receive, Send, send_whole
from ....wire.errors import InternalError, LocalError
from ....wire.exchange import ANONYMOUS, Principal
from .backends import Sharing
from .request import HttpCall
from .routes import below

__all__ = ["ANYBODY", "Admission", "Authenticate"]

log = logging.getLogger("interlock.http")
Authenticate = Callable[[Mapping[str, str]], Principal | HttpRefusal | Awaitable[Principal | HttpRefusal]]
"""Takes the headers (names in small letters); says who asks, or refuses. Called before the body is read."""
ANYBODY = Admitted(ANONYMOUS, frozenset())


class Admission:
    """The door of one endpoint. Without a hook and without a protection it stands open."""

    def __init__(
        self, path: str, handler: Any, guard: Guard, *, authenticate: Authenticate | None, auth: Protection | None
    ) -> None:
        auth = auth or getattr(handler, "auth", None)
        if auth is not None and not isinstance(cast(Any, auth), Protection):
            told = "issuer.protection()" if isinstance(auth, AuthorizationServer) else "Protection(...)"
            raise LocalError(f"auth is {type(auth).__name__}: give {told}")
        if auth is not None and authenticate is not None:
            raise LocalError("auth and authenticate both say who asks: give one of them")
        self._authenticate, self._guard = authenticate, guard
        self._protector = None if auth is None else protector_of(auth, path, handler, guard)
        self.asks = auth is not None or authenticate is not None
        """Is anybody asked who he is?"""

    def share(self, sharing: Sharing) -> None:
        """One of several processes: used proofs and nonces are those of all of them."""
        if (protector := self._protector) is not None:
            protector.check_shared()
            sharing.on_ready.append(lambda: protector.share(sharing.state))

    @property
    def stores(self) -> tuple[State, ...]:
        return () if self._protector is None else self._protector.stores

    # --- for everybody ----------------------------------------------------------------------------

    def serves(self, path: str) -> bool:
        """Is this an address that belongs to the protection, and not to MCP?"""
        return self._protector is not None and self._protector.serves(path)

    async def serve(self, scope: Message, receive: Receive, send: Send) -> None:
        assert self._protector is not None
        beside = self._protector.beside
        if beside is not None and beside.serves(scope["path"]):
            await beside(scope, receive, send)
            return
        headers, verb, origins = Headers(scope["headers"]), scope["method"], self._guard.origins
        answer = self._guard.foreign(headers, reads=True) or origins.preflight(verb, headers, "GET")
        answer = answer or self._protector.document(scope["path"], verb)
        await send_whole(telling(origins, verb, headers, send), answer.status, answer.headers, answer.body)

    # --- for who asks -----------------------------------------------------------------------------

    async def who(self, call: HttpCall, headers: Headers, scope: Message) -> Admitted | HttpRefusal:
        if self._protector is not None:
            return await self._by_token(self._protector, call, headers, scope)
        found = await self._hooked(call, headers)
        return found if isinstance(found, HttpRefusal) else Admitted(found, frozenset())

    async def _by_token(
        self, protector: Protector, call: HttpCall, headers: Headers, scope: Message
    ) -> Admitted | HttpRefusal:
        place = below(scope["path"], scope.get("root_path", "").rstrip("/"))
        try:
            found = await call.check(protector.admit(headers, scope["method"], place))
        except Exception:
            return _unchecked("a token could not be judged")
        for name in (b"authorization", b"dpop"):
            headers.values.pop(name, None)  # the token is for us: no author can pass it on by mistake (AUTH-037)
        return found

    def lacking(self, found: Admitted, body: bytes) -> HttpRefusal | None:
        """Why this caller may not do what the body asks for, as far as a token decides that."""
        return None if self._protector is None else self._protector.lacking(found, body)

    async def _hooked(self, call: HttpCall, headers: Headers) -> Principal | HttpRefusal:
        assert self._authenticate is not None
        try:
            found: Any = self._authenticate(headers.as_text())
            return _verdict(await call.check(found) if inspect.isawaitable(found) else found)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return _unchecked("authenticate failed")  # the hook's own, nobody cancelled this request
        except GeneratorExit:
            raise  # thrown away with its loop
        except BaseException:
            return _unchecked("authenticate failed")  # SystemExit too: one request fails, the server lives


def _verdict(found: Any) -> Principal | HttpRefusal:
    """Nobody is let in by a hook that forgot to return, and nothing is sent that would break the response."""
    if isinstance(found, HttpRefusal):
        found.check()
    elif not isinstance(found, Principal):
        raise LocalError(f"authenticate returned {type(found).__name__}: return a Principal or an HttpRefusal")
    return found


def _unchecked(what: str) -> HttpRefusal:
    """The client gets a reference, the log gets the reason."""
    reference = secrets.token_hex(4)
    log.exception("! %s (reference %s)", what, reference)
    return HttpRefusal.saying(500, InternalError(f"Internal error (reference {reference})"))
