"""The formats a form may ask for, and how many choices: what its fields say beside their type (client/elicitation).

And whether what a server sent is a form at all: everything behind it relies on that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import Any, cast

from ..wire.display import display
from ..wire.patterns import pattern
from ..wire.uris import is_uri

__all__ = ["wrong_count", "wrong_form", "wrong_format"]

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
