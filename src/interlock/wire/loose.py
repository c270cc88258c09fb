"""JSON of strangers, looked at without trusting its shape: what is no object has no members, what is no list none."""

from __future__ import annotations

from typing import Any, cast

__all__ = ["members_of", "items_of", "text_of"]


def members_of(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def items_of(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def text_of(value: Any) -> str | None:
    return value if isinstance(value, str) else None
