"""JSON in which every name of an object stands once.

Of two members with one name most readers take the last, some the first (RFC 8259 §4). Where a value is checked in one
place and used in another, the two may be different readers: an object with a name twice is refused there.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

__all__ = ["DuplicateName", "check_unique_names"]

_MAX_SHOWN = 60  # characters of a name in an error


class DuplicateName(msgspec.ValidationError):
    """An object has two members with one name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the member {name[:_MAX_SHOWN]!a} occurs twice in one object: send it once")
        self.name = name


def check_unique_names(data: bytes) -> None:
    """Raises `DuplicateName`. `data` must have been decoded before: what is not JSON is not looked for here."""
    _decoder().decode(data.decode())


@cache
def _decoder() -> Any:
    """The standard library's reader, the only one that shows every member; numbers are not converted, only skipped."""
    import json  # most servers start without it

    return json.JSONDecoder(object_pairs_hook=_check_pairs, parse_float=len, parse_int=len, strict=False)


def _check_pairs(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) == len(pairs):
        return
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            raise DuplicateName(name)
        seen.add(name)
