"""What may be said twice? After a connection is lost, only what provably did not arrive, or does no harm twice.

A method that only reads is safe. A tool is safe where its caller says so; what a server says about its own tools is a
claim, and counts only where the caller trusts it (server/tools#tool-annotations).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, cast

from ..wire.errors import ConnectionEnded
from ..wire.exchange import Exchange, Result
from ..wire.json.lenient import items_of, members_of

__all__ = ["OutcomeUnknown", "Repeats"]

_MOST_HINTS = 10_000  # tools whose hints are remembered; beyond it a tool counts as one without
_READS = frozenset(
    {
        "completion/complete",
        "logging/setLevel",
        "ping",
        "prompts/get",
        "prompts/list",
        "resources/list",
        "resources/read",
        "resources/subscribe",
        "resources/templates/list",
        "resources/unsubscribe",
        "server/discover",
        "subscriptions/listen",
        "tools/list",
    }
)


class OutcomeUnknown(ConnectionEnded):
    """The connection was lost under a call that must not be repeated blindly: it may have had its effect, or not.

    `__cause__` says how the connection ended. Look what happened, then decide.
    """

    def __init__(self, method: str, ended: ConnectionEnded) -> None:
        super().__init__(f"{method}: nobody knows whether it took effect, so it is not repeated: {ended}")
        self.sent = ended.sent
        self.__cause__ = ended


class Repeats:
    def __init__(self, idempotent: Collection[str], trust_hints: bool) -> None:
        self._idempotent = frozenset(idempotent)
        self._trust = trust_hints
        self._hints: dict[str, bool] = {}

    def learn(self, method: str, result: Result) -> None:
        """What the tools of a list say about themselves, where that counts for anything."""
        if not self._trust or method != "tools/list":
            return
        for tool in items_of(result.get("tools")):
            members = members_of(tool)
            name, hints = members.get("name"), members.get("annotations")
            if isinstance(name, str) and (name in self._hints or len(self._hints) < _MOST_HINTS):
                self._hints[name] = isinstance(hints, dict) and _harmless(cast("dict[str, Any]", hints))

    def allows(self, exchange: Exchange, ended: ConnectionEnded) -> bool:
        """May this be said once more, after that?"""
        if ended.sent is False or exchange.method in _READS:
            return True
        name = exchange.params.get("name") if exchange.method == "tools/call" else None
        return isinstance(name, str) and (name in self._idempotent or self._hints.get(name, False))


def _harmless(hints: dict[str, Any]) -> bool:
    return hints.get("readOnlyHint") is True or hints.get("idempotentHint") is True
