"""Calls and their results, put together again where a transcript has lost one of them.

Services take a call only with its result behind it, and a result only with its call before it. A talk that was written
down while the disk was full, or edited since, may have one without the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..models.model import CallPart, Message, blocks_of
from .content_blocks import failed_block

__all__ = ["calls_in", "paired"]


def paired(messages: Sequence[Message], because: str) -> list[Message]:
    """Results without a call are left out; calls without a result get one that says `because`, but for those at the
    very end: they may still be under way."""
    found: list[Message] = []
    calls: list[CallPart] = []
    for message in messages:
        blocks = _answers(blocks_of(message), calls, because)
        if message["role"] == "assistant" and (missing := [each for each in blocks if each["type"] == "tool_result"]):
            found.append({"role": "user", "content": missing})
            blocks = [each for each in blocks if each["type"] != "tool_result"]
        if blocks:
            found.append({"role": message["role"], "content": blocks})
            calls = calls_in(found[-1])
    return found


def calls_in(message: Message) -> list[CallPart]:
    """What is called in it, without the arguments."""
    return [CallPart(block["id"], block["name"], {}) for block in blocks_of(message) if block["type"] == "tool_use"]


def _answers(blocks: list[dict[str, Any]], calls: Sequence[CallPart], because: str) -> list[dict[str, Any]]:
    """The blocks with exactly the results of `calls` before the rest."""
    given = {block["toolUseId"]: block for block in blocks if block["type"] == "tool_result"}
    results = [given.get(call.id) or failed_block(call, because) for call in calls]
    return results + [block for block in blocks if block["type"] != "tool_result"]
