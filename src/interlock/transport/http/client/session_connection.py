"""The handshake era over HTTP as a connection like any other: a `Duplex` whose messages are requests of their own.

So the edge, the callbacks and the calls of this era work over HTTP as they do over a pipe. What differs is here:
a notification is known to be accepted, one call can fail alone, and giving a call up lets go of its response.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from ....protocol.client.base import ClientEdge
from ....protocol.client.inbound import ClientSide
from ....wire.errors import InterlockError, MessageTooLarge
from ....wire.limits import DEFAULT_LIMITS, Limits
from ....wire.messages import Frame, Id, encode_notice
from ...jsonrpc.connection import Duplex
from .call_headers import call_headers
from .post_channel import Posting

__all__ = ["HttpLine"]


class HttpLine(Duplex):
    """One session with one endpoint."""

    def __init__(self, channel: Posting, side: ClientSide, limits: Limits = DEFAULT_LIMITS) -> None:
        super().__init__(channel, side, limits)
        self._posting, self._hearing = channel, side
        side.attach(self.hear)

    def adopt(self, edge: ClientEdge) -> None:
        """From now on this edge answers what the server asks, and its revision is named in every request."""
        self._hearing.edge = edge
        self._posting.version = edge.revision.name

    async def tell(self, method: str, params: Mapping[str, Any] | None) -> None:
        """Send a notification; returns when the server has accepted it, raises when it does not."""
        self._check_open()
        message = encode_notice(method, params)
        if len(message) > self._limits.message_bytes:
            raise MessageTooLarge(f"a message of {len(message)} bytes, where {self._limits.message_bytes} are allowed")
        await self._posting.deliver(method, message)
        if self.end is not None:
            raise self.end.for_call(method, None)

    def _withdraw(self, id: int, reason: str, cancellable: bool) -> None:
        """The message stops the server's work: a response that is not read any more does not, in this era."""
        if not self._posting.let_go(id):
            return
        if asyncio.current_task() is None:  # a deadline passed: the timer was set by whoever called last
            call_headers.set((None, {}))
        super()._withdraw(id, reason, cancellable)

    # --- what the channel says of one call --------------------------------------------------------

    def waits_for(self, id: Id) -> bool:
        return id in self._calls.waiting

    def wait_longer(self, id: Id, seconds: float) -> None:
        """Its deadlines move: the time is not the server's."""
        self._calls.move(id, seconds)

    def answered(self, id: Id, frame: Frame) -> None:
        """The answer to that call, also where the server could not read its id."""
        frame.id = id
        self._calls.resolve(frame)

    def failed(self, id: Id, error: InterlockError) -> None:
        """That call fails, the connection stands."""
        self._calls.spoil(id, error)
