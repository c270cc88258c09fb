"""What a carrier offers. Implement `Channel` to bring a transport of your own.

Two views, because HTTP has no two-way channel:

- `Channel` is a two-way carrier of whole messages (stdio, memory, a socket). It knows nothing of JSON-RPC.
- `Link` is what a client edge needs, `Outlet` what a server edge needs. `transport.duplex` makes both out of any
  `Channel`; an HTTP carrier implements them itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

import msgspec

from .errors import ConnectionEnded
from .messages import Frame

__all__ = ["Channel", "Receiver", "Link", "Outlet", "Patience", "Told"]

Told = Callable[[str, Frame], Awaitable[None] | None]


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """How long a call may take: `idle` without a sign of life (progress is one), `total` whatever happens."""

    idle: float | None = 60.0
    total: float | None = 3600.0


class Receiver(Protocol):
    """Whom a channel tells. Its methods must be called on the event loop that opened the channel."""

    def received(self, message: bytes) -> None:
        """One whole message came."""
        ...

    def oversized(self, beginning: bytes, size: int) -> None:
        """A message over the limit was skipped; this is how it began."""
        ...

    def ended(self, error: ConnectionEnded) -> None:
        """The channel is gone, for this reason; nothing comes any more. Called once."""
        ...


class Channel(Protocol):
    """A two-way carrier of whole messages."""

    async def open(self, receiver: Receiver) -> None:
        """Connect, then hand every message to `receiver.received`. Who cannot connect raises `ConnectionLost`."""
        ...

    def send(self, message: bytes) -> int | None:
        """Take one message; never block. A channel that collects messages hands them on soon, by itself.

        Returns a position to compare with `delivered`, or None.
        """
        ...

    @property
    def delivered(self) -> int | None:
        """Up to which position messages have been handed on, if that is known."""
        ...

    @property
    def backlog(self) -> int:
        """Bytes taken but not yet handed on."""
        ...

    async def drain(self) -> None:
        """Wait until the backlog is small again."""
        ...

    async def close(self) -> None:
        """End it and release what it holds: idempotent, bounded in time, from any task, also after `ended`."""
        ...


class Outlet(Protocol):
    """Server side: where things said during one request go."""

    async def tell(self, method: str, params: Mapping[str, Any] | None) -> None: ...

    async def call(
        self, method: str, params: Mapping[str, Any], meta: Mapping[str, Any], *, patience: Patience
    ) -> Frame: ...


class Link(Protocol):
    """Client side: send a request, hear what is said about it, get its answer."""

    async def call(
        self,
        method: str,
        params: Mapping[str, Any],
        meta: Mapping[str, Any] | None,
        *,
        patience: Patience,
        told: Told | None = None,
        cancellable: bool = True,
    ) -> Frame: ...

    async def tell(self, method: str, params: Mapping[str, Any] | None) -> None: ...

    async def close(self) -> None: ...
