"""A conversation kept under its budget: what is oldest and largest goes first, and what goes is marked.

Pure. The newest turn, from the user's last words on, is never dropped: a model that has lost the question cannot
answer it. Before that, results of tools are cut to a mark, oldest first; then whole turns are dropped, oldest first; at
last the results within the newest turn are cut, but for those that came last. A call and its result go together, or
services refuse the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ...wire.lazy_regex import pattern
from ..catalogue.token_estimate import tokens
from ..models.model import Message, ModelRefused, blocks_of

__all__ = [
    "Trimmed",
    "cost_of",
    "trim",
    "lighter",
]


_PICTURE = 1_600  # tokens of an image or a sound, about: what it costs does not follow from its bytes
_AROUND = 4
_CUT = "[cut: this result was dropped to keep the conversation within its budget]"


class Trimmed(msgspec.Struct, frozen=True):
    messages: list[Message]
    cut: int = 0
    """Results of tools that were cut."""
    dropped: int = 0
    """Messages that are gone."""


def trim(messages: Sequence[Message], budget: int) -> Trimmed:
    """As much of it as fits into `budget` tokens; the newest turn in any case."""
    kept, left = [*messages], sum(cost_of(message) for message in messages) - budget
    dropped = 0
    cut, left = _cut_results(kept, range(_turns(kept)[-1] if kept else 0), left)
    while left > 0 and len(turns := _turns(kept)) > 1:
        first, kept = kept[: turns[1]], kept[turns[1] :]
        left -= sum(cost_of(message) for message in first)
        dropped += len(first)
    more, left = _cut_results(kept, range(len(kept) - 1), left)
    return Trimmed(kept, cut + more, dropped)


def _cut_results(kept: list[Message], where: range, left: int) -> tuple[int, int]:
    """As many as it takes, in place: how many, and how many tokens are still too many."""
    cut = 0
    for index in where:
        if left <= 0:
            break
        smaller = _without_results(kept[index])
        if smaller is not None:
            left -= cost_of(kept[index]) - cost_of(smaller)
            kept[index], cut = smaller, cut + 1
    return cut, left


def cost_of(message: Message) -> int:
    """Tokens of one message, roughly."""
    return _AROUND + sum(_cost(block) for block in blocks_of(message))


def _cost(block: Any) -> int:
    if block["type"] in ("image", "audio"):
        return _PICTURE
    if block["type"] == "tool_result":
        return _AROUND + sum(_cost(each) for each in block.get("content") or ())
    return tokens(block.get("text") or block.get("input") or "")


def _turns(messages: Sequence[Message]) -> list[int]:
    """Where the user begins to speak; messages before the first such place belong to it."""
    starts = [index for index, message in enumerate(messages) if _is_spoken(message)]
    return [0, *(start for start in starts if start)]


def _is_spoken(message: Message) -> bool:
    return message["role"] == "user" and all(block["type"] != "tool_result" for block in blocks_of(message))


def _without_results(message: Message) -> Message | None:
    """The same with its results cut; None where that saves nothing."""
    blocks = [_cut(block) for block in blocks_of(message)]
    smaller = {**message, "content": blocks}
    return smaller if cost_of(smaller) < cost_of(message) else None


def _cut(block: dict[str, Any]) -> dict[str, Any]:
    return {**block, "content": [{"type": "text", "text": _CUT}]} if block["type"] == "tool_result" else block


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
