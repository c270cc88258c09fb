"""Arguments that fit, as nearly all do: one decode. What mends others is not even loaded before one comes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from .arguments import Arguments
from .schema import Signature

if TYPE_CHECKING:
    from .mending import Mender

__all__ = ["fitting"]


def fitting(signature: Signature) -> Arguments:
    """For a tool with type hints."""
    decode, asdict, fill = signature.decoder.decode, msgspec.structs.asdict, signature.fill
    made: list[Mender] = []

    def arguments(raw: Raw) -> dict[str, Any]:
        try:
            found = decode(raw)
        except msgspec.ValidationError:
            if not made:
                made.append(_mender(signature))
            return made[0].mend(raw)
        if fill is not None:
            fill(found)
        return asdict(found)

    return arguments


def _mender(signature: Signature) -> Mender:
    from .mending import Mender  # a server whose callers make no mistakes starts, and stays, without it

    return Mender(signature)
