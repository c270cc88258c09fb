"""Who may ask, and how: one per server, shared by all its connections and carriers."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from ..wire.exchange import Handler
from ..wire.methods import METHODS
from .parking import Park, Parking
from .replay import Replay
from .rounds import AskingRules
from .served import Served

__all__ = ["Asker"]

_MAY_ASK = frozenset(name for name, row in METHODS.items() if row.may_ask)


class Asker:
    """Decides for each request of a stateless client how its questions would travel."""

    def __init__(self, rules: AskingRules) -> None:
        self.rules = rules
        self.parking = Parking(rules)

    def rounds_of(self, handler: Handler, exchange: Served) -> Replay | Park | None:
        """None for a request that cannot ask: its client answers nothing, and nothing came with it."""
        if exchange.method not in _MAY_ASK or not _could_ask(exchange):
            return None
        if self.rules.parks(exchange.method, exchange.params):
            return Park(self.rules, self.parking, handler, exchange)
        return Replay(self.rules, handler, exchange)


def _could_ask(exchange: Served) -> bool:
    params: Any = exchange.params
    if params.request_state is not UNSET or params.input_responses is not UNSET:
        return True
    declared = exchange.peer.capabilities
    return not (declared.elicitation is UNSET and declared.sampling is UNSET and declared.roots is UNSET)
