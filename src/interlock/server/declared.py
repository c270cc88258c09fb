"""Capabilities as a server declares them: derived from what is registered, never written by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ..wire.types.capabilities import ServerCapabilities

__all__ = ["declared"]

_LISTED = {"listChanged": True}
_FORMS: dict[str, dict[str, Any]] = {
    "tools": _LISTED,
    "resources": {"subscribe": True, **_LISTED},
    "prompts": _LISTED,
    "completions": {},
    "logging": {},
}


def declared(own: Mapping[str, Mapping[str, Any]], **offered: bool) -> ServerCapabilities:
    """What is offered in its declared form, and what the author adds in a mapping of its own, if it is not empty."""
    found: dict[str, Any] = {name: form for name, form in _FORMS.items() if offered.get(name)}
    return msgspec.convert(found | {name: value for name, value in own.items() if value}, ServerCapabilities)
