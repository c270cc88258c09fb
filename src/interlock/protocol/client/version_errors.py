"""The versions that a refusal lists, and the error where both sides have none in common."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from ...wire.errors import NoCommonRevision, Refused
from ...wire.escaping import display

__all__ = ["no_common", "supported_in", "versions_shown"]

_MAX_SHOWN = 20  # versions of the server that an error names


class _Supported(msgspec.Struct):
    """The data of a refused version, as far as it is needed."""

    supported: list[Any] = []


def supported_in(refused: Refused) -> list[Any]:
    """The versions a refusal lists; nothing where it lists none in the proper place."""
    try:
        return msgspec.convert(refused.data, _Supported).supported
    except msgspec.ValidationError:
        return []


def versions_shown(listed: list[Any]) -> tuple[str, ...]:
    return tuple(display(str(name), 40) for name in listed[:_MAX_SHOWN])


def no_common(listed: list[Any], ours: Iterable[str]) -> NoCommonRevision:
    """The error that shows the versions of both sides."""
    names = versions_shown(listed)
    return NoCommonRevision(f"the server speaks {', '.join(names) or 'nothing'}, this client {', '.join(ours)}", names)
