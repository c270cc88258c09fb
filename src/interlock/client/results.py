"""What a caller gets back: typed where the specification types it, untouched where it does not."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from ..protocol.client.base import meta_of
from ..wire.errors import BadResult
from ..wire.json.lenient import members_of, read_as
from ..wire.types.content import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    ResourceContents,
    ResourceLink,
    TextContent,
)
from ..wire.types.prompts import PromptMessage

__all__ = ["CallResult", "PromptResult", "read_call", "read_prompt", "read_items", "read_contents"]

_BLOCKS: dict[str, type[msgspec.Struct]] = {
    "text": TextContent,
    "image": ImageContent,
    "audio": AudioContent,
    "resource": EmbeddedResource,
    "resource_link": ResourceLink,
}


class CallResult(msgspec.Struct):
    """What a tool gave. `content` holds blocks; one of a type unknown here stays a dict."""

    content: list[Any]
    structured: Any = None
    is_error: bool = False
    meta: dict[str, Any] = {}
    mismatch: str | None = None
    """Why `structured` does not fit the output schema that the tool was listed with, or could not be compared with
    it. Then it is no more than what the server said."""

    @property
    def text(self) -> str:
        """The text blocks, one below the other."""
        return "\n".join(block.text for block in self.content if isinstance(block, TextContent))


class PromptResult(msgspec.Struct):
    messages: list[PromptMessage]
    description: str | None = None
    meta: dict[str, Any] = {}


def read_call(result: dict[str, Any]) -> CallResult:
    content = result.get("content", [])
    if not isinstance(content, list):
        raise BadResult("tools/call: content is no array")
    return CallResult(
        [_block(each) for each in cast("list[Any]", content)],
        result.get("structuredContent"),
        result.get("isError") is True,
        meta_of(result),
    )


def read_prompt(result: dict[str, Any]) -> PromptResult:
    try:
        messages = read_as(result.get("messages"), list[PromptMessage])
    except msgspec.ValidationError as error:
        raise BadResult(f"prompts/get: {error}") from None
    for message in messages:
        message.content = _block(message.content)
    description = result.get("description")
    return PromptResult(messages, description if isinstance(description, str) else None, meta_of(result))


def read_contents(result: dict[str, Any]) -> list[ResourceContents]:
    return read_items(result, "contents", ResourceContents, "resources/read")


def read_items(result: dict[str, Any], member: str, kind: type[Any], method: str) -> list[Any]:
    try:
        return read_as(result.get(member), list[kind])
    except msgspec.ValidationError as error:
        raise BadResult(f"{method}: {error}") from None


def _block(value: Any) -> Any:
    """A block as its type; malformed ones and strangers are passed on as they came."""
    block = members_of(value)
    if block.get("type") == "resource" and "uri" in block and "resource" not in block:
        # Servers written from a summary link like this (handshake.md §16.13).
        block = {**block, "type": "resource_link", "name": str(block.get("name", block["uri"]))}
    name = block.get("type")
    kind = _BLOCKS.get(name) if isinstance(name, str) else None
    try:
        return read_as(block, kind) if kind else value
    except msgspec.ValidationError:
        return value
