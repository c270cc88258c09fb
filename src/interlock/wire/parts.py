"""How large a value is, whoever sent it: counted before anything is done with it that takes time or room."""

from __future__ import annotations

from typing import Any, cast

__all__ = ["parts_of"]

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
