"""What a peer sent, as the type it should be: strict, but for one habit that is everywhere and harms nobody.

Many servers write out what they do not have (`"annotations": null`), where the schema has no null. What is meant is
plain, so a value that does not fit is read once more without such members.
"""

from __future__ import annotations

from typing import Any, TypeVar, cast

import msgspec

__all__ = ["read_as"]

T = TypeVar("T")


def read_as(value: Any, kind: type[T]) -> T:
    """Raises `msgspec.ValidationError` for what does not fit either way."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return msgspec.convert(_without_nulls(value), kind)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_nulls(each) for each in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    members = cast("dict[str, Any]", value)
    return {name: _inside(name, member) for name, member in members.items() if member is not None}


def _inside(name: str, member: Any) -> Any:
    """A schema may say null and mean it, and what is in `_meta` is nobody's business."""
    return member if name == "_meta" or name.endswith("Schema") else _without_nulls(member)
