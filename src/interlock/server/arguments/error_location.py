"""Where in an argument something is wrong: the place that msgspec tells, with the names that it leaves out.

It tells the place of a wrong value as `$.rows[3].price`, but of a mapping only that some member is wrong (`$[...]`), or
the name of one (`key`). Which one is found by decoding again, with fewer of the members.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, cast

import msgspec

from ...wire.json.lenient import members_of
from ...wire.json.reader import JsonReader
from .coercion import resolved

__all__ = [
    "MOST_BYTES",
    "NOWHERE",
    "Decoder",
    "Place",
    "Step",
    "exact",
    "has_there",
    "place_of",
    "schema_at",
    "value_at",
]

NOWHERE: Any = object()
MOST_BYTES = 64 * 1024
"""Of an argument that is decoded again: in a larger one a member stays unnamed, or a wrong call would cost too much."""
_STEP = re.compile(r"\.([^.\[\]`]+)|\[(?:(\d+)|\.\.\.)\]")
_AT = re.compile(r" - at (`key` in )?`\$[^`]*`\Z")  # at the end: a value may hold such words too

Decoder = JsonReader[Any]
Step = str | int | None
"""The name of a member, the number of an item, or a member whose name is not known."""


class Place(msgspec.Struct, frozen=True):
    wrong: str
    said: tuple[Step, ...]
    """As msgspec tells it."""
    steps: tuple[Step, ...]
    is_name: bool
    """Is the last step itself wrong, a name that no member may have?"""

    def __str__(self) -> str:
        return "".join(_written(step) for step in (self.steps[:-1] if self.is_name else self.steps))


def place_of(message: str) -> Place:
    """What is wrong, and where, out of `Expected `int`, got `str` - at `$[0].x``."""
    found = _AT.search(message)
    if found is None:
        return Place(message, (), (), False)
    steps = [int(number) if number else name or None for name, number in _STEP.findall(found[0])]
    said: tuple[Step, ...] = (*steps, None) if found[1] else tuple(steps)
    return Place(message[: found.start()], said, said, bool(found[1]))


def exact(place: Place, value: Any, decoder: Decoder) -> Place:
    """The same with the names that are missing, as far as they can be found."""
    if None in place.said and len(msgspec.json.encode(value)) <= MOST_BYTES:
        for at, step in enumerate(place.said):
            if step is None and (name := _wrong_member(place, at, value, decoder)) is not None:
                place = msgspec.structs.replace(place, steps=(*place.steps[:at], name, *place.steps[at + 1 :]))
    return place


def has_there(place: Place, new: Any, value: Any, decoder: Decoder) -> bool:
    """Would the value, with `new` in this place, be taken there? What is wrong elsewhere is another matter."""
    if place.is_name or value_at(value, place.steps) is NOWHERE:
        return True  # nothing that could be tried
    tried = _with(value, place.steps, new)
    if len(msgspec.json.encode(tried)) > MOST_BYTES:
        return True
    found = _refusal(tried, decoder)
    return found is None or exact(found, tried, decoder).steps[: len(place.steps)] != place.steps


def _wrong_member(place: Place, at: int, value: Any, decoder: Decoder) -> str | None:
    """The first one that is wrong: with those before it alone, nothing is."""
    before = place.steps[:at]
    members = members_of(value_at(value, before))
    names = list(members)
    low, high = 0, len(names)
    while low < high:
        middle = (low + high) // 2
        some = {name: members[name] for name in names[: middle + 1]}
        if _fails_like(place, _with(value, before, some), decoder):
            high = middle
        else:
            low = middle + 1
    return names[low] if low < len(names) else None


def _fails_like(place: Place, value: Any, decoder: Decoder) -> bool:
    """Is something wrong with the value in this place, or inside of it?"""
    found = _refusal(value, decoder)
    return found is not None and found.is_name == place.is_name and found.said[: len(place.said)] == place.said


def _refusal(value: Any, decoder: Decoder) -> Place | None:
    try:
        decoder.decode(msgspec.json.encode(value))
    except msgspec.ValidationError as error:
        return place_of(str(error))
    except Exception:  # a class of the author's stumbled over what was tried: nobody knows where
        return None
    return None


def value_at(value: Any, steps: Sequence[Step]) -> Any:
    for step in steps:
        if isinstance(step, str) and isinstance(value, dict):
            value = cast("dict[str, Any]", value).get(step, NOWHERE)
        elif isinstance(step, int) and isinstance(value, list) and step < len(cast("list[Any]", value)):
            value = cast("list[Any]", value)[step]
        else:
            return NOWHERE
    return value


def _with(value: Any, steps: Sequence[Step], new: Any) -> Any:
    """A copy with something else in one place."""
    if not steps:
        return new
    first, rest = cast(Any, steps[0]), steps[1:]
    copy = value.copy()
    copy[first] = _with(value[first], rest, new)
    return copy


def _written(step: Step) -> str:
    if isinstance(step, str):
        return f".{step}" if step.isidentifier() else f"[{msgspec.json.encode(step).decode()}]"
    return "[...]" if step is None else f"[{step}]"


# --- what stands there ----------------------------------------------------------------------------------


def schema_at(schema: Any, step: Step, value: Any, definitions: dict[str, Any]) -> Any:
    """What may stand one step further; `value` is what the step is taken in."""
    schema = resolved(schema, definitions)
    ways: list[Any] = [schema, *(resolved(way, definitions) for way in schema.get("anyOf", []))]
    if isinstance(step, str) and (members := _members(ways, step, value)):
        return members[0] if len(members) == 1 else {"anyOf": members}
    for way in ways:
        if isinstance(step, int) and step < len(way.get("prefixItems", [])):
            return way["prefixItems"][step]
        found = way.get("items" if isinstance(step, int) else "additionalProperties")
        if isinstance(found, dict):
            return cast("dict[str, Any]", found)
    return {}


def _members(ways: list[Any], step: str, value: Any) -> list[Any]:
    """What a member of this name may be: in the kinds of records that the value says it is, else in all of them."""
    having = [way for way in ways if step in way.get("properties", {})]
    meant = [way for way in having if _is_tagged(way["properties"], value)] or having
    found = [way["properties"][step] for way in meant]
    return [each for at, each in enumerate(found) if each not in found[:at]]


def _is_tagged(members: dict[str, Any], value: Any) -> bool:
    given = members_of(value)
    return all(given.get(name) == member["const"] for name, member in members.items() if "const" in member)
