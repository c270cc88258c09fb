"""What a server was told that lasts as long as a connection, so that the next one can be told again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any

from ..revisions.client_edge import ClientEdge, NotOffered
from ..wire.display import display
from ..wire.errors import Refused
from ..wire.exchange import Exchange
from ..wire.limits import MOST_SUBSCRIPTIONS
from ..wire.link import Patience

__all__ = ["Remembered"]

log = logging.getLogger("interlock.client")
_AT_ONCE = 32  # subscriptions on their way
_PATIENCE = Patience(idle=None, total=30.0)
_LISTS = ("tools", "prompts", "resources")

Asking = Callable[[str, dict[str, Any], Patience], Exchange]
News = list[tuple[str, dict[str, Any]]]


class Remembered:
    """The log level and the subscriptions that are in force."""

    def __init__(self) -> None:
        self.level: Any = None
        self.uris: dict[str, None] = {}

    def note(self, method: str, params: Mapping[str, Any]) -> None:
        """A request that the server granted."""
        if method == "logging/setLevel":
            self.level = params.get("level")
        elif method in ("resources/subscribe", "resources/unsubscribe"):
            uri = params.get("uri")
            if not isinstance(uri, str):
                return
            self.uris.pop(uri, None)
            if method == "resources/subscribe" and len(self.uris) < MOST_SUBSCRIPTIONS:
                self.uris[uri] = None

    async def restore(self, edge: ClientEdge, asking: Asking) -> News:
        """Tell a new connection; what may have been missed on the way comes back as news."""
        if self.level is not None:
            await self._say(edge, asking, "logging/setLevel", {"level": self.level})
        uris = [*self.uris]
        for at in range(0, len(uris), _AT_ONCE):
            said = [self._say(edge, asking, "resources/subscribe", {"uri": uri}) for uri in uris[at : at + _AT_ONCE]]
            for outcome in await asyncio.gather(*said, return_exceptions=True):
                if isinstance(outcome, BaseException):
                    raise outcome
        lists: News = [(f"notifications/{kind}/list_changed", {}) for kind in _LISTS if edge.offers(kind)]
        return lists + [("notifications/resources/updated", {"uri": uri}) for uri in self.uris]

    async def _say(self, edge: ClientEdge, asking: Asking, method: str, params: dict[str, Any]) -> None:
        try:
            await edge(asking(method, params, _PATIENCE))
        except (Refused, NotOffered) as error:  # it is another server by now: the rest still counts
            log.warning("! %s was in force and is not taken any more: %s", method, display(str(error), 200))
            if method == "resources/subscribe":
                self.uris.pop(params["uri"], None)
