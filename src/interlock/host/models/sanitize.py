"""What services refuse, made to fit before it is sent: pictures, names of tools and their schemas.

A request is refused as a whole, and a conversation is sent as a whole each time: one picture of a kind that a service
does not know, or one tool of one server with a schema it does not like, and no later request would go through. So what
does not fit becomes words that say what was there.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Any, cast

import msgspec

from ...wire.lazy_regex import pattern
from .model import Message, ModelTool, blocks_of
from .parsing import members_of

__all__ = ["Names", "fit_id", "fit_tool", "is_blank", "joined", "picture_type", "sound_type"]

_NAME = pattern(r"[A-Za-z0-9_-]{1,64}")
_KEY = pattern(r"[A-Za-z0-9_.-]{1,64}")
_ODD = pattern(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64
_LARGEST = 5 * 1024 * 1024  # characters of base64 of one picture, the smaller of the bounds of both services
_NOT_AT_THE_TOP = ("oneOf", "anyOf", "allOf", "not", "enum")
_LONGEST_RULE = 2_000
_PICTURES = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))
_SOUNDS = {"wav": "wav", "x-wav": "wav", "wave": "wav", "mpeg": "mp3", "mp3": "mp3"}
_BEGINNING = {"type": "text", "text": "[the conversation begins with the words of the assistant]"}


def joined(messages: Sequence[Message]) -> list[Message]:
    """The same with the roles in turns and the user first, as some services and the templates of many local models
    want it, and without texts of nothing, which are refused."""
    found: list[dict[str, Any]] = []
    for message in messages:
        blocks = [block for block in blocks_of(message) if not is_blank(block)]
        if blocks and found and found[-1]["role"] == message["role"]:
            found[-1]["content"] += blocks
        elif blocks:
            found.append({"role": message["role"], "content": blocks})
    if not found or found[0]["role"] != "user":
        found.insert(0, {"role": "user", "content": [_BEGINNING]})
    return [*found]


def is_blank(block: Mapping[str, Any]) -> bool:
    return block.get("type") == "text" and not block["text"].strip()


def picture_type(block: Mapping[str, Any]) -> str | None:
    """The media type that its bytes have, whatever is said about them; None for what no service takes."""
    data = block["data"]
    if len(data) > _LARGEST:
        return None
    try:
        head = b64decode(data, validate=True)[:12]
    except ValueError:
        return None
    if head.startswith(b"RIFF") and head.endswith(b"WEBP"):
        return "image/webp"
    return next((kind for start, kind in _PICTURES if head.startswith(start)), None)


def sound_type(block: Mapping[str, Any]) -> str | None:
    """`wav` or `mp3`; None for what no service takes."""
    main, _, form = block["mimeType"].partition(";")[0].strip().lower().partition("/")
    return _SOUNDS.get(form) if main == "audio" else None


# --- tools ----------------------------------------------------------------------------------------


class Names:
    """The names of tools as services take them, and back. Tools of a host have such names; those in a request of a
    server for sampling, and those that a model made up, may have any."""

    def __init__(self, tools: Iterable[ModelTool]) -> None:
        self._out: dict[str, str] = {}
        self._back: dict[str, str] = {}
        for name in sorted((tool.name for tool in tools), key=lambda name: not _NAME.fullmatch(name)):
            shown = next(each for each in _candidates(name) if each not in self._back)
            self._out[name], self._back[shown] = shown, name

    def out(self, name: str) -> str:
        return self._out.get(name) or next(iter(_candidates(name)))

    def back(self, name: str) -> str:
        return self._back.get(name, name)


def _candidates(name: str) -> Iterable[str]:
    """The name itself where it can be shown, and others that are like it."""
    plain = fit_id(name)
    yield plain[:_LONGEST_NAME]
    for number in count(2):
        yield f"{plain[: _LONGEST_NAME - 8]}_{number}"


def fit_id(text: str) -> str:
    return _ODD.sub("_", text) or "unknown"


def fit_tool(tool: ModelTool, names: Names, *, plain_keys: bool = False) -> ModelTool:
    """Of an object type, and without what may not stand at the top of a schema: that is put into words."""
    schema, rules = _plain_schema(tool.input_schema, plain_keys)
    told = [tool.description, *(f"The arguments must also fit: {rule}" for rule in rules)]
    description = "\n".join(part for part in told if part)
    return ModelTool(name=names.out(tool.name), description=description, input_schema=schema)


def _plain_schema(schema: Mapping[str, Any], plain_keys: bool) -> tuple[dict[str, Any], list[str]]:
    moved = {name: schema[name] for name in _NOT_AT_THE_TOP if name in schema}
    found = {name: value for name, value in schema.items() if name not in moved} | {"type": "object"}
    properties = {**_properties(moved), **members_of(schema.get("properties"))}
    odd = {key: value for key, value in properties.items() if plain_keys and not _KEY.fullmatch(key)}
    found["properties"] = {key: value for key, value in properties.items() if key not in odd}
    if odd:
        moved["properties"] = odd
        found["required"] = [key for key in schema.get("required") or () if key not in odd]
    rule = msgspec.json.encode(moved).decode()[:_LONGEST_RULE]
    return found, [rule] if moved else []


def _properties(moved: Mapping[str, Any]) -> dict[str, Any]:
    """What the branches of a choice name."""
    found: dict[str, Any] = {}
    for name in ("oneOf", "anyOf", "allOf"):
        branches: Any = moved.get(name)
        for branch in cast("list[Any]", branches) if isinstance(branches, list) else ():
            found = {**members_of(branch, "properties"), **found}
    return found
