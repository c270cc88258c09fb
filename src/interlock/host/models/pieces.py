"""What adapters share: reading what a service sends without trusting it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from ...wire.display import display
from ...wire.loose import members_of
from .model import CallPart, ModelError

__all__ = ["as_text", "call_of", "json_of", "number_in"]

_objects = msgspec.json.Decoder(dict[str, Any])


def json_of(data: bytes) -> dict[str, Any]:
    """One event's object."""
    try:
        return _objects.decode(data or b"{}")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ModelError(f"the model sent what is no JSON object: {display(repr(data[:80]), 100)}") from None


def call_of(id: str, name: str, text: str) -> CallPart:
    """A call whose arguments the model wrote as `text`."""
    try:
        return CallPart(id, name, _objects.decode(text.strip() or "{}"))
    except (msgspec.DecodeError, RecursionError):
        return CallPart(id, name, {}, f"the arguments are no JSON object: {display(text, 200)}")


def as_text(block: Mapping[str, Any]) -> str:
    """What is left of a block where only text can stand."""
    if block.get("type") == "text":
        return cast(str, block["text"])
    return f"[{block.get('type', 'something')} of type {block.get('mimeType', 'unknown')} that this model cannot take]"


def number_in(members: Any, name: str) -> int:
    """A count of tokens; what is none is 0."""
    found = members_of(members).get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else 0
