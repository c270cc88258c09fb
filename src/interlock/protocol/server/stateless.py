"""The stateless era, server side: remembers nothing between two requests."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from msgspec import UNSET

from ...revisions.revision import Era, Revision
from ...revisions.table import NEWEST, OFFICIAL_METHODS, names_of, not_served
from ...wire.channel import Outlet
from ...wire.errors import InternalError, InvalidParams, Refused, UnsupportedVersion
from ...wire.exchange import LOCAL, Exchange, Handler, HeaderLines, Peer, Principal, Question, Result, Work
from ...wire.messages import ErrorAnswer, Frame, Id
from ...wire.meta import CLIENT_CAPABILITIES, SUBSCRIPTION_ID, RequestMeta
from ...wire.types.common import LOG_LEVELS
from ..input.callback import check_can_ask
from ..input.strategy import Asker
from ..request import Served
from .responder import NO_STAMP, Stamp, answer, direct, refuse

__all__ = ["StatelessServer", "check_envelope"]


class StatelessServer:
    """Any number of clients. Each request brings its version, its capabilities and its identity."""

    def __init__(
        self,
        handler: Handler,
        rows: dict[str, Revision],
        *,
        principal: Principal = LOCAL,
        asker: Asker | None = None,
        stamp: Stamp | None = None,
    ) -> None:
        self._handler = direct(handler)
        self._asker = asker
        self._rows = {name: row for name, row in rows.items() if row.era is Era.STATELESS}
        self._supported = names_of(rows)
        self._principal = principal
        self._stamp: Stamp = stamp or getattr(handler, "stamp", NO_STAMP)

    def begin(self, frame: Frame, id: Id, params: Any, meta: RequestMeta, outlet: Outlet) -> bytes | Work:
        """Refuse at once, or return the work that leads to the answer."""
        try:
            revision = self.admit(frame.method, meta)  # pyright: ignore[reportArgumentType]
        except Refused as refused:
            return refuse(NEWEST, id, refused)
        return self.start(frame, id, params, meta, outlet, revision, self._principal)

    def start(
        self,
        frame: Frame,
        id: Id,
        params: Any,
        meta: RequestMeta,
        outlet: Outlet,
        revision: Revision,
        principal: Principal,
        headers: HeaderLines | None = None,
    ) -> Work:
        """The work that leads to the answer of a request that was admitted."""
        method: str = frame.method  # pyright: ignore[reportAssignmentType]
        able: Any = meta.capabilities  # there, since it was admitted
        peer = Peer(meta.client or None, able, principal, meta.log_level or None, headers)
        exchange = Served(method, params, frame.params or None, peer, meta, outlet, revision, refuse_to_ask)
        if method == "subscriptions/listen":
            return self._listen(exchange, id), exchange
        if method == "server/discover":
            return answer(self._discover, exchange, id, self._stamp), exchange
        if self._asker is not None:
            rounds = exchange.rounds = self._asker.rounds_of(self._handler, exchange)
            if rounds is not None:
                return answer(rounds, exchange, id, self._stamp), exchange
        return answer(self._handler, exchange, id, self._stamp), exchange

    async def _discover(self, exchange: Exchange) -> Result:
        """What the handler says of itself, without the versions that are not spoken on this carrier."""
        result = await self._handler(exchange)
        listed: Any = result.get("supportedVersions")
        if not isinstance(listed, list) or not set(cast("list[Any]", listed)) - set(self._supported):
            return result
        spoken = [version for version in cast("list[Any]", listed) if version in self._supported]
        return {**result, "supportedVersions": spoken}

    async def _listen(self, exchange: Served, id: Id) -> bytes:
        """A stream of change notices, tagged with its request's id."""
        exchange.subscription = id
        outlet = exchange.outlet

        async def serve(exchange: Exchange) -> Result:
            result = await self._handler(exchange)
            return {**result, "_meta": {**result.get("_meta", {}), SUBSCRIPTION_ID: id}}

        body = await answer(serve, exchange, id, self._stamp)
        if isinstance(body, ErrorAnswer):
            return body  # it never began
        # The server ends the stream: its result, then the notification the cancellation page asks for
        # (modern.md §13.1). A call scheduled now runs after the result was handed to the carrier.
        asyncio.get_running_loop().call_soon(_tell_end, outlet, id)
        return body

    def admit(self, method: str, meta: RequestMeta) -> Revision:
        """The checks every request must pass, in the order of modern.md §4: envelope, version, method."""
        revision = self._rows.get(meta.version)  # pyright: ignore[reportArgumentType]
        if revision is not None and method in revision.requests and meta.capabilities and meta.log_level is UNSET:
            return revision  # as almost all are
        revision = self.revision_of(check_envelope(meta))
        if meta.log_level is not UNSET and meta.log_level not in LOG_LEVELS:
            raise InvalidParams(f"{meta.log_level!r:.40} is no log level: use one of {', '.join(LOG_LEVELS)}")
        if method not in revision.requests and method in OFFICIAL_METHODS:
            raise not_served(method)
        return revision

    def revision_of(self, requested: str) -> Revision:
        """-32022 for others; revisions of the handshake era are listed too, they just cannot be spoken per request."""
        revision = self._rows.get(requested)
        if revision is None:
            told = f"Unsupported protocol version: supported are {', '.join(self._supported)}"
            raise UnsupportedVersion(told, {"supported": self._supported, "requested": requested})
        return revision


def check_envelope(meta: RequestMeta) -> str:
    """The version a request names; -32602 unless its `_meta` holds all that it must."""
    if meta.version is UNSET or meta.capabilities is UNSET:
        raise InvalidParams(f"params._meta must hold {CLIENT_CAPABILITIES} beside the protocol version")
    return meta.version


def _tell_end(outlet: Outlet, id: Id) -> None:
    work = outlet.tell("notifications/cancelled", {"requestId": id, "reason": "the server ended the subscription"})
    _ending.add(task := asyncio.ensure_future(work))
    task.add_done_callback(_ended)


_ending: set[asyncio.Future[None]] = set()


def _ended(task: asyncio.Future[None]) -> None:
    _ending.discard(task)
    if not task.cancelled():
        task.exception()  # the connection may be gone by now: nobody is left to be told


async def refuse_to_ask(exchange: Served, question: Question) -> Result:
    check_can_ask(exchange.revision, exchange.peer, question)
    raise InternalError(f"{question.method}: this server cannot put questions to stateless clients")
