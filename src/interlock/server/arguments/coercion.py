"""Values that mean what the schema asks, said in another type: models write `"5"` for 5 and JSON in quotes.

Tried only after the value was refused, and only where the schema leaves no doubt: a text where no text is allowed and
whose content is JSON of a type that is; a number like 5.0 where an integer is wanted. A text stays a text wherever one
may stand.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from ...wire.json.lenient import items_of, members_of
from ...wire.json.reader import read_slow_json

__all__ = ["coerced", "kinds_of", "resolved"]

Schema = dict[str, Any]
_KINDS = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
_PREFIX = "#/$defs/"


def coerced(value: Any, schema: Any, definitions: Mapping[str, Any]) -> Any:
    """The value in the types that the schema asks for, as far as that is beyond doubt; else as it is."""
    schema = resolved(schema, definitions)
    kinds = kinds_of(schema, definitions)
    if kinds is None:
        return value
    if isinstance(value, str):
        value = value if "string" in kinds else _from_text(value, kinds)
    elif isinstance(value, float) and "integer" in kinds and "number" not in kinds and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return _object(cast(Schema, value), _way(value, schema, definitions), definitions)
    if isinstance(value, list):
        return _array(cast("list[Any]", value), _way(value, schema, definitions), definitions)
    return value


def resolved(schema: Any, definitions: Mapping[str, Any]) -> Schema:
    """Behind a reference stands the schema it means."""
    for _ in range(16):  # of references in a row
        if not isinstance(schema, dict) or not isinstance(reference := cast(Schema, schema).get("$ref"), str):
            break
        schema = definitions.get(reference.removeprefix(_PREFIX), {}) if reference.startswith(_PREFIX) else {}
    return members_of(schema)


def kinds_of(schema: Any, definitions: Mapping[str, Any], depth: int = 0) -> frozenset[str] | None:
    """The JSON types that a schema allows; None: it does not say, or not in words that are understood here."""
    schema = resolved(schema, definitions)
    kinds = schema.get("type")
    if isinstance(kinds, str):
        return frozenset({kinds})
    if isinstance(kinds, list):
        return frozenset(kind for kind in cast("list[Any]", kinds) if isinstance(kind, str))
    values = cast("list[Any]", schema.get("enum", [schema["const"]] if "const" in schema else []))
    if values:
        return frozenset(_kind(value) for value in values)
    return _kinds_of_ways(schema.get("anyOf", schema.get("oneOf")), definitions, depth)


def _kinds_of_ways(ways: Any, definitions: Mapping[str, Any], depth: int) -> frozenset[str] | None:
    found: frozenset[str] = frozenset()
    if not isinstance(ways, list) or depth > 8:
        return None
    for way in cast("list[Any]", ways):
        kinds = kinds_of(way, definitions, depth + 1)
        if kinds is None:
            return None
        found |= kinds
    return found


def _from_text(text: str, kinds: frozenset[str]) -> Any:
    words = text.strip()
    if "boolean" in kinds and words.casefold() in ("true", "false"):
        return words.casefold() == "true"
    try:
        found = read_slow_json(words.encode())  # one of many texts, each too short to be screened
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return text
    kind = _kind(found)
    if kind in kinds or (kind == "integer" and "number" in kinds):
        return found
    if isinstance(found, float) and "integer" in kinds and found.is_integer():
        return int(found)
    return text


def _kind(value: Any) -> str:
    return _KINDS.get(cast("type[Any]", type(value)), "null")


def _way(value: Any, schema: Schema, definitions: Mapping[str, Any]) -> Schema:
    """Of several ways the one for values of this kind, if it is the only one."""
    ways = schema.get("anyOf", schema.get("oneOf"))
    if not isinstance(ways, list):
        return schema
    kind = _kind(value)
    fit = [way for way in cast("list[Any]", ways) if kind in (kinds_of(way, definitions) or {kind})]
    return resolved(fit[0], definitions) if len(fit) == 1 else {}


def _object(value: Schema, schema: Schema, definitions: Mapping[str, Any]) -> Schema:
    known = members_of(schema.get("properties"))
    others: Any = schema.get("additionalProperties", {})
    return {name: coerced(member, known.get(name, others), definitions) for name, member in value.items()}


def _array(value: list[Any], schema: Schema, definitions: Mapping[str, Any]) -> list[Any]:
    by_place = items_of(schema.get("prefixItems"))
    others: Any = schema.get("items", {})
    return [
        coerced(item, by_place[place] if place < len(by_place) else others, definitions)
        for place, item in enumerate(value)
    ]
