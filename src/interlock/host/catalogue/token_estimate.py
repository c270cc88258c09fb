"""What a text costs a model, roughly: without a tokenizer, the same for every model, rather too much than too little.

Tokenizers differ, and none of them is worth a dependency for a budget. The estimate is of UTF-8 bytes: 3.5 bytes of
ASCII are one token (English prose has a little more than four of them, JSON about three), and two bytes of anything
else (a Chinese character has three bytes and one token or two, a Cyrillic letter two bytes and less than one, an emoji
four bytes and two or three tokens). Structured values are counted as their compact JSON. Base64 counts as the text it
is, which is far more than a picture costs: count pictures apart.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET

from ...wire.types.tools import Tool

__all__ = ["of_tool", "tokens"]

_ASCII = bytes(range(128))
_AROUND = 12  # tokens that a model's API puts around each tool: the words "name", "description", "parameters", …
_encode = msgspec.json.Encoder().encode


def tokens(value: Any) -> int:
    """The estimate for a text, or for any JSON value or noun; 0 for nothing."""
    data = value.encode("utf-8", "replace") if isinstance(value, str) else _encode(value)
    foreign = 0 if data.isascii() else len(data.translate(None, _ASCII))
    return -(-(2 * (len(data) - foreign)) // 7) + (foreign + 1) // 2


def of_tool(name: str, tool: Tool) -> int:
    """One tool as a model is told of it under this name: its description and its input schema. Its title, icons,
    annotations and output schema are not for models."""
    text = 0 if tool.description is UNSET else tokens(tool.description)
    return _AROUND + tokens(name) + text + tokens(tool.input_schema)
