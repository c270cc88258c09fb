"""A handler on a channel: the server's half of any two-way carrier in one call."""

from __future__ import annotations

from collections.abc import Callable

from ...protocol.server.router import ServerSide
from ...revisions.revision import Revision
from ...revisions.table import pick
from ...wire.channel import Channel
from ...wire.exchange import LOCAL, Handler, Principal
from ...wire.limits import DEFAULT_LIMITS, Limits
from .connection import Duplex
from .keepalive import Keepalive, Pinger
from .served_handler import asker_of, lives_of

__all__ = ["serve_channel"]


def serve_channel(
    handler: Handler,
    channel: Channel,
    *,
    rows: dict[str, Revision] | None = None,
    strict: bool | None = None,
    limits: Limits = DEFAULT_LIMITS,
    principal: Principal = LOCAL,
    keepalive: Keepalive | None = None,
    on_end: Callable[[], None] | None = None,
) -> Duplex:
    """One client's connection to `handler`; `await .open()` begins it, `await .close()` ends it.

    A `Server` says itself which revisions it speaks; for a plain handler it is all of them unless `rows` says less.
    With `keepalive`, a client of the handshake era is pinged while all is quiet.
    """
    spoken = rows if rows is not None else getattr(handler, "rows", None)
    strictly = strict if strict is not None else bool(getattr(handler, "strict", False))
    pingers: list[Pinger] = []
    lives = lives_of(handler)

    def ready() -> None:
        if keepalive is not None:
            pingers.append(Pinger(duplex, keepalive))

    def ended() -> None:
        for pinger in pingers:
            pinger.close()
        lives.leave(duplex)
        if on_end is not None:
            on_end()

    side = ServerSide(
        handler,
        spoken or pick(None),
        strict=strictly,
        principal=principal,
        asker=asker_of(handler),
        on_ready=ready,
        on_end=ended,
    )
    duplex = Duplex(channel, side, limits)
    side.attach(duplex)
    lives.enter(duplex)
    return duplex
