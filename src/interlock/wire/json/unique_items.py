"""`uniqueItems` of JSON Schema, in time that grows with the size of the array alone.

The library's own check hashes an array by its leaves: arrays of arrays that differ only in their brackets all have one
hash and are compared with each other, 0.6 s for 120 kB and minutes for what a request may bring. Here each item is
written in one canonical form, and the forms are compared by a hash that a peer cannot know.
"""

from __future__ import annotations

from typing import Any, cast

import msgspec

from ..lazy_regex import pattern

__all__ = ["UniqueItems", "are_unique"]

_encode = msgspec.json.Encoder(order="sorted").encode
_FLOAT_FORM = 2**64  # from which on a number is written as a float, where it is one: 1e308 as an integer is 309 digits
_TWO_FORMS = pattern(rb"[.e]|[0-9]{20}")  # a float, or an integer of that size


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
    if isinstance(item, int):
        return _encode(_normalize(item))
    written = _encode(item)
    if isinstance(item, str) or _TWO_FORMS.search(written) is None:
        return written  # every number in it has one form only
    return _encode(_normalize(item))


def _normalize(value: Any) -> Any:
    """The same value, in which equal numbers have one form: small ones without a fraction are integers, large ones that
    a float can hold exactly are floats, and all others hexadecimal (decimal digits take quadratic time)."""
    if isinstance(value, float):
        return int(value) if abs(value) < _FLOAT_FORM and value.is_integer() else value
    if isinstance(value, int) and abs(value) >= _FLOAT_FORM:
        return _as_float(value)
    if isinstance(value, list):
        return [_normalize(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {name: _normalize(member) for name, member in cast("dict[str, Any]", value).items()}
    return value


def _as_float(value: int) -> float | msgspec.Raw:
    try:
        if (found := float(value)) == value:
            return found
    except OverflowError:  # beyond all floats
        pass
    return msgspec.Raw(hex(value).encode())
