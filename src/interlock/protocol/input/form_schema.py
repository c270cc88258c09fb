"""Forms: the flat schemas that elicitation asks with, and whether an answer fits one (client/elicitation).

Both sides use it: a server before it asks and when it is answered, a client before it answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import Any, cast

from ...wire.errors import InvalidParams, LocalError
from ...wire.escaping import display
from ...wire.json.lenient import is_number
from ...wire.lazy_regex import pattern
from ...wire.uri import is_uri

__all__ = [
    "check_form",
    "check_content",
    "proposed_in",
    "wrong_count",
    "wrong_form",
    "wrong_format",
]


_EMAIL = pattern(r"[^@\s]+@[^@\s]+")
_DATE = pattern(r"\d{4}-\d{2}-\d{2}")
_TIME = pattern(r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})")


def _is_date(text: str) -> bool:
    return _DATE.fullmatch(text) is not None and _exists(date.fromisoformat, text)


def _is_time(text: str) -> bool:
    """RFC 3339 names the zone always; Python reads six digits of a second at most."""
    found = _TIME.fullmatch(text)
    if found is None:
        return False
    return _exists(datetime.fromisoformat, text.upper().replace(found[1] or "\0", ""))


def _exists(read: Callable[[str], Any], text: str) -> bool:
    try:
        read(text)
    except ValueError:
        return False
    return True


_CHECKS: dict[str, Callable[[str], bool]] = {
    "email": lambda text: _EMAIL.fullmatch(text) is not None,
    "uri": is_uri,
    "date": _is_date,
    "date-time": _is_time,
}


def wrong_format(field: Mapping[str, Any], value: Any) -> str | None:
    """What is wrong with a text by its format; formats nobody knows are none of our business."""
    name = field.get("format")
    known = _CHECKS.get(name) if isinstance(name, str) and isinstance(value, str) else None
    return None if known is None or known(value) else f"is no {name}"


def wrong_count(field: Mapping[str, Any], chosen: list[Any]) -> str | None:
    """Too few or too many of the choices."""
    low, high = field.get("minItems"), field.get("maxItems")
    if isinstance(low, int) and len(chosen) < low:
        return f"holds fewer than {low} of the choices"
    if isinstance(high, int) and len(chosen) > high:
        return f"holds more than {high} of the choices"
    return None


def wrong_form(params: Mapping[str, Any]) -> str | None:
    """What is wrong with the form of an elicitation that a server asked for; None also where it asks for a page."""
    schema: Any = params.get("requestedSchema")
    if schema is None:
        return None
    fields: Any = cast("dict[str, Any]", schema).get("properties", {}) if isinstance(schema, dict) else None
    if not isinstance(fields, dict):
        return "its schema is no object with properties"
    for name, field in cast("dict[str, Any]", fields).items():
        if not isinstance(field, dict) or not isinstance(cast("dict[str, Any]", field).get("items", {}), dict):
            return f"the field {display(name, 60)!r} has no schema"
    required: Any = cast("dict[str, Any]", schema).get("required", [])
    if not isinstance(required, list) or not all(isinstance(name, str) for name in cast("list[Any]", required)):
        return "what it requires is no list of names"
    return None


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
