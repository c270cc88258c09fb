"""From what a tool returned to a CallToolResult: text, blocks, data with its text twin, or all of it by hand.

How a value is finished is decided at registration. A tool that declares no schema is finished by what comes; one that
does gives structured content that fits, or says plainly that it does not. By then the work is done, and what was done
must be told: content is never thrown away for its form.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import cache
from os import urandom
from typing import Any, cast

import msgspec
from msgspec import UNSET, Raw, UnsetType

from ...wire.escaping import display
from ...wire.exchange import Among, Result
from ...wire.json.reader import read_own_json
from ...wire.meta import OUTPUT_MISMATCH, check_author_keys
from .encoding import encode_data

__all__ = ["Check", "Finish", "ToolResult", "failed", "finisher", "result_of_value"]

log = logging.getLogger("interlock.server")
Finish = Callable[[Any], Result]
Check = Callable[[bytes], None]
"""Raises ValueError, with the reason, for encoded data that does not fit."""
_LONGEST_REASON = 300


class ToolResult(msgspec.Struct, kw_only=True):
    """All of a result, for authors who want to say all of it."""

    content: Any = UNSET
    """A text, a block, or a list of these; absent: the text twin of `structured`."""
    structured: Any = UNSET
    """Any JSON value; to clients that take only objects, another goes out as `{"result": value}` (shaping.py)."""
    is_error: bool = False
    meta: Mapping[str, Any] | UnsetType = UNSET


def finisher(
    name: str, schema: Mapping[str, Any] | None, check: Check | None, fill: Callable[[Any], None] | None = None
) -> Finish:
    """How the values of one tool become results."""
    if schema is None or check is None:
        return result_of_value
    is_object = schema.get("type") == "object"

    def finish(value: Any) -> Result:
        if fill is not None:
            fill(value.structured if type(value) is ToolResult else value)
        if type(value) is ToolResult:
            return _checked(name, value, check, is_object)
        data = encode_data(value)
        try:
            check(data)
        except ValueError as error:
            return _misfit(name, result_of_value(value), error)
        return {
            "content": [{"type": "text", "text": data.decode()}],
            "structuredContent": _structured(data, is_object),
        }

    return finish


def result_of_value(value: Any) -> Result:
    """What a tool without a schema returned, as the members of a CallToolResult."""
    if isinstance(value, str):
        return {"content": [{"type": "text", "text": value} if value.isascii() else _text(value)]}
    if value is None:
        return {"content": []}
    if isinstance(value, _blocks()[0]):
        return {"content": [_block(value)]}
    if type(value) is ToolResult:
        return _explicit(value)
    if isinstance(value, list | tuple) and (content := _content_of(cast("list[Any]", value))) is not None:
        return {"content": content}
    if isinstance(value, bytes | bytearray | memoryview):
        raise TypeError("a tool returned bytes: wrap them in Image, Audio or File")
    data = encode_data(value)
    result: Result = {"content": [{"type": "text", "text": data.decode()}]}
    if _is_record(value):
        result["structuredContent"] = Raw(data)  # the text is its twin for clients that know only text
    return result


def failed(text: str) -> Result:
    """A failure in words for the model."""
    return {"content": [{"type": "text", "text": text}], "isError": True}


# --- content ---


@cache
def _blocks() -> tuple[tuple[type, ...], Callable[[Any], Any]]:
    """What a block is, and what becomes of one: a server whose tools give texts starts without it."""
    from ..content import BLOCK_TYPES, block_of

    return BLOCK_TYPES, block_of


def _text(text: str) -> dict[str, str]:
    if not text.isascii():
        text.encode()  # half a surrogate pair is a bug of the tool, not of the wire
    return {"type": "text", "text": text}


def _content_of(values: list[Any]) -> list[Any] | None:
    """A list that holds texts alone, or a block among other things; None: it is data."""
    if not values:
        return None
    kinds = _blocks()[0]
    if any(isinstance(value, kinds) for value in values):
        return [_block(value) for value in values]
    return [_text(value) for value in values] if all(isinstance(value, str) for value in values) else None


def _block(value: Any) -> Any:
    """A block, a text, or the text of any other value beside blocks."""
    kinds, block_of = _blocks()
    if isinstance(value, kinds):
        return block_of(value)
    return _text(value if isinstance(value, str) else encode_data(value).decode())


def _is_record(value: Any) -> bool:
    kind = cast("type[Any]", type(value))
    if issubclass(kind, Mapping | msgspec.Struct):
        return True
    return any(hasattr(kind, mark) for mark in ("__dataclass_fields__", "__attrs_attrs__", "model_dump"))


# --- results by hand ---


def _explicit(given: ToolResult) -> Result:
    """Just what the author said; data without content gets its text twin."""
    result: Result = {}
    data = encode_data(given.structured) if given.structured is not UNSET else None
    if given.content is UNSET:
        result["content"] = [{"type": "text", "text": data.decode()}] if data is not None else []
    else:
        items: Any = given.content
        items = cast("list[Any]", items) if isinstance(items, list | tuple) else [items]
        result["content"] = [_block(item) for item in items]
    if data is not None:
        result["structuredContent"] = Raw(data)
    if given.is_error:
        result["isError"] = True
    if given.meta is not UNSET and given.meta:
        check_author_keys(given.meta)
        result["_meta"] = dict(given.meta)
    return result


def _checked(name: str, given: ToolResult, check: Check, is_object: bool) -> Result:
    """A result by hand of a tool that declares a schema; a failure owes no data (the SDKs judge it alike)."""
    result = _explicit(given)
    if given.is_error:
        return result
    try:
        if given.structured is UNSET:
            raise ValueError("there is no structured content")
        data = bytes(result["structuredContent"])
        check(data)
        result["structuredContent"] = _structured(data, is_object)
    except ValueError as error:
        return _misfit(name, result, error)
    return result


def _structured(data: bytes, is_object: bool) -> Any:
    """The data; marked where its tool may also give what is no object, and this time gave one."""
    return Raw(data) if is_object or data[:1] != b"{" else Among(read_own_json(data))


def _misfit(name: str, result: Result, error: ValueError) -> Result:
    """Data that does not fit what the tool declares.

    Clients refuse such structured content and lose all of the result with it, so it goes out as text, whole, marked as
    an error with the reason; and since the tool has run, the model is told so.
    """
    reason = display(str(error), _LONGEST_REASON)
    reference = urandom(4).hex()
    log.error("! tool %s gave a result that does not fit its output schema (reference %s): %s", name, reference, reason)
    told = f"The tool {name} has done its work and gave the result above, which does not fit its output schema"
    note = {
        "type": "text",
        "text": f"{told}: {reason} (reference {reference}). Calling it again may do the work twice.",
    }
    meta: dict[str, Any] = {**result.get("_meta", {}), OUTPUT_MISMATCH: reason}
    return {"content": [*result["content"], note], "isError": True, "_meta": meta}
