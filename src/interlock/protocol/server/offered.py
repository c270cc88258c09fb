"""Does the server offer what a method stands behind? Asked only where a request is refused anyway: for which reason."""

from __future__ import annotations

import msgspec

from ...revisions.shaping import plain
from ...wire.exchange import Exchange, Handler, Peer
from ...wire.methods import METHODS
from ...wire.types.capabilities import ServerCapabilities
from ...wire.types.lifecycle import EmptyParams

__all__ = ["offers"]


async def offers(handler: Handler, method: str, peer: Peer) -> bool:
    """False only when the handler says itself that it lacks the capability of an official method."""
    gate = METHODS[method].gate
    if gate is None:
        return True
    try:
        found = await handler(Exchange("server/discover", EmptyParams(), peer=peer))
    except Exception:
        return True  # it cannot say what it offers: then the params are what is wrong
    return msgspec.convert(plain(found.get("capabilities", {})), ServerCapabilities).can(gate)
