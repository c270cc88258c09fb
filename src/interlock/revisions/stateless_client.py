"""The stateless era, client side: every request says everything, no answer is taken for more than it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Raw

from ..wire.errors import BadResult
from ..wire.exchange import Exchange, Result
from ..wire.frames import encode
from ..wire.link import Link
from ..wire.meta import CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION
from .client_edge import ClientEdge
from .identity import Identity
from .revision import Revision

__all__ = ["StatelessClient", "envelope"]

_ASKED_BY_RETURN = frozenset({"elicitation", "sampling", "roots"})


def envelope(revision: Revision, me: Identity) -> dict[str, Any]:
    """The `_meta` of every request (2026-07-28 basic/index#meta)."""
    # Answering `input_required` is not built yet, so what would lead to it is not declared.
    declared = {key: value for key, value in me.capabilities_for(revision).items() if key not in _ASKED_BY_RETURN}
    return {
        PROTOCOL_VERSION: revision.name,
        CLIENT_CAPABILITIES: Raw(encode(declared)),  # the same on every request, so encoded once
        CLIENT_INFO: Raw(encode(me.info_for(revision))),
    }


class StatelessClient(ClientEdge):
    def __init__(self, link: Link, revision: Revision, me: Identity, discovered: Mapping[str, Any]) -> None:
        super().__init__(link, revision, discovered)
        self._envelope = envelope(revision, me)

    async def __call__(self, exchange: Exchange) -> Result:
        self.check_offered(exchange.method)
        meta = {**self._envelope, **exchange.meta.trace(), **exchange.params.get("_meta", {})}
        result = await self.carry(exchange, exchange.params, meta)
        kind = result.get("resultType", "complete")
        if kind != "complete":  # an unknown kind makes the whole response invalid (basic/index#result-type)
            raise BadResult(f"{exchange.method}: a result of the unknown kind {kind!r:.60}")
        return result
