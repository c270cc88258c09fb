"""How the questions of one server are asked: what travels between two rounds is sealed, and each tool says the rest."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ..protocol.input.settings import AskingRules, Sealer
from ..protocol.input.strategy import Asker

__all__ = ["asker_of"]


def asker_of(tool_of: Callable[[str], Any], sealer: Sealer, *, seconds: float, audience: str) -> Asker:
    """`tool_of` finds a tool by its name, whenever it is called; nobody else parks or has states that count once."""

    def says(fact: str) -> Callable[[str, Any], bool]:
        return lambda method, params: method == "tools/call" and getattr(tool_of(params.name), fact, False)

    rules = AskingRules(
        sealer=sealer,
        clock=time.time,
        seconds=seconds,
        audience=audience,
        parks=says("park"),
        single_use=says("single_use"),
    )
    return Asker(rules)
