"""A schema in words and by example: what a model needs to mend a call at the first try."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from ...wire.escaping import display
from ...wire.json.lenient import items_of, members_of
from ..schema.builder import DECIMAL, INTEGER_KEY
from .coercion import resolved

__all__ = ["NO_EXAMPLE", "example_of", "shown", "words_of"]

NO_EXAMPLE: Any = object()
LONGEST_SHOWN = 120
MOST_CHOICES = 20
_DEEPEST = 4
_ARTICLES = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "array": "an array",
    "object": "an object",
    "null": "null",
}
_FORMATS = {
    "date-time": ("a date and time of RFC 3339", "2031-05-17T12:00:00Z"),
    "date": ("a date", "2031-05-17"),
    "time": ("a time with its offset", "12:00:00Z"),
    "duration": ("a duration of ISO 8601 in days, hours, minutes and seconds", "PT1H30M"),
    "uuid": ("a UUID", "123e4567-e89b-42d3-a456-426614174000"),
    "email": ("an e-mail address", "name@example.org"),
    "uri": ("a URI", "https://example.org/"),
}
_LIMITS = (
    ("minimum", "at least {}"),
    ("exclusiveMinimum", "more than {}"),
    ("maximum", "at most {}"),
    ("exclusiveMaximum", "less than {}"),
    ("multipleOf", "a multiple of {}"),
    ("minLength", "at least {} characters long"),
    ("maxLength", "at most {} characters long"),
    ("pattern", "matching {}"),
    ("minItems", "with at least {} items"),
    ("maxItems", "with at most {} items"),
    ("minProperties", "with at least {} members"),
    ("maxProperties", "with at most {} members"),
)

Schema = dict[str, Any]


def shown(value: Any, limit: int = LONGEST_SHOWN) -> str:
    """A value as JSON, short, and fit to be read."""
    return display(msgspec.json.encode(value).decode(), limit)


def words_of(schema: Any, definitions: Mapping[str, Any], depth: int = 0) -> str:
    """What a value should be, in words."""
    schema = resolved(schema, definitions)
    if "const" in schema:
        return shown(schema["const"])
    if isinstance(schema.get("enum"), list):
        choices = cast("list[Any]", schema["enum"])
        more = ", …" if len(choices) > MOST_CHOICES else ""
        return f"one of {', '.join(shown(choice) for choice in choices[:MOST_CHOICES])}{more}"
    ways: Any = schema.get("anyOf", schema.get("oneOf"))
    if isinstance(ways, list) and depth < _DEEPEST:
        told = [words_of(way, definitions, depth + 1) for way in cast("list[Any]", ways)]
        return " or ".join(dict.fromkeys(told))
    limits = [told.format(schema[word]) for word, told in _LIMITS if schema.get(word, DECIMAL) != DECIMAL]
    return " ".join([_kind_words(schema, definitions, depth), ", ".join(limits)]).strip()


def _kind_words(schema: Schema, definitions: Mapping[str, Any], depth: int) -> str:
    kinds: Any = schema.get("type")
    named = cast("list[Any]", kinds if isinstance(kinds, list) else [kinds])
    if named == ["string"] and schema.get("format") in _FORMATS:
        return _FORMATS[schema["format"]][0]
    if named == ["string"] and schema.get("contentEncoding") == "base64":
        return "a string of base64"
    told = " or ".join(_ARTICLES.get(str(kind), "a value") for kind in named)
    if named == ["array"] and isinstance(schema.get("items"), dict) and depth < _DEEPEST:
        return f"{told}, each item {words_of(schema['items'], definitions, depth + 1)}"
    if named == ["object"] and isinstance(schema.get("required"), list):
        return f"{told} with {', '.join(repr(name) for name in schema['required'][:MOST_CHOICES])}"
    if named == ["object"] and members_of(schema.get("additionalProperties")) and depth < _DEEPEST:
        return f"{told}, each member {words_of(schema['additionalProperties'], definitions, depth + 1)}"
    return told


def example_of(schema: Any, definitions: Mapping[str, Any], depth: int = 0) -> Any:
    """A value that fits, where one can be thought of; else NO_EXAMPLE."""
    schema = resolved(schema, definitions)
    for word in ("examples", "enum"):
        if isinstance(schema.get(word), list) and schema[word]:
            return schema[word][0]
    for word in ("const", "default"):
        if word in schema:
            return schema[word]
    ways: Any = schema.get("anyOf", schema.get("oneOf"))
    if isinstance(ways, list) and ways and depth < _DEEPEST:
        return example_of(cast("list[Any]", ways)[0], definitions, depth + 1)
    kinds: Any = schema.get("type")
    kind: Any = cast("list[Any]", kinds or [None])[0] if isinstance(kinds, list) else kinds
    if kind in ("array", "object"):
        return _container(kind, schema, definitions, depth + 1) if depth < _DEEPEST else NO_EXAMPLE
    return _scalar(kind, schema)


def _scalar(kind: Any, schema: Schema) -> Any:
    if kind == "string":
        return _text(schema)
    if kind in ("integer", "number"):
        return _number(schema, kind)
    return {"boolean": True, "null": None}.get(cast(str, kind), NO_EXAMPLE)


def _text(schema: Schema) -> Any:
    if schema.get("format") in _FORMATS:
        return _FORMATS[schema["format"]][1]
    if schema.get("contentEncoding") == "base64":
        return "aGVsbG8="
    if "pattern" in schema:
        return NO_EXAMPLE
    least = schema.get("minLength", 0)
    return "text".ljust(least, "x")[: max(schema.get("maxLength", 200), least)] if least <= 200 else NO_EXAMPLE


def _number(schema: Schema, kind: str) -> Any:
    """The smallest that is allowed, else the largest, else 1."""
    step = schema.get("multipleOf", 1)
    if "minimum" in schema or "exclusiveMinimum" in schema:
        value: Any = schema.get("minimum", schema.get("exclusiveMinimum"))
        value = -(-value // step) * step
        value = value + step if "exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"] else value
    else:
        value = min(step, schema.get("maximum", step), schema.get("exclusiveMaximum", step + step) - step)
        value = value // step * step
    fits = value <= schema.get("maximum", value) and value < schema.get("exclusiveMaximum", value + 1)
    if not fits:
        return NO_EXAMPLE
    return int(value) if kind == "integer" else value


def _container(kind: str, schema: Schema, definitions: Mapping[str, Any], depth: int) -> Any:
    if kind == "object":
        made = _object(schema, definitions, depth)
        return made if NO_EXAMPLE not in made.values() and len(made) >= schema.get("minProperties", 0) else NO_EXAMPLE
    places = [example_of(item, definitions, depth) for item in schema.get("prefixItems", [])]
    if not places and isinstance(schema.get("items"), dict):
        places = [example_of(schema["items"], definitions, depth)] * max(1, min(schema.get("minItems", 1), 5))
    return places if NO_EXAMPLE not in places else NO_EXAMPLE


def _object(schema: Schema, definitions: Mapping[str, Any], depth: int) -> Schema:
    """What is required; of a mapping one member, to show what its members are."""
    members, others = members_of(schema.get("properties")), members_of(schema.get("additionalProperties"))
    needed = [name for name in items_of(schema.get("required")) if name in members]
    if members or not others:
        return {name: example_of(members[name], definitions, depth) for name in needed}
    name = _member_name(members_of(schema.get("propertyNames")), definitions)
    return {name: example_of(others, definitions, depth)} if isinstance(name, str) else {"": NO_EXAMPLE}


def _member_name(names: Schema, definitions: Mapping[str, Any]) -> Any:
    if names.get("pattern") == INTEGER_KEY:
        return "1"
    return example_of({"type": "string", **names}, definitions) if names else "name"
