"""Sets, and dictionaries with other keys than strings, read from a peer's JSON at a bounded cost.

Python hashes strings with a secret, but integers and everything made of them without one: all multiples of 2**61 - 1
have the hash 0, and a set of them takes time that grows with the square of its size (20,000 in a `set[int]`: 2.2 s;
what fits into a request: minutes). Integers of 64 bits hold too few of them to matter. So where a type hashes what a
peer sends, larger integers are counted, and tuples, records and UUIDs, whose hashes can be chosen freely, are limited
by the length of the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import msgspec
from msgspec import inspect as mi

from .duplicate_names import check_unique_names

__all__ = ["HashLimitExceeded", "check_of", "nodes_in"]

MAX_LARGE_INTEGERS = 256  # some 0.3 ms, if all of them have one hash
MAX_HASHED_BYTES = 128 * 1024  # of the whole text, where it holds tuples or the like: some 50 ms
_LARGE = b"0" * 20  # digits; few multiples of 2**61 - 1 have fewer
MAX_UNCHECKED = MAX_LARGE_INTEGERS * len(_LARGE)  # bytes that cannot hold more of them
_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_INTEGERS = {mi.IntType, mi.AnyType}
_COMPOUND = {
    *(mi.TupleType, mi.VarTupleType, mi.NamedTupleType, mi.FrozenSetType, mi.StructType, mi.DataclassType),
    *(mi.UUIDType, mi.DecimalType, mi.CustomType),
}
Check = Callable[[bytes], None]


class HashLimitExceeded(msgspec.ValidationError):
    """Hashing the values of a text could take too long."""


def check_of(described: mi.Type) -> Check | None:
    """What to call with a text before it is read as this type; None where its hashes cannot be chosen by a peer."""
    if not isinstance(described, mi.StructType) or described.array_like:
        return _check_of(described)
    checks = {field.encode_name: check for field in described.fields if (check := _check_of(field.type)) is not None}
    return _Members(checks) if checks else None


class _Members:
    """The checks of a struct: what its other members hold does not count."""

    def __init__(self, checks: dict[str, Check]) -> None:
        self._checks = checks

    def __call__(self, data: bytes) -> None:
        try:
            for check in set(self._checks.values()):
                check(data)
        except HashLimitExceeded:
            self._check_each(data)

    def _check_each(self, data: bytes) -> None:
        try:
            members = _members.decode(data)
            check_unique_names(data)  # of two members with one name both are read, and one would not be looked at
        except (UnicodeDecodeError, RecursionError):
            return  # the decoder of the type says what is wrong with it
        for name, check in self._checks.items():
            if name in members:
                check(bytes(members[name]))


def _check_of(described: mi.Type) -> Check | None:
    kinds = set(_hashed_kinds(described))
    if not kinds.isdisjoint(_COMPOUND):
        return _check_length
    return None if kinds.isdisjoint(_INTEGERS) else _check_integers


def nodes_in(node: Any) -> Iterator[Any]:
    """All nodes of a type as `msgspec.inspect` describes it."""
    found: set[int] = set()
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if isinstance(each, (tuple, list)):
            waiting.extend(cast("list[Any]", each))
        elif isinstance(each, msgspec.Struct) and id(each) not in found:
            found.add(id(each))
            waiting.extend(getattr(each, name) for name in each.__struct_fields__)
            yield each


def _hashed_kinds(described: mi.Type) -> Iterator[type]:
    for node in nodes_in(described):
        if isinstance(node, mi.SetType | mi.FrozenSetType):
            yield from (each.__class__ for each in nodes_in(node.item_type))
        elif isinstance(node, mi.DictType) and not isinstance(node.key_type, mi.AnyType):  # a string, if any may be
            yield from (each.__class__ for each in nodes_in(node.key_type))


def _check_integers(data: bytes) -> None:
    found = data.translate(_DIGITS).count(_LARGE) if len(data) > MAX_UNCHECKED else 0
    if found > MAX_LARGE_INTEGERS:
        told = f"too many integers of more than 19 digits: {found} (limit {MAX_LARGE_INTEGERS} in a set or as keys)"
        raise HashLimitExceeded(f"{told}: send fewer at once")


def _check_length(data: bytes) -> None:
    if len(data) > MAX_HASHED_BYTES:
        told = f"too long for a set or keys of this type: {len(data)} bytes (limit {MAX_HASHED_BYTES})"
        raise HashLimitExceeded(f"{told}: send fewer at once")
