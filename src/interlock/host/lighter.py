"""A conversation that a model refused, made lighter for one more try.

What a service takes is not known beforehand: which pictures it can read, and how many tokens it counts. A conversation
that is refused once would be refused for ever, for it is sent as a whole each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..wire.patterns import pattern
from .models.model import Message, ModelRefused, blocks_of
from .trimming import Trimmed, cost_of, trim

__all__ = ["lighter"]

_ABOUT_IT = (400, 413, 422)  # what is wrong is in the request
_TOO_LARGE = 413
_LONG = pattern(r"(?i)too long|too many tokens|too large|context[ _](?:length|size|window)|maximum context")
_GONE = "[a picture or a sound was here, which the model could not take]"


def lighter(messages: Sequence[Message], refused: ModelRefused) -> Trimmed | None:
    """With half of it, where it was too long; else without pictures and sounds. None where nothing can be left out."""
    if refused.status not in _ABOUT_IT:
        return None
    if refused.status == _TOO_LARGE or _LONG.search(str(refused)):
        half = trim(messages, sum(cost_of(message) for message in messages) // 2)
        if half.cut or half.dropped:
            return half
    return _without_pictures(messages)


def _without_pictures(messages: Sequence[Message]) -> Trimmed | None:
    found = [{**message, "content": [_plain(block) for block in blocks_of(message)]} for message in messages]
    changed = sum(blocks_of(old) != blocks_of(new) for old, new in zip(messages, found, strict=True))
    return Trimmed([*found], cut=changed) if changed else None


def _plain(block: dict[str, Any]) -> dict[str, Any]:
    if block["type"] == "tool_result":
        return {**block, "content": [_plain(each) for each in block.get("content") or ()]}
    return {"type": "text", "text": _GONE} if block["type"] in ("image", "audio") else block
