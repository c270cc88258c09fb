"""Decoders that are made when they are first used: a program that starts pays for those it needs.

What costs is reading the annotations of a type and of all types inside of it.
"""

from __future__ import annotations

from typing import Any, TypeVar, cast, overload

from .reader import JsonReader

__all__ = ["decoder"]

T = TypeVar("T")


@overload
def decoder(kind: type[T]) -> JsonReader[T]: ...
@overload
def decoder(kind: Any) -> JsonReader[Any]: ...
def decoder(kind: Any) -> JsonReader[Any]:
    """Like `JsonReader`, later. A type that cannot be read shows with the first use: each needs a test."""
    return cast("JsonReader[Any]", _Decoder(kind))


class _Decoder:
    """Becomes as fast as the real one: from the first use on, it has its method."""

    __slots__ = ("_kind", "decode")

    def __init__(self, kind: Any) -> None:
        self._kind = kind

    def __getattr__(self, name: str) -> Any:
        if name != "decode":
            raise AttributeError(name)
        self.decode = JsonReader(self._kind).decode
        return self.decode
