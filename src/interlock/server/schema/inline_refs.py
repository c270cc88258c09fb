"""A schema that a model wrote about itself, tidied: no titles, nothing by reference that can stand in its place."""

from __future__ import annotations

from typing import Any, cast

__all__ = ["inlined"]

Schema = dict[str, Any]
_MAPS = frozenset({"properties", "patternProperties", "dependentSchemas"})
_LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_ONE = frozenset({"items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"})
_PREFIX = "#/$defs/"
_BROKEN = ("date-time", "time", "duration")


def inlined(schema: Schema, definitions: Schema, *, gives: bool = False) -> Schema:
    """The schema in one piece; what contains itself is put into `definitions`, under a name that is free there.

    `gives`: it is of what goes out. There an optional that is None by default keeps its null, as results say it, and a
    format that Python's values may break (no offset, fractions of a second) is not promised.
    """
    return _Tidier(cast(Schema, schema.get("$defs", {})), definitions, gives).tidy(
        {word: value for word, value in schema.items() if word != "$defs"}
    )


class _Tidier:
    def __init__(self, parts: Schema, definitions: Schema, gives: bool) -> None:
        self._parts, self._definitions, self._gives = parts, definitions, gives
        self._open: list[str] = []
        self._names: dict[str, str] = {}

    def tidy(self, schema: Any) -> Any:
        if not isinstance(schema, dict):
            return schema
        told = {word: self._value(word, value) for word, value in cast(Schema, schema).items() if word != "title"}
        told.pop("discriminator", None)  # of OpenAPI; it points at definitions that are gone
        reference = told.get("$ref")
        if isinstance(reference, str) and reference.startswith(_PREFIX):
            del told["$ref"]
            return {**self._part(reference.removeprefix(_PREFIX)), **told}
        return _unpromised(told) if self._gives else _compact(told)

    def _value(self, word: str, value: Any) -> Any:
        if word in _MAPS and isinstance(value, dict):
            return {name: self.tidy(member) for name, member in cast(Schema, value).items()}
        if word in _LISTS and isinstance(value, list):
            return [self.tidy(member) for member in cast("list[Any]", value)]
        return self.tidy(value) if word in _ONE else value

    def _part(self, name: str) -> Schema:
        if name in self._names:
            return {"$ref": _PREFIX + self._names[name]}
        if name in self._open:
            free = next(
                each for each in (name, *(f"{name}{n}" for n in range(2, 999))) if each not in self._definitions
            )
            self._names[name] = free
            self._definitions[free] = {}
            return {"$ref": _PREFIX + free}
        self._open.append(name)
        told = cast(Schema, self.tidy(self._parts.get(name, {})))
        self._open.pop()
        if name in self._names:
            self._definitions[self._names[name]] = told
            return {"$ref": _PREFIX + self._names[name]}
        return told


def _unpromised(schema: Schema) -> Schema:
    said = schema.get("format")
    return {word: value for word, value in schema.items() if word != "format" or said not in _BROKEN}


def _compact(schema: Schema) -> Schema:
    """An optional whose default is None needs no null: absence says it."""
    ways = cast("list[Any]", schema.get("anyOf", []))
    rest = [way for way in ways if way != {"type": "null"}]
    if "default" not in schema or schema["default"] is not None or len(rest) == len(ways) or not rest:
        return schema
    others = {word: value for word, value in schema.items() if word not in ("anyOf", "default")}
    return {**rest[0], **others} if len(rest) == 1 else {"anyOf": rest, **others}
