"""Which era speaks? The only place on the server side that looks, for every message on its own.

A request whose `params._meta` names a protocol version is stateless, whatever its method; all others belong to the
handshake session of this connection (modern.md §11). Both may be spoken on one process side by side.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import Any, cast

import msgspec
from msgspec import UNSET, Raw, UnsetType

from ...revisions.revision import Era, Revision
from ...revisions.shaping import shape_noun
from ...revisions.table import NEWEST, OFFICIAL_METHODS, REVISIONS
from ...wire.channel import Outlet
from ...wire.errors import BadFrame, ConnectionEnded, InvalidParams, MethodNotFound, Refused
from ...wire.exchange import LOCAL, Exchange, Handler, Principal, Work
from ...wire.json.decoder import decoder
from ...wire.json.null_members import without_nulls
from ...wire.json.reader import read_json
from ...wire.messages import Frame, Id, encode, encode_error
from ...wire.meta import NO_META, PROTOCOL_VERSION, TRACE_KEYS, RequestMeta
from ...wire.methods import AUTHOR_METHOD, METHODS
from ..input.strategy import Asker
from .handshake import HandshakeServer
from .responder import refuse
from .stateless import StatelessServer
from .subscription_quota import WatchMeter

__all__ = ["ServerSide", "version_in"]

log = logging.getLogger("interlock.server")
_NOTHING = Raw(b"{}")
_EDGE_NOTICES = frozenset({"notifications/initialized", "notifications/cancelled", "notifications/progress"})


class _VersionMeta(msgspec.Struct):
    version: str | UnsetType = msgspec.field(default=UNSET, name=PROTOCOL_VERSION)


class _VersionOnly(msgspec.Struct):
    """Params of which nothing but the protocol version is read."""

    meta: _VersionMeta = msgspec.field(default_factory=_VersionMeta, name="_meta")


_versions = decoder(_VersionOnly)
_members = msgspec.json.Decoder(dict[str, Raw])
_OLD_KEYS = frozenset({"progressToken", *TRACE_KEYS})


class ServerSide:
    """The server's side of one two-way connection, in both eras."""

    def __init__(
        self,
        handler: Handler,
        rows: dict[str, Revision],
        *,
        strict: bool = False,
        principal: Principal = LOCAL,
        asker: Asker | None = None,
        on_ready: Callable[[], None] | None = None,
        on_end: Callable[[], None] | None = None,
        meter: WatchMeter | None = None,
    ) -> None:
        self._handler = handler
        self._rows = rows
        self._strict = strict
        self._principal = principal
        self._on_ready = on_ready
        self._on_end = on_end
        self._meter = meter or WatchMeter()
        self._asker = asker
        self._stateless = StatelessServer(handler, rows, principal=principal, asker=asker)
        self._handshake: HandshakeServer | None = None
        self._outlet: Outlet | None = None

    def attach(self, outlet: Outlet) -> None:
        """Give it the connection it speaks through."""
        self._outlet = outlet
        self._handshake = HandshakeServer(
            self._handler,
            self._rows,
            outlet,
            strict=self._strict,
            principal=self._principal,
            on_ready=self._on_ready,
            meter=self._meter,
        )

    @property
    def handshake(self) -> HandshakeServer:
        assert self._handshake is not None, "attach() first"
        return self._handshake

    @property
    def batches(self) -> bool:
        revision = self.handshake.revision
        return revision is not None and revision.batches

    def request(self, frame: Frame, outlet: Outlet | None = None) -> bytes | Work | None:
        """`outlet`: where things said for this request go, if that is not where all goes."""
        id: Any = frame.id
        outlet = outlet or self._outlet
        method: Any = frame.method
        raw = frame.params or _NOTHING
        try:
            params = METHODS.get(method, AUTHOR_METHOD).decoder.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            shorter = without_nulls(frame, METHODS.get(method, AUTHOR_METHOD).decoder.decode, error)
            if shorter is not None:
                return self.request(shorter, outlet)
            return self._second_look(frame, id, raw, error, outlet), None
        meta: RequestMeta = params.meta or NO_META
        edge: Any = self._handshake if meta.version is UNSET else self._stateless
        return edge.begin(frame, id, params, meta, outlet)

    async def _second_look(self, frame: Frame, id: Id, raw: Raw, error: Exception, outlet: Outlet | None) -> bytes:
        """Params of the wrong shape. The version and the method are judged before them (modern.md §4)."""
        revision = self.handshake.revision or NEWEST
        told: Refused = InvalidParams(f"Invalid params: {str(error).replace('`', chr(39))}")
        try:
            version = version_in(raw)
            if version is UNSET and (params := _without_envelope(frame, raw)) is not None:
                work = self.handshake.begin(frame, id, params, params.meta, cast(Outlet, outlet))
                return work if isinstance(work, bytes) else await work[0]
            revision = await self._judge(cast(str, frame.method), raw, version)
        except Refused as refused:
            told = refused
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass  # not even the version can be read
        return refuse(revision, id, told)

    async def _judge(self, method: str, raw: Raw, version: str | UnsetType) -> Revision:
        """What is wrong before the params are: the introduction, the version, the envelope, the method."""
        revision = self.handshake.revision
        if version is not UNSET:
            revision = self._stateless.revision_of(version)
            self._stateless.admit(method, AUTHOR_METHOD.decoder.decode(raw).meta)
        if revision is None:
            if method == "initialize":
                return NEWEST
            raise self.handshake.not_open()
        from .offered import offers  # only what is malformed is judged

        if method in OFFICIAL_METHODS and not (
            method in revision.requests and await offers(self._handler, method, self.handshake.peer)
        ):
            raise MethodNotFound(f"This server does not offer {method}")
        return revision

    def notification(self, frame: Frame) -> Coroutine[Any, Any, None] | None:
        method: Any = frame.method
        if method == "notifications/initialized":
            return self.handshake.initialized()
        return self._notice(method, frame) if self._is_for_handler(method) else None

    def _is_for_handler(self, method: str) -> bool:
        # A request's method without an id is a mistake of the peer, never a way to run its handler unanswered.
        return method.startswith("notifications/") and method not in _EDGE_NOTICES

    async def _notice(self, method: str, frame: Frame) -> None:
        """A notification is an exchange nobody waits for; the handler ignores those it does not know."""
        try:
            raw = frame.params if frame.params is not UNSET else _NOTHING
            params = AUTHOR_METHOD.decoder.decode(raw)
            meta = params.meta if params.meta is not UNSET else NO_META
            await self._handler(
                Exchange(method, params, raw=raw, peer=self.handshake.peer, meta=meta, outlet=self._outlet)
            )
        except (Refused, msgspec.DecodeError, UnicodeDecodeError):
            log.debug("= the notification %r was ignored", method[:200])
        except Exception:
            log.exception("! handling the notification %r failed", method[:200])

    def junk(self, line: bytes, bad: BadFrame) -> bytes | None:
        return None if bad.refusal is None else encode_error(bad.id, bad.refusal)

    def ended(self, error: ConnectionEnded) -> None:
        self._meter.end()
        if self._asker is not None and self._outlet is not None:
            self._asker.parking.leave(self._outlet)
        if self._on_end is not None:
            self._on_end()


