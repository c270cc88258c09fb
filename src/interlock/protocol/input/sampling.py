"""What sampling asks with, and how its messages follow one another when tools were used (client/sampling).

Both sides use it: a server before it asks, a client before it lets itself be asked.
"""

from __future__ import annotations

from binascii import a2b_base64
from collections.abc import Mapping
from typing import Any, cast

from ...wire.json.lenient import is_number, items_of, members_of, one_or_more

__all__ = ["what_is_wrong", "what_is_wrong_in", "what_is_wrong_with"]

_ROLES = ("user", "assistant")


def what_is_wrong_in(params: Mapping[str, Any]) -> str | None:
    """Why a client does not put this to a model, or None. In every revision it holds messages and maxTokens."""
    messages, most = params.get("messages"), params.get("maxTokens")
    if not isinstance(messages, list):
        return "messages is no list"
    if not is_number(most) or most != most // 1:
        return "maxTokens is no integer"
    if not all(_is_message(message) for message in cast("list[Any]", messages)):
        return "a message has no role of user or assistant, or no content"
    return what_is_wrong(messages)


def _is_message(message: Any) -> bool:
    members = members_of(message)
    blocks = one_or_more(members.get("content"))
    return members.get("role") in _ROLES and all(isinstance(block, dict) for block in blocks)


def what_is_wrong(messages: Any) -> str | None:
    """Why these messages cannot be sampled, or None. Each tool_use is answered by the very next message."""
    waiting: set[Any] = set()
    for message in items_of(messages):
        if not isinstance(message, dict):
            return "a message is no object"
        blocks = _blocks(cast("dict[str, Any]", message))
        wrong = _wrong_blocks(blocks) or _wrong_answers(cast("dict[str, Any]", message), blocks, waiting)
        if wrong is not None:
            return wrong
        waiting = {str(block.get("id")) for block in blocks if block.get("type") == "tool_use"}
    return "a tool_use has no tool_result" if waiting else None


def _blocks(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    blocks = one_or_more(message.get("content"))
    return [cast("dict[str, Any]", block) for block in blocks if isinstance(block, dict)]


def what_is_wrong_with(sampled: Mapping[str, Any]) -> str | None:
    """Why this is no message that a model wrote, as far as its content tells, or None."""
    return _wrong_blocks(_blocks(sampled))


def _wrong_blocks(blocks: list[dict[str, Any]]) -> str | None:
    """Both sides look at what is inside (client/sampling#security-considerations): it goes to a model, or to a tool."""
    for block in blocks:
        kind = block.get("type")
        if not isinstance(kind, str):
            return "a block has no type"
        if kind in _OF_TOOLS and (wrong := _OF_TOOLS[kind](block)):
            return wrong
        if kind == "text" and not isinstance(block.get("text"), str):
            return "a block of text has no text"
        if kind in ("image", "audio") and not isinstance(block.get("mimeType"), str):
            return f"a block of {kind} does not say what kind of data it holds"
        if kind in ("image", "audio") and not _is_base64(block.get("data")):
            return f"the data of a block of {kind} is no base64"
    return None


def _wrong_use(block: dict[str, Any]) -> str | None:
    if not all(isinstance(block.get(name), str) for name in ("id", "name")):
        return "a tool_use has no id or no name"
    return None if isinstance(block.get("input"), dict) else "the input of a tool_use is no object"


def _wrong_result(block: dict[str, Any]) -> str | None:
    if not isinstance(block.get("toolUseId"), str):
        return "a tool_result does not say what it belongs to"
    content: Any = block.get("content")
    if not isinstance(content, list) or not all(isinstance(each, dict) for each in cast("list[Any]", content)):
        return "the content of a tool_result is no list of blocks"
    return _wrong_blocks(cast("list[dict[str, Any]]", content))


_OF_TOOLS = {"tool_use": _wrong_use, "tool_result": _wrong_result}


def _is_base64(data: Any) -> bool:
    if not isinstance(data, str):
        return False
    try:
        a2b_base64(data, strict_mode=bool(data))  # an empty one is too short for it
    except ValueError:  # also of characters beside ASCII
        return False
    return True


def _wrong_answers(message: dict[str, Any], blocks: list[dict[str, Any]], waiting: set[Any]) -> str | None:
    """A message of results has nothing else, comes from the user and answers exactly what the last one used."""
    results = [str(block.get("toolUseId")) for block in blocks if block.get("type") == "tool_result"]
    if results and (len(results) != len(blocks) or message.get("role") != "user"):
        return "tool_result stands beside other content or not in a message of the user's"
    if waiting - set(results):
        return "a tool_use has no tool_result in the next message"
    return "a tool_result belongs to no tool_use" if set(results) - waiting else None
