"""The client's side of one two-way connection: what a server may say on its own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import Any, cast

from ...wire.errors import BadFrame, ConnectionEnded
from ...wire.exchange import Work
from ...wire.messages import Frame, Id, encode_result
from ...wire.meta import SUBSCRIPTION_ID
from .base import ClientEdge, meta_of, params_of
from .handshake import HandshakeClient

__all__ = ["ClientSide"]

log = logging.getLogger("interlock.client")
_JUNK_LOGGED = 10  # lines of junk that are logged one by one; the rest is only counted


class ClientSide:
    """Hears the server. Until the era is settled nothing it asks is answered but a ping."""

    def __init__(
        self,
        on_notice: Callable[[str, dict[str, Any]], None],
        on_end: Callable[[ConnectionEnded], None],
        where: str = "stdout",
    ) -> None:
        self._on_notice = on_notice
        self._on_end = on_end
        self._where = where
        self._hear: Callable[[Id, Frame], bool] | None = None
        self.edge: ClientEdge | None = None
        self.junk_lines = 0
        self.stray_requests = 0
        self.hidden: Callable[[str], str] | None = None
        """Takes out of a text what no log may show, where the carrier knows of such things."""

    def attach(self, hear: Callable[[Id, Frame], bool]) -> None:
        """How to hand a notification to the call it belongs to."""
        self._hear = hear

    @property
    def batches(self) -> bool:
        return self.edge is not None and self.edge.revision.batches

    def request(self, frame: Frame) -> bytes | Work | None:
        edge = self.edge
        if isinstance(edge, HandshakeClient):
            return edge.asked(frame)
        if edge is None and frame.method == "ping":  # allowed at any time, also while we introduce ourselves
            return encode_result(cast(Id, frame.id), {})
        # A stateless server never asks, and its client never sends a response (2026-07-28 basic/index).
        self.stray_requests += 1
        if self.stray_requests <= _JUNK_LOGGED:
            log.warning("! the server sent a request (%.200r), which it must not do in this revision", frame.method)
        return None

    def notification(self, frame: Frame) -> Coroutine[Any, Any, None] | None:
        params = params_of(frame)
        subscription = meta_of(params).get(SUBSCRIPTION_ID)
        if isinstance(subscription, int | str) and self._hear is not None:
            if not self._hear(subscription, frame):
                log.debug("= %s for a subscription that is over was dropped", frame.method)
            return
        self._on_notice(cast(str, frame.method), params)

    def junk(self, line: bytes, bad: BadFrame) -> bytes | None:
        """Not a message: other output on the server's stdout, say. Skipped and reported, never answered."""
        self.junk_lines += 1
        if self.junk_lines <= _JUNK_LOGGED:
            shown = line[:200] if self.hidden is None else self.hidden(line[:8192].decode("utf-8", "replace"))[:200]
            log.warning("! skipped %d bytes on %s that are no message: %r", len(line), self._where, shown)
        return None

    def ended(self, error: ConnectionEnded) -> None:
        self._on_end(error)
