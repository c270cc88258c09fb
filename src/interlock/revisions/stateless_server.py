"""The stateless era, server side: remembers nothing between two requests."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from msgspec import UNSET

from ..wire.errors import InternalError, InvalidParams, MethodNotFound, Refused, UnsupportedVersion
from ..wire.exchange import LOCAL, Exchange, Handler, Peer, Principal, Question, Result
from ..wire.frames import Frame, Id
from ..wire.link import Outlet
from ..wire.meta import CLIENT_CAPABILITIES, RequestMeta
from ..wire.types.common import LOG_LEVELS
from .answering import answer, refuse
from .asking import check_can_ask
from .revision import Era, Revision
from .table import NEWEST, OFFICIAL_METHODS, names_of
from .voice import Voice

__all__ = ["StatelessServer"]


class StatelessServer:
    """Any number of clients. Each request brings its version, its capabilities and its identity."""

    def __init__(self, handler: Handler, rows: dict[str, Revision], *, principal: Principal = LOCAL) -> None:
        self._handler = handler
        self._rows = {name: row for name, row in rows.items() if row.era is Era.STATELESS}
        self._supported = names_of(rows)
        self._principal = principal

    def begin(
        self, frame: Frame, id: Id, params: Any, meta: RequestMeta, outlet: Outlet
    ) -> bytes | Coroutine[Any, Any, bytes]:
        """Refuse at once, or return the work that leads to the answer."""
        try:
            revision = self.admit(frame.method, meta)  # pyright: ignore[reportArgumentType]
        except Refused as refused:
            return refuse(NEWEST, id, refused)
        method: str = frame.method  # pyright: ignore[reportAssignmentType]
        voice = Voice(outlet, revision, id if method == "subscriptions/listen" else None)
        peer = Peer(
            meta.client or None,
            meta.capabilities or None,
            principal=self._principal,
            log_level=meta.log_level or None,
        )
        exchange = Exchange(method, params, raw=frame.params or None, peer=peer, meta=meta, notify=voice.say)
        exchange.ask = _Asker(revision, peer).ask
        voice.follow(exchange)
        return answer(self._handler, exchange, revision, id, voice)

    def admit(self, method: str, meta: RequestMeta) -> Revision:
        """The checks every request must pass, in the order of modern.md §4: envelope, version, method."""
        if meta.version is UNSET or meta.capabilities is UNSET:
            raise InvalidParams(f"params._meta must hold {CLIENT_CAPABILITIES} beside the protocol version")
        if meta.log_level is not UNSET and meta.log_level not in LOG_LEVELS:
            raise InvalidParams(f"{meta.log_level!r:.40} is no log level: use one of {', '.join(LOG_LEVELS)}")
        revision = self._rows.get(meta.version)
        if revision is None:
            raise self.unsupported(meta.version)
        if method not in revision.requests and method in OFFICIAL_METHODS:
            raise MethodNotFound(f"{method} does not exist in this revision")
        return revision

    def unsupported(self, requested: str) -> UnsupportedVersion:
        """-32022; revisions of the handshake era are listed too, they just cannot be spoken per request."""
        told = f"Unsupported protocol version: supported are {', '.join(self._supported)}"
        return UnsupportedVersion(told, {"supported": self._supported, "requested": requested})


class _Asker:
    __slots__ = ("_peer", "_revision")

    def __init__(self, revision: Revision, peer: Peer) -> None:
        self._revision, self._peer = revision, peer

    async def ask(self, question: Question) -> Result:
        check_can_ask(self._revision, self._peer, question)
        raise InternalError(f"{question.method}: this server cannot put questions to stateless clients")


