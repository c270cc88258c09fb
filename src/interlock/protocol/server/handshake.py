"""The handshake era, server side: one client that introduced itself, and the verbs only it knows.

::

    NEW ── initialize ──► OPENING ── answered ──► OPEN ── notifications/initialized ──► ready

Requests that come while OPENING wait for its end. From OPEN on they are served; the server itself says nothing but
pings and log messages before `ready` (basic/lifecycle).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, cast

import msgspec

from ...revisions.revision import Era, Revision
from ...revisions.shaping import plain, shape_noun
from ...revisions.table import NEWEST, OFFICIAL_METHODS, names_of, newest_of, not_served
from ...wire.aio import Flag
from ...wire.channel import Outlet
from ...wire.errors import InvalidParams, InvalidRequest, LocalError, MethodNotFound, Refused, UnsupportedVersion
from ...wire.exchange import LOCAL, Exchange, Handler, Peer, Principal, Question, Result, Silenced, Work
from ...wire.limits import LONGEST_URI
from ...wire.messages import Frame, Id, encode_result
from ...wire.meta import NO_META, SERVER_INFO, RequestMeta
from ...wire.methods import METHODS
from ...wire.types.capabilities import ServerCapabilities
from ...wire.types.common import LOG_LEVELS
from ...wire.types.lifecycle import EmptyParams, InitializeParams, SetLevelParams
from ...wire.types.notifications import CHANGING_LISTS, ListenFilter, ListenParams
from ...wire.types.resources import ResourceParams
from ...wire.uri import has_uri_characters
from ..input.callback import answerable, call_back, check_can_ask
from ..request import Served
from .responder import answer, direct, refuse
from .subscription_quota import WatchMeter

if TYPE_CHECKING:
    from .session_record import SessionRecord

__all__ = ["HandshakeServer"]

log = logging.getLogger("interlock.server")
_READY_WITHIN = 30.0  # seconds a question waits for `initialized`
_STANDING_LEVEL = "info"  # what is logged until the client says otherwise (server/utilities/logging)


class _Later:
    """Stands for an exchange that begins when the opening is over, and is silenced with it."""

    __slots__ = ("exchange",)

    def __init__(self) -> None:
        self.exchange: Silenced | None = None

    def silence(self) -> None:
        if self.exchange is not None:
            self.exchange.silence()


class HandshakeServer:
    """One session: what its client said in `initialize` holds until the end."""

    def __init__(
        self,
        handler: Handler,
        rows: dict[str, Revision],
        standing: Outlet,
        *,
        strict: bool = False,
        principal: Principal = LOCAL,
        on_ready: Callable[[], None] | None = None,
        meter: WatchMeter | None = None,
    ) -> None:
        self._handler = direct(handler)
        self._rows = {name: row for name, row in rows.items() if row.era is Era.HANDSHAKE}
        self._spoken = rows
        self._standing = standing  # what goes to the session, not to one request
        self._strict = strict
        self._principal = principal
        self._on_ready = on_ready
        self._revision: Revision | None = None
        self._peer = Peer(principal=principal)
        self._opening: asyncio.Future[None] | None = None
        self._handled: frozenset[str] = frozenset()  # from OPEN on, the methods that go straight to the handler
        self._ready = Flag()
        self._watched = ListenFilter()
        self._meter = meter or WatchMeter()
        self._capabilities = ServerCapabilities()
        self.edition = 0
        """Counts what the client has said about the session: with it, `record` may be another one."""

    @property
    def revision(self) -> Revision | None:
        """The negotiated revision, None before `initialize` was answered."""
        return self._revision

    @property
    def peer(self) -> Peer:
        return self._peer

    # --- requests ---------------------------------------------------------------------------------

    def begin(self, frame: Frame, id: Id, params: Any, meta: RequestMeta, outlet: Outlet) -> bytes | Work:
        """Answer at once what needs no handler, or return the work that leads to the answer."""
        method: Any = frame.method
        if method in self._handled and (revision := self._revision) is not None:  # as almost all are
            exchange = Served(method, params, frame.params or None, self._peer, meta, outlet, revision, self._ask)
            return answer(self._handler, exchange, id), exchange
        try:
            if method == "initialize":
                return self._open(id, params), None
            if method in self._verbs and (self._revision is not None or (method == "ping" and self._rows)):
                return encode_result(id, self._verbs[method](self, params))
            if self._opening is not None:
                later = _Later()
                return self._after_opening(later, frame, id, params, meta, outlet), later
            if self._revision is None:
                raise self.not_open()
            if method not in self._revision.requests and method in OFFICIAL_METHODS:
                raise not_served(method)
            exchange = Served(method, params, frame.params or None, self._peer, meta, outlet, self._revision, self._ask)
            return answer(self._handler, exchange, id), exchange
        except Refused as refused:
            return refuse(self._revision or next(iter(self._rows.values()), NEWEST), id, refused)

    async def _ask(self, exchange: Served, question: Question) -> Result:
        check_can_ask(exchange.revision, exchange.peer, question)
        await self._when_ready()  # nothing but pings and logs before `initialized` (basic/lifecycle)
        return await call_back(exchange, question)

    async def _after_opening(
        self, later: _Later, frame: Frame, id: Id, params: Any, meta: RequestMeta, outlet: Outlet
    ) -> bytes:
        if self._opening is not None:
            await asyncio.wait([self._opening])
        work = self.begin(frame, id, params, meta, outlet)
        if isinstance(work, bytes):
            return work
        coroutine, later.exchange = work
        return await coroutine

    # --- opening ----------------------------------------------------------------------------------

    def _open(self, id: Id, params: InitializeParams) -> Coroutine[Any, Any, bytes]:
        if self._revision is not None or self._opening is not None:
            raise InvalidRequest("This connection is initialized already")
        revision = self._rows.get(params.protocol_version) or newest_of(self._rows, Era.HANDSHAKE)
        if revision is None:
            raise self._no_handshake(params.protocol_version)
        self._opening = asyncio.get_running_loop().create_future()
        return self._initialize(id, params, revision)

    async def _initialize(self, id: Id, params: InitializeParams, revision: Revision) -> bytes:
        can = answerable(revision, params.capabilities)
        peer = Peer(params.client_info, can, principal=self._principal, log_level=_STANDING_LEVEL)
        exchange = Served("server/discover", EmptyParams(), None, peer, NO_META, self._standing, revision, self._ask)
        opening = cast("asyncio.Future[None]", self._opening)
        try:
            return await answer(self._introduce(peer, revision), exchange, id)
        finally:
            self._opening = None
            opening.set_result(None)
            if self._revision is None:
                self._ready.clear()  # an `initialized` behind a failed introduction means nothing
            else:
                self._handled = _handled(self._revision)

    def _introduce(self, peer: Peer, revision: Revision) -> Handler:
        """`server/discover` of the handler, said as the result of `initialize`."""

        async def introduce(exchange: Exchange) -> Result:
            found = await self._handler(exchange)
            declared = cast("dict[str, Any]", plain(found.get("capabilities", {})))
            known = {name: value for name, value in declared.items() if name in revision.server_capabilities}
            info = plain(found.get("_meta", {})).get(SERVER_INFO, {"name": "unknown", "version": "0"})
            self._capabilities = msgspec.convert(known, ServerCapabilities)
            if "logging" not in known:
                peer.log_level = None  # what was not declared is not used, whatever is added later
            self._peer, self._revision = peer, revision
            self.edition += 1
            result: Result = {
                "protocolVersion": revision.name,
                "capabilities": known,
                "serverInfo": shape_noun(revision, "Implementation", info),
            }
            return result | ({"instructions": found["instructions"]} if found.get("instructions") else {})

        return introduce

    def not_open(self) -> Refused:
        """Neither introduced nor with an envelope: what a client of either era has to send."""
        return InvalidParams(
            "Send initialize first, or the protocol version and clientCapabilities in params._meta",
            {"supported": names_of(self._spoken)},
        )

    def _no_handshake(self, requested: str) -> Refused:
        supported = names_of(self._spoken)
        told = f"This server speaks {', '.join(supported)} only, which has no initialize"
        return UnsupportedVersion(told, {"supported": supported, "requested": requested})

    # --- notifications ----------------------------------------------------------------------------

    def initialized(self) -> Coroutine[Any, Any, None] | None:
        """The client is ready to be spoken to, from now on of changes too. Before `initialize` this means nothing."""
        if (self._revision is None and self._opening is None) or self._ready.is_set():
            return None
        self._ready.set()
        self.edition += 1
        if self._on_ready is not None:
            self._on_ready()
        return self.listen()

    async def _when_ready(self) -> None:
        if self._ready.is_set():
            return
        try:
            async with asyncio.timeout(_READY_WITHIN):
                await self._ready.wait()
        except TimeoutError:
            raise LocalError(f"the client sent no initialized within {_READY_WITHIN:g} s") from None

    async def listen(self) -> None:
        """One internal listen exchange: change notices of the newest revision, said as the old ones."""
        if self._opening is not None:
            await asyncio.wait([self._opening])
        if self._revision is None:
            return
        can = self._capabilities.can
        self._watched.tools_list_changed = can("tools.listChanged")
        self._watched.prompts_list_changed = can("prompts.listChanged")
        self._watched.resources_list_changed = can("resources.listChanged")
        params = ListenParams(notifications=self._watched)
        exchange = Served(
            "subscriptions/listen",
            params,
            None,
            self._peer,
            NO_META,
            self._standing,
            self._revision,
            self._ask,
        )
        try:
            await self._handler(exchange)
        except MethodNotFound:
            pass  # a handler without change notices
        except Exception:
            log.exception("! the stream of change notices ended")

    def stop_hearing(self) -> None:
        """Whoever listens hears of nothing new from now on, and goes on saying what it has heard."""
        heard, watched = self._watched, set(self._watched.resource_subscriptions)
        self._watched = ListenFilter(resource_subscriptions=watched)
        heard.tools_list_changed = heard.prompts_list_changed = heard.resources_list_changed = False
        heard.resource_subscriptions = set()

    def missed(self) -> list[tuple[str, dict[str, str]]]:
        """The notices that are true whatever happened while nobody listened: all that it watches may have changed."""
        can = self._capabilities.can
        found: list[tuple[str, dict[str, str]]] = [
            (f"notifications/{kind}/list_changed", {}) for kind in CHANGING_LISTS if can(f"{kind}.listChanged")
        ]
        for uri in sorted(self._watched.resource_subscriptions):
            found.append(("notifications/resources/updated", {"uri": uri}))
        return found

    # --- the same session in another process ------------------------------------------------------

    def record(self, speaker: int = 0) -> SessionRecord | None:
        """What there is to know about it; None before `initialize` was answered."""
        if self._revision is None:
            return None
        from .session_record import SessionRecord  # only one of several processes writes it down

        return SessionRecord(
            revision=self._revision.name,
            client=self._peer.info,
            capabilities=self._peer.capabilities,
            offered=self._capabilities,
            log_level=self._peer.log_level,
            watched=frozenset(self._watched.resource_subscriptions),
            ready=self._ready.is_set(),
            speaker=speaker,
        )

    def recall(self, record: SessionRecord) -> bool:
        """Be the session of this record, from now on or again. False: its revision is not spoken here."""
        if self._revision is None:
            revision = self._rows.get(record.revision)
            if revision is None:
                return False
            self._peer = Peer(record.client, record.capabilities, principal=self._principal)
            self._revision, self._capabilities = revision, record.offered
            if self._opening is None:
                self._handled = _handled(revision)
        self._peer.log_level = record.log_level
        watched = self._watched.resource_subscriptions  # the same set: who listens looks at it
        watched.intersection_update(record.watched)
        watched.update(record.watched)
        self._meter.recount(watched)
        if record.ready and not self._ready.is_set():
            self._ready.set()
            if self._on_ready is not None:
                self._on_ready()
        return True

    # --- the old verbs ----------------------------------------------------------------------------

    def _ping(self, params: EmptyParams) -> Result:
        return {}

    def _shutdown(self, params: Any) -> Result:
        """No revision has it, but a summary in circulation does: a courtesy, off in strict mode (§16.1)."""
        if self._strict:
            raise MethodNotFound("shutdown is no method of MCP: close the transport instead")
        return {}

    def _set_level(self, params: SetLevelParams) -> Result:
        self._require("logging/setLevel")
        level = "warning" if params.level == "warn" and not self._strict else params.level
        if level not in LOG_LEVELS:
            raise InvalidParams(f"{level!r:.40} is no log level: use one of {', '.join(LOG_LEVELS)}")
        self._peer.log_level = level
        self.edition += 1
        return {}

    def _subscribe(self, params: ResourceParams) -> Result:
        self._require("resources/subscribe")
        if len(params.uri) > LONGEST_URI:
            raise InvalidParams(f"A URI to watch may have {LONGEST_URI} characters")
        if not has_uri_characters(params.uri):
            raise InvalidParams(f"{params.uri[:200]!r} is no URI, so nothing can be watched there")
        watched = self._watched.resource_subscriptions
        if params.uri not in watched:
            self._meter.add(params.uri, len(watched))
            watched.add(params.uri)
        self.edition += 1
        return {}

    def _unsubscribe(self, params: ResourceParams) -> Result:
        self._require("resources/unsubscribe")
        watched = self._watched.resource_subscriptions
        if params.uri in watched:
            watched.remove(params.uri)
            self._meter.remove(params.uri)
        self.edition += 1
        return {}

    def _require(self, method: str) -> None:
        gate = cast(str, METHODS[method].gate)
        if not self._capabilities.can(gate):
            raise MethodNotFound(f"This server does not offer {gate}")

    _verbs: ClassVar[dict[str, Callable[[HandshakeServer, Any], Result]]] = {
        "ping": _ping,
        "logging/setLevel": _set_level,
        "resources/subscribe": _subscribe,
        "resources/unsubscribe": _unsubscribe,
        "shutdown": _shutdown,
    }


@cache
def _handled(revision: Revision) -> frozenset[str]:
    """Its methods that neither open a session nor belong to it."""
    return revision.requests - {"initialize", *HandshakeServer._verbs}  # pyright: ignore[reportPrivateUsage]
