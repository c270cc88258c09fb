"""Which tools a model is told of in one turn, when all of them would cost too much.

Within the budget all are there, always in the same order, so that a provider's cache of the beginning stays warm.
Beyond it the ones that the turn is about come first, the others share what is left evenly between servers, and the
model finds the rest with three tools of the host's own: `search_tools`, `describe_tool` and `call_tool`. With a fourth,
`read_result`, it reads on in results that were cut (host/gate/result_cap.py), as soon as there are any. Their names
cannot be a server's: those all have `__` or a digest in them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from ...wire.types.tools import Tool
from .bm25 import Ranking
from .catalogue import Catalogue, Entry, for_model
from .token_estimate import tokens

__all__ = ["CALL", "DESCRIBE", "OWN", "READ", "SEARCH", "Selection", "Offered"]

SEARCH, DESCRIBE, CALL, READ = "search_tools", "describe_tool", "call_tool", "read_result"
OWN = (SEARCH, DESCRIBE, CALL, READ)
_MOST_FOUND = 50
_SHORT = 200  # characters of a description in a list


def _own(name: str, description: str, /, **properties: Any) -> dict[str, Any]:
    required = [each for each in properties if each != "limit"]
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return {"name": name, "description": description, "input_schema": schema}


_TEXT = {"type": "string"}
_OWN = [
    _own(
        SEARCH,
        "Find tools that are available but not listed here. Gives names and what they do, best match first.",
        query={**_TEXT, "description": "What the tool should do, in a few words"},
        limit={"type": "integer", "minimum": 1, "maximum": _MOST_FOUND, "default": 10},
    ),
    _own(DESCRIBE, "The full description and input schema of a tool that search_tools found.", name=_TEXT),
    _own(
        CALL,
        "Call a tool that search_tools found, with arguments that fit its input schema.",
        name=_TEXT,
        arguments={"type": "object"},
    ),
]
_OWN_COST = sum(tokens(each) for each in _OWN)
_READ = _own(READ, "Read on in a result that was cut, at the interlock-result:// address that stands in it.", uri=_TEXT)
_READ_COST = tokens(_READ)


class Offered(msgspec.Struct, frozen=True, kw_only=True):
    """What a model is told of in one turn."""

    tools: list[dict[str, Any]]
    """`name`, `description` and `input_schema` of each, as APIs of models take them."""
    tokens: int
    """What they cost, roughly."""
    left_out: tuple[str, ...] = ()
    """The names of those that must be searched for."""


class Selection:
    """Over one catalogue, whatever is in it at the time."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._ranking: tuple[int, Ranking] | None = None

    def turn(
        self, text: str = "", budget: int | None = None, wanted: Iterable[str] = (), *, results: bool = False
    ) -> Offered:
        """For a turn that is about `text`. `wanted` are names that come first, such as those used before; with
        `results` there are some to be read on."""
        offered = self._turn(text, budget if budget is None or not results else budget - _READ_COST, wanted)
        if not results:
            return offered
        return msgspec.structs.replace(offered, tools=[*offered.tools, _READ], tokens=offered.tokens + _READ_COST)

    def _turn(self, text: str, budget: int | None, wanted: Iterable[str]) -> Offered:
        entries = self._catalogue.tools
        costs = {name: self._catalogue.cost(entry) for name, entry in entries.items()}
        whole = sum(costs.values())
        if budget is None or whole <= budget:
            return Offered(tools=[for_model(entry) for entry in entries.values()], tokens=whole)
        admitted, spent = set[str](), _OWN_COST
        for name in self._by_rank(text, wanted):
            if spent + costs[name] <= budget:
                admitted.add(name)
                spent += costs[name]
        told = [for_model(entry) for name, entry in entries.items() if name in admitted]
        return Offered(
            tools=[*_OWN, *told], tokens=spent, left_out=tuple(name for name in entries if name not in admitted)
        )

    def search(self, text: str, limit: int = 10) -> list[Entry[Tool]]:
        """The tools a text is about, best first; none that has nothing to do with it."""
        scores = self._ranked().scores(text)
        entries = self._catalogue.tools
        place = {name: number for number, name in enumerate(entries)}
        best = sorted(scores, key=lambda name: (-scores[name], place[name]))
        return [entries[name] for name in best[: max(1, min(limit, _MOST_FOUND))]]

    def found(self, text: str, limit: int = 10) -> list[dict[str, Any]]:
        """The same as a model is told: short, the whole is one `describe_tool` away."""
        return [
            {"name": entry.exposed, "server": entry.server, "description": entry.description[:_SHORT]}
            for entry in self.search(text, limit)
        ]

    def _by_rank(self, text: str, wanted: Iterable[str]) -> list[str]:
        scores, first = self._ranked().scores(text), set(wanted)
        seen: dict[str, int] = {}
        ranks: dict[str, tuple[bool, float, int]] = {}
        for name, entry in self._catalogue.tools.items():
            seen[entry.server] = place = seen.get(entry.server, 0) + 1
            ranks[name] = (name not in first, -scores.get(name, 0.0), place)
        return sorted(ranks, key=ranks.__getitem__)

    def _ranked(self) -> Ranking:
        version = self._catalogue.version
        if self._ranking is None or self._ranking[0] != version:
            self._ranking = version, Ranking(self._catalogue.tools.values())
        return self._ranking[1]
