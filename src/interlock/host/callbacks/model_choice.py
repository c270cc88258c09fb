"""Which model answers a server: its hints first, in their order, then what it cares about.

The rules are those of client/sampling#model-preferences. A server proposes; the host has its own models. The same
preferences lead to the same model, always.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from ...wire.errors import InvalidParams
from ..models.model import Ability, Model, ModelFacts, blocks_of

__all__ = ["needs_of", "pick"]

_PRIORITIES = {"costPriority": "cheapness", "speedPriority": "speed", "intelligencePriority": "intelligence"}
_MOST_HINTS = 32
_BLOCK_NEEDS: dict[Any, Ability] = {"image": "images", "audio": "audio", "tool_use": "tools", "tool_result": "tools"}


def pick(models: Sequence[Model], preferences: Any, needs: frozenset[Ability] = frozenset()) -> Model | None:
    """The best of those that can take the request at all; None where none can. The first configured one wins a tie."""
    wanted = _checked(preferences)
    able = [model for model in models if needs <= model.facts.can]
    for hint in _hints(wanted):
        if hinted := [model for model in able if hint in model.facts.name.lower()]:
            return _best(hinted, wanted)  # numbers break ties between hinted models only (SAMP-23)
    return _best(able, wanted)


def needs_of(params: Mapping[str, Any]) -> frozenset[Ability]:
    """What a model must be able to take for this request."""
    kinds = {block.get("type") for message in params["messages"] for block in _all_blocks(blocks_of(message))}
    needed: set[Ability] = {_BLOCK_NEEDS[kind] for kind in kinds if kind in _BLOCK_NEEDS}
    if params.get("tools"):
        needed.add("tools")
    return frozenset(needed)


def _all_blocks(blocks: Iterable[Any]) -> Iterable[dict[str, Any]]:
    """Blocks, and those that results of tools hold."""
    for block in blocks:
        if isinstance(block, dict):
            members = cast("dict[str, Any]", block)
            yield members
            if members.get("type") == "tool_result" and isinstance(members.get("content"), list):
                yield from _all_blocks(cast("list[Any]", members["content"]))


def _checked(preferences: Any) -> dict[str, Any]:
    if preferences is None:
        return {}
    if not isinstance(preferences, dict):
        raise InvalidParams("modelPreferences is no object")
    wanted = cast("dict[str, Any]", preferences)
    for name in _PRIORITIES:
        value = wanted.get(name, 0)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise InvalidParams(f"{name} lies between 0 and 1")
    return wanted


def _hints(wanted: Mapping[str, Any]) -> Iterable[str]:
    """Parts of names; an empty one would fit everything and says nothing."""
    hints = wanted.get("hints")
    for hint in cast("list[Any]", hints)[:_MOST_HINTS] if isinstance(hints, list) else ():
        name = cast("dict[str, Any]", hint).get("name") if isinstance(hint, dict) else None
        if isinstance(name, str) and name:
            yield name.lower()


def _best(models: Sequence[Model], wanted: Mapping[str, Any]) -> Model | None:
    return max(models, key=lambda model: _score(model.facts, wanted), default=None)


def _score(facts: ModelFacts, wanted: Mapping[str, Any]) -> float:
    return sum(wanted.get(name, 0) * getattr(facts, trait) for name, trait in _PRIORITIES.items())
