"""JSON of strangers, looked at without trusting its shape: what is no object has no members, what is no list none."""

from __future__ import annotations

from typing import Any, TypeGuard, cast

__all__ = ["is_number", "items_of", "members_of", "one_or_more", "text_of"]


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
