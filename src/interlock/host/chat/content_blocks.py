"""What servers give, in the words a model is given: blocks of text, image and audio, each marked with where it is from.

What a server says is data. It is put into results of tools and into messages that name the server, and never as if the
user had said it. What servers say of themselves is not made here: host_tools.py marks it as theirs.

In descriptions everything is written out that cannot be seen (host/catalogue/invisible_text.py). Data is not a
description: joiners, marks of direction and odd blanks are spelling in many languages, and a model that writes a file
back must not change it. One of them, or two, say nothing by themselves; a longer run is a message that no person sees,
and is written out here, too."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from ...client.results import CallResult
from ...wire.escaping import display
from ...wire.lazy_regex import pattern
from ...wire.types.content import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    ResourceContents,
    ResourceLink,
    TextContent,
)
from ..models.model import CallPart

__all__ = ["contents_blocks", "failed_block", "prompt_blocks", "result_block", "text_block"]

Block = dict[str, Any]
_LONGEST_NAME = 200  # characters in a mark of ours; an address is whole up to what `display` allows
# Tag characters, zero-width and bidirectional ones, fillers, variation selectors. Not the one that makes an emoji of a
# sign (U+FE0F): it stands beside a joiner in many. Three flags are spelled in tag characters, and stay.
_FLAGS = "|".join(
    "\U0001f3f4" + "".join(chr(0xE0000 + ord(each)) for each in nation) + "\U000e007f"
    for nation in ("gbeng", "gbsct", "gbwls")
)
_UNSEEN = (
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e01ef"
)
_RUN = pattern(f"({_FLAGS})|[{_UNSEEN}]{{3,}}")


def text_block(text: str) -> Block:
    """What is said here: by the user, by the model, by the host."""
    return {"type": "text", "text": text}


def _given(text: str) -> Block:
    """What a server said. Written out as JSON writes it, so that JSON stays what it is."""
    if not text.isascii():
        text = _RUN.sub(lambda run: run[1] or json.dumps(run[0])[1:-1], text)
    return text_block(text)


def result_block(call: CallPart, result: CallResult) -> Block:
    """What a tool gave, as the answer to the model's call."""
    blocks = [block for each in result.content for block in _blocks(each)]
    if not blocks and result.structured is not None:
        blocks = [_given(msgspec.json.encode(result.structured).decode())]
    if result.mismatch:
        blocks.append(_given(f"[the structured part is not what the tool promised: {result.mismatch}]"))
    found: Block = {"type": "tool_result", "toolUseId": call.id, "content": blocks}
    return found | ({"isError": True} if result.is_error else {})


def failed_block(call: CallPart, because: str) -> Block:
    """A call that was not made, or did not come back."""
    return {"type": "tool_result", "toolUseId": call.id, "content": [_given(because)], "isError": True}


def contents_blocks(server: str, contents: Sequence[ResourceContents]) -> list[Block]:
    """A resource that the user attached."""
    return [block for each in contents for block in _contents(each, f" of the server {server!r}")]


def prompt_blocks(content: Any) -> list[Block]:
    """One message of a prompt."""
    return [*_blocks(content)]


def _blocks(block: Any) -> Iterable[Block]:
    match block:
        case TextContent():
            yield _given(block.text)
        case ImageContent() | AudioContent():
            kind = "image" if isinstance(block, ImageContent) else "audio"
            yield {"type": kind, "data": block.data, "mimeType": block.mime_type}
        case EmbeddedResource():
            yield from _contents(block.resource)
        case ResourceLink():
            name = display(block.name, _LONGEST_NAME)
            yield text_block(f"[a resource that can be read: {display(block.uri)} ({name})]")
        case _:
            yield _given(msgspec.json.encode(block).decode())


def _contents(found: ResourceContents, where: str = "") -> Iterable[Block]:
    kind = display(found.mime_type, _LONGEST_NAME) if isinstance(found.mime_type, str) else ""
    mark = f"resource {display(found.uri)}{where}"  # on one line, whatever the server called it
    if isinstance(found.text, str):
        yield _given(f"[{mark}]\n{found.text}")
    elif isinstance(found.blob, str) and kind.startswith(("image/", "audio/")):
        yield text_block(f"[{mark}]")
        yield {"type": kind.partition("/")[0], "data": found.blob, "mimeType": kind}
    else:
        yield text_block(f"[{mark}: {len(found.blob or '')} characters of base64, {kind}]")
