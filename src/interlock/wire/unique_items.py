"""`uniqueItems` of JSON Schema, in time that grows with the size of the array alone.

The library's own check hashes an array by its leaves: arrays of arrays that differ only in their brackets all have one
hash and are compared with each other, 0.6 s for 120 kB and minutes for what a request may bring. Here each item is
written in one canonical form, and the forms are compared by a hash that a peer cannot know.
"""

from __future__ import annotations

from typing import Any, cast

import msgspec

__all__ = ["UniqueItems", "are_unique"]

_encode = msgspec.json.Encoder(order="sorted").encode
_LARGEST = 2.0**63  # from which on a float is not written as an integer: the encoder takes none of more than 64 bits


class UniqueItems:
    """The keyword, as the library wants one that replaces its own."""

    def __init__(self, parent: object, value: object, path: object) -> None:
        self._applies = value is True

    def validate(self, instance: object) -> None:
        if self._applies and isinstance(instance, list) and not are_unique(cast("list[Any]", instance)):
            raise ValueError("has items that are equal")


def are_unique(items: list[Any]) -> bool:
    """Is no item equal to another, as JSON Schema says it (1 and 1.0 are equal, the order of members is nothing)?"""
    seen: set[bytes] = set()
    for item in items:
        written = _canonical(item)
        if written in seen:
            return False
        seen.add(written)
    return True


def _canonical(item: Any) -> bytes:
    written = _encode(item)
    if isinstance(item, str) or not (b"." in written or b"e" in written):
        return written  # no float in it
    return _encode(_with_integers(item))


def _with_integers(value: Any) -> Any:
    """Floats without a fraction as the integers that they are equal to."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < _LARGEST else value
    if isinstance(value, list):
        return [_with_integers(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {name: _with_integers(member) for name, member in cast("dict[str, Any]", value).items()}
    return value
