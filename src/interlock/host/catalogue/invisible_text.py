"""Texts of servers on their way to a model: what a person cannot see in them, a model shall not read either.

Tag characters, zero-width and bidirectional ones, fillers and variation selectors carry orders that nobody who approved
a description has seen. They are written out, for both alike; line breaks and tabs stay, a space is a space.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from ...wire.escaping import display_lines, is_visible
from ...wire.lazy_regex import pattern

__all__ = ["schema_for_model", "text_for_model"]

_EMOJI = "\ufe0f"  # makes an emoji of a sign: common in descriptions, and alone it carries no message
# French and Japanese are written with them. A model needs one kind, and several would tell it what nobody sees.
_SPACES = pattern("[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]")
_PROSE = frozenset(("description", "title", "$comment"))
_DEEPEST = 64


def text_for_model(text: str) -> str:
    """The text with everything written out that cannot be seen."""
    if text.isascii():
        return display_lines(text)
    return _EMOJI.join(display_lines(part) for part in _SPACES.sub(" ", text).split(_EMOJI))


def schema_for_model(schema: dict[str, Any]) -> dict[str, Any]:
    """The same for the prose in a schema. Names of members and their values stay: the server compares them."""
    return cast("dict[str, Any]", _prose(schema, 0)) if _has_unseen(schema) else schema


def _has_unseen(schema: dict[str, Any]) -> bool:
    return not is_visible(json.dumps(schema, ensure_ascii=False).replace(_EMOJI, ""))


def _prose(value: Any, depth: int) -> Any:
    if depth > _DEEPEST:
        return value
    if isinstance(value, Mapping):
        members = cast("Mapping[str, Any]", value)
        return {
            name: text_for_model(member) if name in _PROSE and isinstance(member, str) else _prose(member, depth + 1)
            for name, member in members.items()
        }
    return [_prose(item, depth + 1) for item in cast("list[Any]", value)] if isinstance(value, list) else value
