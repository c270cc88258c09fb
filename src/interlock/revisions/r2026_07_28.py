"""2026-07-28: no handshake. Every request says everything, the server never calls back."""

from __future__ import annotations

from ..wire.errors import CannotAsk, HeaderMismatch, ResourceNotFound, UnsupportedVersion
from .r2025_11_25 import R2025_11_25
from .revision import Era

__all__ = ["R2026_07_28"]

R2026_07_28 = R2025_11_25.evolve(
    "2026-07-28",
    era=Era.STATELESS,
    any_output=True,
    polling=False,
    drop=["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"],
    add=["server/discover", "subscriptions/listen"],
    server_tells=["notifications/subscriptions/acknowledged"],
    no_notices=[
        "notifications/initialized",
        "notifications/roots/list_changed",
        "notifications/elicitation/complete",
    ],
    client_drops=["notifications/progress"],  # a client is asked nothing, so it reports on nothing
    deprecated=frozenset({"notifications/message", "sampling/createMessage", "roots/list"}),
    reveal=["Result.resultType", "Result.ttlMs", "Result.cacheScope", "Result.serverInfo"],
    codes={},
    reserved=range(-32099, -31999),
    retired={-32002: -32602, -32042: -32603},
    # -32042 is retired; -32002 keeps its meaning only because older servers still send it.
    classes={code: kind for code, kind in R2025_11_25.classes.items() if code not in (-32042, -32001)}
    | {-32002: ResourceNotFound, -32020: HeaderMismatch, -32021: CannotAsk, -32022: UnsupportedVersion},
)
