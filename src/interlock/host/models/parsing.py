"""What adapters share: reading what a service sends without trusting it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from ...wire.escaping import display
from ...wire.json.duplicate_names import DuplicateName, check_unique_names
from ...wire.json.reader import read_members
from ...wire.lazy_regex import pattern
from .model import CallPart, ModelError

__all__ = ["block_text", "call_of", "json_of", "members_of", "number_in"]

_HALF = pattern(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")


def json_of(data: bytes) -> dict[str, Any]:
    """One event's object."""
    try:
        return _decoded(data or b"{}")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ModelError(f"the model sent what is no JSON object: {display(repr(data[:80]), 100)}") from None


def _decoded(data: bytes) -> dict[str, Any]:
    """Some services cut a text in the middle of a character and write its halves as escapes: these are lost, and not
    the whole answer."""
    try:
        return read_members(data)
    except msgspec.DecodeError:
        if not _HALF.search(data):
            raise
        return read_members(_HALF.sub(rb"\\ufffd", data))


def call_of(id: str, name: str, text: str) -> CallPart:
    """A call whose arguments the model wrote as `text`."""
    try:
        data = text.strip().encode() or b"{}"
        arguments = _decoded(data)
        check_unique_names(data)  # rules decide on the arguments, and a person who reads the text may see the other one
        return CallPart(id, name, arguments)
    except DuplicateName as error:
        return CallPart(id, name, {}, str(error))
    except (msgspec.DecodeError, RecursionError):
        return CallPart(id, name, {}, f"the arguments are no JSON object: {display(text, 200)}")


def block_text(block: Mapping[str, Any]) -> str:
    """What is left of a block where only text can stand."""
    if block.get("type") == "text":
        return cast(str, block["text"])
    return f"[{block.get('type', 'something')} of type {block.get('mimeType', 'unknown')} that this model cannot take]"


def members_of(value: Any, name: str | None = None) -> dict[str, Any]:
    """The members of an object, or of the object in one of them; of anything else: none."""
    found: Any = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    return found if name is None else members_of(found.get(name))


def number_in(members: Any, name: str) -> int:
    """A count of tokens; what is none is 0."""
    found = members_of(members).get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else 0