def version_in(raw: Raw) -> str | UnsetType:
    """The version that the envelope of a request names, without reading anything else of its params."""
    return _versions.decode(raw).meta.version


def _without_envelope(frame: Frame, raw: Raw) -> Any:
    """The params of a handshake request, whatever stands where its revision knows nothing (META-01, SCH-23, CAP-08)."""
    members = _members.decode(raw)
    if frame.method == "initialize":
        members = _introduction(members)
    meta = {key: value for key, value in _members.decode(members.get("_meta", _NOTHING)).items() if key in _OLD_KEYS}
    row = METHODS.get(cast(str, frame.method), AUTHOR_METHOD)
    try:
        return row.decoder.decode(encode({**members, "_meta": meta}))
    except msgspec.ValidationError:
        return None


def _introduction(members: dict[str, Raw]) -> dict[str, Any]:
    """What an `initialize` says in the words of the revision it asks for."""
    asked = read_json(members.get("protocolVersion", Raw(b"null")))
    revision = REVISIONS.get(asked) if isinstance(asked, str) else None
    if revision is None or revision.era is not Era.HANDSHAKE:
        return members
    told: dict[str, Any] = {**members}
    if "clientInfo" in members:
        told["clientInfo"] = shape_noun(revision, "Implementation", members["clientInfo"])
    if "capabilities" in members:
        declared = _members.decode(members["capabilities"])
        told["capabilities"] = {key: value for key, value in declared.items() if key in revision.client_capabilities}
    return told
