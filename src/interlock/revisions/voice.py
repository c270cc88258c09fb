"""What is said while a request runs: on its own stream, in the peer's revision, and never after its end."""

from __future__ import annotations

from time import monotonic
from typing import Any

from ..wire.exchange import Exchange, Params
from ..wire.link import Outlet
from ..wire.meta import SUBSCRIPTION_ID
from .progress import ProgressMeter
from .revision import Revision
from .shaping import shape_noun
from .table import REVISIONS

__all__ = ["Voice"]

_OFFICIAL_NOTICES: frozenset[str] = frozenset().union(*(row.server_notices for row in REVISIONS.values()))


class Voice:
    """The `notify` of one exchange."""

    __slots__ = ("_exchange", "_meter", "_outlet", "_revision", "_subscription")

    def __init__(self, outlet: Outlet, revision: Revision, subscription: int | str | None = None) -> None:
        self._outlet = outlet
        self._revision = revision
        self._subscription = subscription
        self._exchange: Exchange | None = None
        self._meter: ProgressMeter | None = None

    def follow(self, exchange: Exchange) -> None:
        """Fall silent when this exchange is over."""
        self._exchange = exchange

    async def say(self, method: str, params: Params) -> None:
        if self._exchange is not None and not self._exchange.live:
            return
        if method in _OFFICIAL_NOTICES and method not in self._revision.server_notices:
            return
        told = dict(params)
        if method == "notifications/progress":
            if self._meter is None:
                self._meter = ProgressMeter(monotonic())
            admitted = self._meter.admit(told, monotonic())
            if admitted is None:
                return
            told = shape_noun(self._revision, "Progress", admitted)
        if self._subscription is not None:
            told["_meta"] = {**told.get("_meta", {}), SUBSCRIPTION_ID: self._subscription}
        await self._outlet.tell(method, told)

    async def finish(self) -> None:
        """Let out the last progress that was held back, before the answer."""
        held: dict[str, Any] | None = self._meter.rest() if self._meter is not None else None
        if held is not None:
            await self._outlet.tell("notifications/progress", shape_noun(self._revision, "Progress", held))

    @property
    def spoke_of_progress(self) -> bool:
        return self._meter is not None
