"""Forms: the flat schemas that elicitation asks with, and whether an answer fits one (client/elicitation).

Both sides use it: a server before it asks and when it is answered, a client before it answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from ..wire.errors import InvalidParams, LocalError
from ..wire.loose import is_number
from .form_formats import wrong_count, wrong_format

__all__ = ["check_form", "check_content", "proposed_in"]

_FORMATS = frozenset({"email", "uri", "date", "date-time"})
_TYPES: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: is_number(value) and (isinstance(value, int) or value.is_integer()),
    "number": is_number,
    "array": lambda value: isinstance(value, list),
}
_KINDS: dict[Any, str] = {str: "string", bool: "boolean", int: "integer"}
_UNBOUND = frozenset({"type", "title", "description", "default"})  # words that leave a field to its type alone


def check_form(schema: Mapping[str, Any]) -> None:
    """Raise `LocalError` unless it is a flat object of strings, numbers, booleans and choices."""
    if schema.get("type") != "object" or not isinstance(schema.get("properties"), Mapping):
        raise LocalError("a form is an object with properties: give a flat record type or such a JSON Schema")
    for name, field in cast("Mapping[str, Any]", schema["properties"]).items():
        _check_field(name, field)


def _check_field(name: str, field: Any) -> None:
    if not isinstance(field, Mapping):
        raise LocalError(f"the field {name!r} of a form needs a schema")
    members = cast("Mapping[str, Any]", field)
    kind = members.get("type")
    if kind == "array":
        if _choices(cast("Mapping[str, Any]", members.get("items") or {})) is None:
            raise LocalError(f"the field {name!r}: a list in a form is a choice of several strings (items with enum)")
    elif kind not in _TYPES:
        raise LocalError(f"the field {name!r}: a form has only strings, numbers, booleans and choices, not {kind!r}")
    if "contentEncoding" in members:
        raise LocalError(f"the field {name!r}: nobody can type bytes into a form")
    if "format" in members and members["format"] not in _FORMATS:
        raise LocalError(f"the field {name!r}: a form knows the formats {', '.join(sorted(_FORMATS))}")


def _choices(field: Mapping[str, Any]) -> list[Any] | None:
    """The values a field offers, in any of the spellings, or None for a free one."""
    if isinstance(field.get("enum"), list):
        return cast("list[Any]", field["enum"])
    for word in ("oneOf", "anyOf"):
        if isinstance(field.get(word), list):
            options = cast("list[Any]", field[word])
            return [cast("dict[str, Any]", option).get("const") for option in options if isinstance(option, dict)]
    return None


def check_content(schema: Mapping[str, Any], content: Any) -> None:
    """Raise `InvalidParams` unless `content` is an answer to this form."""
    if content is None and not schema.get("properties"):
        return  # a question that wants no more than a yes
    if not isinstance(content, dict):
        raise InvalidParams("The answer has no content, the form asks for some")
    answers: dict[str, Any] = content  # pyright: ignore[reportUnknownVariableType] - what was decoded has names
    fields: Mapping[str, Mapping[str, Any]] = schema.get("properties") or {}
    required: list[Any] = schema.get("required") or []
    for name in required:
        if name not in answers:
            raise InvalidParams(f"The answer misses the field {name!r:.60}")
    for name, value in answers.items():
        known = name in fields
        if known and _is_just_that(fields[name], value):
            continue
        if not _is_plain(value):
            raise InvalidParams(f"The answer's field {name!r:.60} is no text, number, boolean or list of texts")
        if known and (wrong := _what_is_wrong(fields[name], value)):
            raise InvalidParams(f"The answer's field {name!r:.60} {wrong}")


def _is_just_that(field: Mapping[str, Any], value: Any) -> bool:
    """Of its type, which is all that most fields ask for."""
    return field.get("type") == _KINDS.get(type(value), "") and _UNBOUND.issuperset(field)


def _is_plain(value: Any) -> bool:
    texts = isinstance(value, list) and all(isinstance(item, str) for item in cast("list[Any]", value))
    return texts or isinstance(value, str | int | float)  # a boolean is an int, too


def _what_is_wrong(field: Mapping[str, Any], value: Any) -> str | None:
    kind = field.get("type")
    if isinstance(kind, str) and kind in _TYPES and not _TYPES[kind](value):
        return f"is no {kind}"
    if kind == "array":
        choices = _choices(cast("Mapping[str, Any]", field.get("items") or {})) or []
        odd = any(item not in choices for item in value)
        return "holds what is not among the choices" if odd else wrong_count(field, value)
    choices = _choices(field)
    if choices is not None and value not in choices:
        return "is not among the choices"
    return _out_of_bounds(field, value) or wrong_format(field, value)


def _out_of_bounds(field: Mapping[str, Any], value: Any) -> str | None:
    size = len(value) if isinstance(value, str) else value
    low, high = ("minLength", "maxLength") if isinstance(value, str) else ("minimum", "maximum")
    if is_number(field.get(low)) and size < field[low]:
        return f"is below {low} {field[low]}"
    if is_number(field.get(high)) and size > field[high]:
        return f"is over {high} {field[high]}"
    return None


# --- what it proposes -----------------------------------------------------------------------------


def proposed_in(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The values that its fields have when they are left alone (client/elicitation#requested-schema)."""
    fields: Any = schema.get("properties")
    if not isinstance(fields, Mapping):
        return {}
    members = cast("Mapping[str, Any]", fields)
    return {name: field["default"] for name, field in members.items() if _proposes(name, field)}


def _proposes(name: str, field: Any) -> bool:
    """A server may propose what it does not accept: then it proposes nothing."""
    if not isinstance(field, Mapping) or "default" not in field:
        return False
    try:
        check_content({"properties": {name: field}}, {name: field["default"]})
    except InvalidParams:
        return False
    return True
