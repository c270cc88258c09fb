"""What sampling asks with, and how its messages follow one another when tools were used (client/sampling).

Both sides use it: a server before it asks, a client before it lets itself be asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

__all__ = ["what_is_wrong", "what_is_wrong_in"]

_ROLES = ("user", "assistant")


def what_is_wrong_in(params: Mapping[str, Any]) -> str | None:
    """Why a client does not put this to a model, or None. In every revision it holds messages and maxTokens."""
    messages, most = params.get("messages"), params.get("maxTokens")
    if not isinstance(messages, list):
        return "messages is no list"
    if not isinstance(most, int | float) or isinstance(most, bool) or most != most // 1:
        return "maxTokens is no integer"
    if not all(_is_message(message) for message in cast("list[Any]", messages)):
        return "a message has no role of user or assistant, or no content"
    return what_is_wrong(messages)


def _is_message(message: Any) -> bool:
    members = cast("dict[str, Any]", message) if isinstance(message, dict) else {}
    return members.get("role") in _ROLES and isinstance(members.get("content"), dict | list)


def what_is_wrong(messages: Any) -> str | None:
    """Why these messages cannot be sampled, or None. Each tool_use is answered by the very next message."""
    waiting: set[Any] = set()
    for message in cast("list[Any]", messages) if isinstance(messages, list) else []:
        if not isinstance(message, dict):
            return "a message is no object"
        blocks = _blocks(cast("dict[str, Any]", message))
        wrong = _wrong_answers(cast("dict[str, Any]", message), blocks, waiting)
        if wrong is not None:
            return wrong
        waiting = {str(block.get("id")) for block in blocks if block.get("type") == "tool_use"}
    return "a tool_use has no tool_result" if waiting else None


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    blocks = cast("list[Any]", content if isinstance(content, list) else [content])
    return [cast("dict[str, Any]", block) for block in blocks if isinstance(block, dict)]


def _wrong_answers(message: dict[str, Any], blocks: list[dict[str, Any]], waiting: set[Any]) -> str | None:
    """A message of results has nothing else, comes from the user and answers exactly what the last one used."""
    results = [str(block.get("toolUseId")) for block in blocks if block.get("type") == "tool_result"]
    if results and (len(results) != len(blocks) or message.get("role") != "user"):
        return "tool_result stands beside other content or not in a message of the user's"
    if waiting - set(results):
        return "a tool_use has no tool_result in the next message"
    return "a tool_result belongs to no tool_use" if set(results) - waiting else None
