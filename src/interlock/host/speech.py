"""What servers give, in the words a model is given: blocks of text, image and audio, each marked with where it is from.

What a server says is data. It is put into results of tools and into messages that name the server, and never as if the
user had said it. What servers say of themselves is not made here: host_tools.py marks it as theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from ..client.results import CallResult
from ..wire.types.content import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    ResourceContents,
    ResourceLink,
    TextContent,
)
from .models.model import CallPart

__all__ = ["contents_blocks", "failed_block", "prompt_blocks", "result_block", "text_block"]

Block = dict[str, Any]


def text_block(text: str) -> Block:
    return {"type": "text", "text": text}


def result_block(call: CallPart, result: CallResult) -> Block:
    """What a tool gave, as the answer to the model's call."""
    blocks = [block for each in result.content for block in _blocks(each)]
    if not blocks and result.structured is not None:
        blocks = [text_block(msgspec.json.encode(result.structured).decode())]
    if result.mismatch:
        blocks.append(text_block(f"[the structured part is not what the tool promised: {result.mismatch}]"))
    found: Block = {"type": "tool_result", "toolUseId": call.id, "content": blocks}
    return found | ({"isError": True} if result.is_error else {})


def failed_block(call: CallPart, because: str) -> Block:
    """A call that was not made, or did not come back."""
    return {"type": "tool_result", "toolUseId": call.id, "content": [text_block(because)], "isError": True}


def contents_blocks(server: str, contents: Sequence[ResourceContents]) -> list[Block]:
    """A resource that the user attached."""
    return [block for each in contents for block in _contents(each, f" of the server {server!r}")]


def prompt_blocks(content: Any) -> list[Block]:
    """One message of a prompt."""
    return [*_blocks(content)]


def _blocks(block: Any) -> Iterable[Block]:
    match block:
        case TextContent():
            yield text_block(block.text)
        case ImageContent() | AudioContent():
            kind = "image" if isinstance(block, ImageContent) else "audio"
            yield {"type": kind, "data": block.data, "mimeType": block.mime_type}
        case EmbeddedResource():
            yield from _contents(block.resource)
        case ResourceLink():
            yield text_block(f"[a resource that can be read: {block.uri} ({block.name})]")
        case _:
            yield text_block(msgspec.json.encode(block).decode())


def _contents(found: ResourceContents, where: str = "") -> Iterable[Block]:
    kind = found.mime_type if isinstance(found.mime_type, str) else ""
    if isinstance(found.text, str):
        yield text_block(f"[resource {found.uri}{where}]\n{found.text}")
    elif isinstance(found.blob, str) and kind.startswith(("image/", "audio/")):
        yield text_block(f"[resource {found.uri}{where}]")
        yield {"type": kind.partition("/")[0], "data": found.blob, "mimeType": kind}
    else:
        yield text_block(f"[resource {found.uri}{where}: {len(found.blob or '')} characters of base64, {kind}]")
