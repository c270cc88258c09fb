"""Who may ask, and how: one per server, shared by all its connections and carriers."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from msgspec import UNSET

from ...wire.exchange import Handler
from ...wire.methods import METHODS
from ..request import Served
from .parking_lot import Parking
from .settings import AskingRules

if TYPE_CHECKING:
    from .parking import Park
    from .replay import Replay
    from .rounds import Round

__all__ = ["Asker"]

_MAY_ASK = frozenset(name for name, row in METHODS.items() if row.may_ask)


class Asker:
    """Decides for each request of a stateless client how its questions would travel."""

    def __init__(self, rules: AskingRules) -> None:
        self.rules = rules
        self.parking = Parking(rules)

    def rounds_of(self, handler: Handler, exchange: Served) -> Replay | Park | None:
        """None for a request that cannot ask: its client answers nothing, and nothing came with it."""
        if exchange.method not in _MAY_ASK:
            return None
        params, can = exchange.params, exchange.peer.capabilities
        silent = can.elicitation is UNSET and can.sampling is UNSET and can.roots is UNSET
        if silent and params.request_state is UNSET and params.input_responses is UNSET:
            return None
        park, replay, round = _ways()
        if self.rules.parks(exchange.method, params):
            return park(self.rules, self.parking, handler, exchange)
        return replay(handler, round.of(self.rules, exchange), params)


@cache
def _ways() -> tuple[type[Park], type[Replay], type[Round]]:
    """Loaded with the first request that may ask: a server whose clients answer nothing starts without them."""
    from .parking import Park
    from .replay import Replay
    from .rounds import Round

    return Park, Replay, Round
