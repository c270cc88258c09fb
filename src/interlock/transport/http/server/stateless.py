"""One message of a POST: which era it belongs to, what is judged in which order, and the work it leads to.

The order (modern.md §4), each with its code: the envelope in `params._meta` (-32602), the headers that say it again
(-32020), the version (-32022), the method and its capability (-32601), the `Mcp-Param-*` headers (-32020), the params
(-32602). Guards and authentication come before, in the carrier: they need no body.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn

import msgspec
from msgspec import UNSET, Raw

from ....protocol.input.strategy import Asker
from ....protocol.server.offered import offers
from ....protocol.server.responder import refuse
from ....protocol.server.router import version_in
from ....protocol.server.stateless import StatelessServer, check_envelope
from ....revisions.revision import Era, Revision
from ....revisions.table import NEWEST, OFFICIAL_METHODS, REVISIONS, names_of
from ....web.asgi.message import Headers
from ....wire.channel import Outlet
from ....wire.errors import InvalidParams, InvalidRequest, LocalError, MethodNotFound, Refused, UnsupportedVersion
from ....wire.escaping import display
from ....wire.exchange import Exchange, Filter, Handler, Peer, Principal, Work
from ....wire.http_headers import VERSION
from ....wire.json.decoder import decoder
from ....wire.json.null_members import without_nulls
from ....wire.messages import Frame, Id
from ....wire.meta import NO_META, PROTOCOL_VERSION, RequestMeta
from ....wire.methods import AUTHOR_METHOD, METHODS
from ....wire.types.capabilities import ClientCapabilities
from ..headers import check_params, check_routing, check_said, is_modern, routing_value
from ..param_headers import ParamHeader

__all__ = ["HttpSide", "OfSession"]

log = logging.getLogger("interlock.server")
_NOTHING = Raw(b"{}")
_members = msgspec.json.Decoder(dict[str, Raw])
_metas = decoder(RequestMeta)
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_NOT_FOR_HANDLER = frozenset({"notifications/cancelled", "notifications/progress", "notifications/initialized"})


class OfSession(Exception):
    """This message has no envelope: it belongs to a session of the handshake era."""


class HttpSide:
    """The server's side of all POSTs to one endpoint. It remembers nothing between two of them."""

    def __init__(
        self,
        handler: Handler,
        rows: dict[str, Revision],
        *,
        asker: Asker | None = None,
        filter: Filter | None = None,
        sessions: bool = False,
    ) -> None:
        self._handler = handler
        self._sessions = sessions
        """Is there somebody beside it who serves the handshake era?"""
        self._rows = {name: row for name, row in rows.items() if sessions or row.era is Era.STATELESS}
        if not self._rows:
            raise LocalError(f"none of the revisions {', '.join(rows)} can be served over HTTP without sessions")
        stamp = getattr(handler, "stamp", None)  # which a filter has not
        inner = filter(handler) if filter else handler
        self._stateless = StatelessServer(inner, self._rows, asker=asker, stamp=stamp)
        self._params_of: Callable[[str, Principal], tuple[ParamHeader, ...]] = getattr(handler, "param_headers", _none)

    # --- requests ---------------------------------------------------------------------------------

    def request(self, frame: Frame, headers: Headers, principal: Principal, outlet: Outlet) -> bytes | Work:
        """Refuse at once, or return the work that leads to the answer."""
        id: Any = frame.id
        method: Any = frame.method
        raw = frame.params if frame.params is not UNSET else _NOTHING
        row = METHODS.get(method, AUTHOR_METHOD)
        try:
            if method == "initialize" and self._sessions and version_in(raw) is UNSET:
                self._without_envelope(frame, raw, headers)  # its session reads the params: once is enough
            params = row.decoder.decode(raw)
        except Refused as refused:
            return refuse(NEWEST, id, refused)
        except _UNREADABLE as error:
            shorter = without_nulls(frame, row.decoder.decode, error)
            if shorter is not None:
                return self.request(shorter, headers, principal, outlet)
            return self._second_look(frame, id, raw, headers, principal, error), None
        meta: RequestMeta = params.meta if params.meta is not UNSET else NO_META
        try:
            if meta.version is UNSET:
                self._without_envelope(frame, raw, headers)
            named = getattr(params, row.named_by) if row.named_by is not None else None
            check_routing(headers, check_envelope(meta), method, named, row.named_by is not None)
            revision = self._stateless.admit(method, meta)
            if method == "tools/call" and (marked := self._params_of(params.name, principal)):
                check_params(headers, marked, params.arguments or _NOTHING)
        except Refused as refused:
            return refuse(NEWEST, id, refused)
        return self._stateless.start(frame, id, params, meta, outlet, revision, principal, headers)

    def _without_envelope(self, frame: Frame, raw: Raw, headers: Headers) -> NoReturn:
        """A request that names no version in its body: stateless and broken, or of the handshake era."""
        said = routing_value(headers, VERSION)
        # The version of a session is not known before `initialize` is answered: a header that does not name a version
        # we know is left to the negotiation.
        is_negotiated = frame.method == "initialize" and said not in REVISIONS
        if is_modern(said) and not is_negotiated:
            raise InvalidParams(f"params._meta must hold {PROTOCOL_VERSION}: every request brings its envelope")
        self._handshake(frame, raw, said)

    def _handshake(self, frame: Frame, raw: Raw, said: str | None) -> NoReturn:
        """Where sessions are not served, whoever wants one is told which versions are (modern.md §11, 6)."""
        if self._sessions:
            raise OfSession
        supported = names_of(self._rows)
        told = f"This endpoint serves no handshake session: supported are {', '.join(supported)}"
        requested = _asked_version(raw) if frame.method == "initialize" else said
        if requested is not None:
            raise UnsupportedVersion(told, {"supported": supported, "requested": requested})
        raise InvalidParams(f"{told}, each request with its envelope in params._meta", {"supported": supported})

    # --- requests that could not be read ----------------------------------------------------------

    async def _second_look(
        self, frame: Frame, id: Id, raw: Raw, headers: Headers, principal: Principal, error: Exception
    ) -> bytes:
        """Params of the wrong shape: everything else is judged before them."""
        told: Refused = InvalidParams(f"Invalid params: {str(error).replace('`', chr(39))}")
        try:
            await self._judge(frame, raw, headers, principal)
        except Refused as refused:
            told = refused
        return refuse(NEWEST, id, told)

    async def _judge(self, frame: Frame, raw: Raw, headers: Headers, principal: Principal) -> None:
        method: Any = frame.method
        members = _read_members(raw)
        meta = self._meta_of(frame, raw, members, headers)
        row = METHODS.get(method, AUTHOR_METHOD)
        name = _text(members.get(row.named_by or ""))
        check_routing(headers, check_envelope(meta), method, name, row.named_by is not None)
        self._stateless.admit(method, meta)
        if method in OFFICIAL_METHODS and not await offers(self._handler, method, Peer(principal=principal)):
            raise MethodNotFound(f"This server does not offer {method}")

    def _meta_of(self, frame: Frame, raw: Raw, members: dict[str, Raw], headers: Headers) -> RequestMeta:
        """The envelope, when that much can be read. A broken one is never taken for another era's."""
        found = members.get("_meta")
        if found is None or PROTOCOL_VERSION not in _read_members(found):
            self._without_envelope(frame, raw, headers)
        try:
            return _metas.decode(found or _NOTHING)
        except _UNREADABLE as error:
            raise InvalidParams(f"Invalid params._meta: {str(error).replace('`', chr(39))}") from None

    # --- notifications ----------------------------------------------------------------------------

    def notification(self, frame: Frame, headers: Headers, principal: Principal) -> Coroutine[Any, Any, None] | None:
        """Raise `Refused` for one that cannot be accepted, else the work it leads to, for which nobody waits."""
        method: Any = frame.method
        raw = frame.params if frame.params is not UNSET else _NOTHING
        if not method.startswith("notifications/"):
            raise InvalidRequest("A request needs an id")  # never a way to run its handler unanswered
        try:
            params = AUTHOR_METHOD.decoder.decode(raw)
        except _UNREADABLE as error:
            raise InvalidParams(f"Invalid params: {str(error).replace('`', chr(39))}") from None
        meta: RequestMeta = params.meta if params.meta is not UNSET else NO_META
        version = routing_value(headers, VERSION) if meta.version is UNSET else meta.version
        if not is_modern(version):
            self._handshake(frame, raw, version)
        check_said(headers, version, method)
        self._stateless.revision_of(version or "")
        return None if method in _NOT_FOR_HANDLER else self._hear(method, params, raw, meta, principal, headers)

    async def _hear(
        self, method: str, params: Any, raw: Raw, meta: RequestMeta, principal: Principal, headers: Headers
    ) -> None:
        """An exchange nobody waits for; the handler ignores those it does not know."""
        peer = Peer(meta.client or None, meta.capabilities or ClientCapabilities(), principal, lines=headers)
        try:
            await self._handler(Exchange(method, params, raw=raw, peer=peer, meta=meta))
        except Refused:
            log.debug("= the notification %r was ignored", display(method, 200))
        except Exception:
            log.exception("! handling the notification %r failed", display(method, 200))


def _none(name: str, principal: Principal) -> tuple[ParamHeader, ...]:
    """A plain handler has no schemas, and so no parameters in headers."""
    return ()


def _read_members(raw: Raw) -> dict[str, Raw]:
    try:
        return _members.decode(raw)
    except _UNREADABLE:
        return {}


def _text(raw: Raw | None) -> str | None:
    """A member as text, None when it is anything else."""
    try:
        return msgspec.json.decode(raw or b"null", type=str)
    except _UNREADABLE:
        return None


def _asked_version(raw: Raw) -> str | None:
    return _text(_read_members(raw).get("protocolVersion"))
