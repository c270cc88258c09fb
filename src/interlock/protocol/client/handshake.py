"""The handshake era, client side: introduce ourselves once, then call, and answer what the server asks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any, cast

from msgspec import UNSET

from ...revisions.revision import Era, Revision
from ...revisions.table import newest_of
from ...wire.channel import Link, Patience
from ...wire.errors import (
    BadResult,
    InternalError,
    InvalidParams,
    MethodNotFound,
    NoCommonRevision,
    Refused,
    UnsupportedVersion,
)
from ...wire.exchange import Exchange, Question, Result, Work
from ...wire.messages import Frame, Id, encode_error, encode_result
from ...wire.meta import SERVER_INFO
from ..input.callback import result_of
from ..input.form_schema import wrong_form
from ..input.sampling import what_is_wrong_in
from ..throttling import QuestionMeter
from .base import ClientEdge, params_of
from .identity import Identity
from .version_errors import no_common, supported_in

__all__ = ["HandshakeClient", "initialize"]

log = logging.getLogger("interlock.client")
_NAME_VERSIONS = frozenset({InvalidParams.code, UnsupportedVersion.code})  # refusals whose data may list versions


async def initialize(
    link: Link,
    wanted: Revision,
    rows: dict[str, Revision],
    me: Identity,
    patience: Patience,
    adopt: Callable[[ClientEdge], None],
) -> HandshakeClient:
    """`initialize`, then `initialized`. A version we cannot use ends it before `initialized` (LIFE-13).

    A server that refuses the version and lists its own (2025-11-25 basic/lifecycle#error-handling) is asked once
    more, for the newest version that both sides have.
    """
    try:
        found = await _greet(link, wanted, me, patience)
    except Refused as refused:
        wanted = _other_version(refused, wanted, rows)
        found = await _greet(link, wanted, me, patience)
    version = found.get("protocolVersion")
    if not isinstance(version, str):
        raise BadResult("initialize: the server named no protocol version")
    revision = rows.get(version)
    if revision is None or revision.era is not Era.HANDSHAKE:
        ours = ", ".join(name for name, row in rows.items() if row.era is Era.HANDSHAKE)
        told = f"the server answered initialize with revision {version!r:.40}; this client was to use {ours}"
        raise NoCommonRevision(told, (version,))
    edge = HandshakeClient(link, revision, me, found)
    adopt(edge)  # before `initialized`: the server may ask right behind it
    await link.tell("notifications/initialized", None)
    return edge


async def _greet(link: Link, wanted: Revision, me: Identity, patience: Patience) -> dict[str, Any]:
    hello = {
        "protocolVersion": wanted.name,
        "capabilities": me.capabilities_for(wanted),
        "clientInfo": me.info_for(wanted),
    }
    frame = await link.call("initialize", hello, None, patience=patience, cancellable=False)
    return result_of(frame, "initialize", wanted)


def _other_version(refused: Refused, tried: Revision, rows: dict[str, Revision]) -> Revision:
    """The version to ask for after this refusal. Raises the refusal where it does not list versions, or lists one
    without a handshake, and `NoCommonRevision` where both sides have nothing in common."""
    listed = supported_in(refused) if refused.code in _NAME_VERSIONS else []
    ours = {name: row for name, row in rows.items() if name in listed}
    chosen = newest_of({name: row for name, row in ours.items() if row is not tried}, Era.HANDSHAKE)
    is_proof = refused.code == UnsupportedVersion.code and newest_of(ours, Era.STATELESS) is not None
    if chosen is not None and not is_proof:
        return chosen
    if not listed or ours:
        raise refused
    raise no_common(listed, rows) from refused


class HandshakeClient(ClientEdge):
    def __init__(self, link: Link, revision: Revision, me: Identity, found: Mapping[str, Any]) -> None:
        super().__init__(link, revision, _as_discovery(found))
        self._me = me
        self._declared = me.capabilities_for(revision)
        self._active: dict[int, Exchange] = {}  # calls in flight, oldest first
        self._meter = QuestionMeter()

    async def __call__(self, exchange: Exchange) -> Result:
        if exchange.method == "server/discover":
            return self.discovered
        self.check_offered(exchange.method)
        key = id(exchange)
        self._active[key] = exchange
        try:
            meta = {**exchange.meta.trace(), **exchange.params.get("_meta", {})}
            return await self.carry(exchange, exchange.params, meta)
        finally:
            del self._active[key]

    def asked(self, frame: Frame) -> bytes | Work:
        """A request of the server: answered at once, or the work that leads to the answer."""
        request = cast(Id, frame.id)
        method = cast(str, frame.method)
        if method == "ping":
            return encode_result(request, {})
        capability = self.revision.questions.get(method)
        if capability is None or capability not in self._declared:
            return encode_error(request, MethodNotFound(f"This client does not offer {method[:200]!r}"))
        if frame.params is not UNSET and bytes(frame.params).lstrip()[:1] != b"{":
            return encode_error(request, InvalidParams("params must be an object"))
        params = params_of(frame)
        mode = params.get("mode", "form")
        if method == "elicitation/create" and not (isinstance(mode, str) and mode in self._modes()):
            told = f"This client does not offer elicitation in the mode {mode!r:.40}"
            return encode_error(request, InvalidParams(told))  # 2025-11-25 client/elicitation#error-handling
        if method == "elicitation/create" and (wrong := wrong_form(params)):
            return encode_error(request, InvalidParams(f"This is no form: {wrong}"))
        if method == "sampling/createMessage" and not self._samples(params):
            told = "This client does not offer tools in sampling"
            return encode_error(request, InvalidParams(told))  # 2025-11-25 client/sampling#tools
        if method == "sampling/createMessage" and (wrong := what_is_wrong_in(params)):
            return encode_error(request, InvalidParams(f"This cannot be sampled: {wrong}"))
        if method != "roots/list" and (wrong := self._meter.refusal(monotonic())):
            return encode_error(request, InternalError(f"This client is asked too often: {wrong}"))
        return self._answer(request, Question(method, params)), None

    def _modes(self) -> set[str]:
        """The modes declared; an empty declaration means forms."""
        return set(self._declared.get("elicitation", {})) or {"form"}

    def _samples(self, params: Mapping[str, Any]) -> bool:
        """Tools only if they were declared, where tools in sampling mean anything; before, the members are unknown."""
        known = "sampling.tools" not in self.revision.no_such_needs
        wanted = known and not params.keys().isdisjoint(("tools", "toolChoice"))
        return not wanted or "tools" in self._declared["sampling"]

    async def _answer(self, request: Id, question: Question) -> bytes:
        # A pipe does not say which call a question belongs to: the newest one that can answer it.
        exchange = next(reversed(self._active.values()), self._me.standing)
        try:
            return encode_result(request, await exchange.ask(question))
        except Refused as refused:
            return encode_error(request, refused)
        except Exception:
            log.exception("! answering %s failed", question.method)
            return encode_error(request, InternalError("The client failed to answer"))


def _as_discovery(found: Mapping[str, Any]) -> dict[str, Any]:
    """The result of `initialize` in the words of `server/discover`."""
    told: dict[str, Any] = {
        "supportedVersions": [found["protocolVersion"]],
        "capabilities": found.get("capabilities", {}),
        "_meta": {SERVER_INFO: found.get("serverInfo")},
    }
    return told | ({"instructions": found["instructions"]} if isinstance(found.get("instructions"), str) else {})
