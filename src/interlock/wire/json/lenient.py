"""What a peer sent, as the type it should be: strict, but for one habit that is everywhere and harms nobody.

Many servers write out what they do not have (`"annotations": null`), where the schema has no null. What is meant is
plain, so a value that does not fit is read once more without such members.
"""

from __future__ import annotations

from typing import Any, TypeGuard, TypeVar, cast

import msgspec

__all__ = [
    "read_as",
    "is_number",
    "items_of",
    "members_of",
    "one_or_more",
    "text_of",
    "parts_of",
]


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


def members_of(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def items_of(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def one_or_more(value: Any) -> list[Any]:
    """The content of a sampling message, say, is a block or a list of them."""
    return cast("list[Any]", value) if isinstance(value, list) else [value]


def is_number(value: Any) -> TypeGuard[int | float]:
    """JSON's true and false are none, whatever Python says."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def text_of(value: Any) -> str | None:
    return value if isinstance(value, str) else None


LETTERS = 64  # of a text count as one part


def parts_of(value: Any, most: int) -> int:
    """How many values there are in a value, long texts counted by their length; stops counting behind `most`."""
    count, pending = 0, [value]
    while pending and count <= most:
        each = pending.pop()
        count += 1
        if isinstance(each, str):
            count += len(each) // LETTERS
        elif isinstance(each, dict):
            pending += cast("dict[str, Any]", each).values()
        elif isinstance(each, list):
            pending += cast("list[Any]", each)
    return count
