"""How messages of sampling follow one another when tools were used in them (client/sampling#message-constraints).

Both sides use it: a server before it asks, a client before it lets itself be asked.
"""

from __future__ import annotations

from typing import Any, cast

__all__ = ["what_is_wrong"]


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
