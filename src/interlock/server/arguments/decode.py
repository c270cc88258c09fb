"""Arguments that fit, as nearly all do: one decode. What mends others is not even loaded before one comes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from ..schema.signature import Signature
from .errors import Arguments

if TYPE_CHECKING:
    from .repair import Mender

__all__ = ["fitting"]


def fitting(signature: Signature, *, in_order: bool = False) -> Arguments:
    """For a tool with type hints. `in_order`: as a tuple, for a function that takes them by their places."""
    decode, fill, names = signature.decoder.decode, signature.fill, signature.names
    unpacked = msgspec.structs.astuple if in_order else msgspec.structs.asdict
    made: list[Mender] = []

    def arguments(raw: Raw) -> Any:
        try:
            found = decode(raw)
        except msgspec.ValidationError:
            if not made:
                made.append(_mender(signature))
            mended = made[0].mend(raw)
            return tuple(mended[name] for name in names) if in_order else mended
        if fill is not None:
            fill(found)
        return unpacked(found)

    return arguments


def _mender(signature: Signature) -> Mender:
    from .repair import Mender  # a server whose callers make no mistakes starts, and stays, without it

    return Mender(signature)
