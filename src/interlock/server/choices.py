"""Choices in the order in which their author wrote them: in a schema, msgspec sorts those of a `Literal` or an `Enum`.

A person reads a form from its top, and "low, medium, high" says more than "high, low, medium".
"""

from __future__ import annotations

import enum
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Union, cast

__all__ = ["put_in_order"]

_Schema = dict[str, Any]


def put_in_order(schema: _Schema, wanted: Any) -> _Schema:
    """The schema that msgspec made of the type `wanted`, its choices put in order in place, also those in `$defs`."""
    _Walk(schema.get("$defs", {})).visit(wanted, schema)
    return schema


class _Walk:
    """Through a type and its schema side by side. Choices that are not those of the type are left as they are."""

    def __init__(self, definitions: Mapping[str, _Schema]) -> None:
        self._definitions = definitions
        self._seen: set[tuple[int, int]] = set()

    def visit(self, hint: Any, schema: Any) -> None:
        hint, schema = _bare(hint), self._resolved(schema)
        if not isinstance(schema, dict) or (id(hint), id(cast(Any, schema))) in self._seen:
            return
        found = cast(_Schema, schema)
        self._seen.add((id(hint), id(found)))
        choices = _choices_of(hint)
        if choices is not None:
            _reorder(found, choices)
        elif typing.get_origin(hint) in (Union, types.UnionType):
            for option in typing.get_args(hint):
                for part in _options_in(found):
                    self.visit(option, part)
        else:
            self._visit_parts(hint, found)

    def _visit_parts(self, hint: Any, schema: _Schema) -> None:
        """The fields of a record, or what a collection holds."""
        fields = _fields_of(hint)
        for name, part in schema.get("properties", {}).items():
            self.visit(fields.get(name), part)
        inner = list(fields.values()) or list(typing.get_args(hint))
        places = schema.get("prefixItems", [])
        for field, part in zip(inner, places[len(places) - len(inner) :], strict=False):  # behind a tag, if it has one
            self.visit(field, part)
        if inner and not fields:
            self.visit(inner[0], schema.get("items"))
            self.visit(inner[-1], schema.get("additionalProperties"))

    def _resolved(self, schema: Any) -> Any:
        reference: Any = cast(_Schema, schema).get("$ref") if isinstance(schema, dict) else None
        return cast(Any, schema) if reference is None else self._definitions.get(reference.rpartition("/")[2])


def _options_in(schema: _Schema) -> list[_Schema]:
    """Records that are told apart by a tag stand in a union of their own."""
    if "anyOf" not in schema:
        return [schema]
    return [option for part in cast("list[_Schema]", schema["anyOf"]) for option in _options_in(part)]


def _bare(hint: Any) -> Any:
    """The type behind an annotation, an alias or a new name."""
    while True:
        if typing.get_origin(hint) is Annotated:
            hint = hint.__origin__
        elif isinstance(hint, typing.NewType):
            hint = hint.__supertype__
        elif type(hint).__name__ == "TypeAliasType":  # since Python 3.12, or of typing_extensions
            hint = hint.__value__
        else:
            return hint


def _choices_of(hint: Any) -> list[Any] | None:
    if typing.get_origin(hint) is Literal:
        return list(typing.get_args(hint))
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return [member.value for member in hint]
    return None


def _fields_of(hint: Any) -> dict[str, Any]:
    """The types of its fields by their names in JSON; nothing for what is no record, or cannot be resolved."""
    record = typing.get_origin(hint) or hint
    if not isinstance(record, type) or record.__module__ == "builtins":
        return {}
    try:
        hints = typing.get_type_hints(record)
    except (NameError, TypeError, AttributeError):
        return {}
    given = dict(zip(getattr(record, "__parameters__", ()), typing.get_args(hint), strict=False))  # Box[int]
    hints = {name: given.get(field, field) if given else field for name, field in hints.items()}
    names: Sequence[str] | None = getattr(record, "__struct_fields__", None)
    if names is None:
        return hints
    spelled = cast("Sequence[str]", getattr(record, "__struct_encode_fields__", names))
    return {told: hints.get(name) for name, told in zip(names, spelled, strict=True)}


def _reorder(schema: _Schema, choices: list[Any]) -> None:
    listed = schema.get("enum")
    if isinstance(listed, list) and _as_set(cast("list[Any]", listed)) == _as_set(choices):
        schema["enum"] = choices


def _as_set(choices: list[Any]) -> set[str]:
    """By how they are written: 1 is not True, though they are equal."""
    return set(map(repr, choices))
