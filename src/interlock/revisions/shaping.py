"""Making a result fit the peer's revision: drop what it cannot know, rewrite what it cannot show.

A result is walked by the table of nouns below. What a revision does not know stands in its row; a walk that would
change nothing is not made at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, cast

import msgspec

from ..wire.errors import InvalidParams
from ..wire.exchange import Among, BadArguments, Result
from ..wire.json.reader import read_own_json
from ..wire.messages import encode
from ..wire.meta import SERVER_INFO
from ..wire.methods import METHODS
from .revision import Revision

__all__ = ["shape_result", "shape_noun", "plain"]

Walk = Callable[[Any], Any]

RESULT_NOUN = {
    "tools/list": "ToolList",
    "tools/call": "CallToolResult",
    "resources/list": "ResourceList",
    "resources/templates/list": "TemplateList",
    "resources/read": "ReadResult",
    "prompts/list": "PromptList",
    "prompts/get": "GetPromptResult",
}

PARTS: dict[str, dict[str, str]] = {
    "ToolList": {"tools": "Tool"},
    "CallToolResult": {"content": "Content"},
    "Content": {"annotations": "Annotations", "resource": "ResourceContents"},
    "ResourceList": {"resources": "Resource"},
    "Resource": {"annotations": "Annotations"},
    "TemplateList": {"resourceTemplates": "ResourceTemplate"},
    "ResourceTemplate": {"annotations": "Annotations"},
    "ReadResult": {"contents": "ResourceContents"},
    "PromptList": {"prompts": "Prompt"},
    "Prompt": {"arguments": "PromptArgument"},
    "GetPromptResult": {"messages": "PromptMessage"},
    "PromptMessage": {"content": "Content"},
}
_EVERY_BLOCK = frozenset({"text", "image", "audio", "resource", "resource_link"})
_WRAPPED = "result"
_OF_ROOTS = ("$schema", "$defs")
_NONE = object()
_NEWEST_MEMBERS = ("resultType", "ttlMs", "cacheScope")
_PERHAPS_UNKNOWN = frozenset({*_NEWEST_MEMBERS, "_meta"})


def shape_result(revision: Revision, method: str, result: Result) -> Result:
    """`result` in the words of `revision`; a fresh dict where anything differs."""
    is_untouched, shape = shaper(revision, method if method in METHODS else "")
    return result if is_untouched(result) else shape(result)


@cache
def shaper(revision: Revision, method: str) -> tuple[Callable[[Result], bool], Walk]:
    """What is done to the results of one method, decided once, and for which results it need not be done at all.

    The methods of authors, which may have any name, are all "".
    """
    official = method in METHODS
    steps: list[Walk] = []
    if not revision.tells_arguments and method == "tools/call":
        steps.append(_refuse_bad_arguments)
    if "Result.resultType" in revision.unknown:
        # Of an author's own method only the identity is ours: nobody else knows what its members mean.
        steps.append(_without_newest_members if official else _without_identity)
    if not revision.any_output and method in _OBJECTS_ONLY:
        steps.append(_OBJECTS_ONLY[method])
    if walk := _walk(revision, RESULT_NOUN.get(method, "")):
        steps.append(walk)

    return _one_after_the_other(steps)


def _one_after_the_other(steps: list[Walk]) -> tuple[Callable[[Result], bool], Walk]:
    looked_at = [_LOOKED_AT.get(step) for step in steps]
    known = [members for members in looked_at if members is not None]
    is_untouched = frozenset[str]().union(*known).isdisjoint if len(known) == len(steps) else _never

    def shape(result: Any) -> Any:
        for step in steps:
            result = step(result)
        return result

    return is_untouched, shape


def _never(result: Any) -> bool:
    return False


def _refuse_bad_arguments(result: Result) -> Result:
    """A protocol error before 2025-11-25 (2025-06-18 server/tools#error-handling)."""
    if type(result) is BadArguments:
        raise InvalidParams(f"Invalid params: {_first_text(result)}")
    return result


def _first_text(result: Mapping[str, Any]) -> str:
    """What a result tells; an author may have rewritten it (`sanitize=`)."""
    blocks: Any = result.get("content")
    for block in cast("list[Any]", blocks) if isinstance(blocks, list) else []:
        if isinstance(block, dict) and isinstance(text := cast("dict[str, Any]", block).get("text"), str):
            return text
    return "the arguments do not fit the tool's input schema"


def shape_noun(revision: Revision, noun: str, value: Any) -> Any:
    """One noun, for example `Implementation` or `Progress`, in the words of `revision`."""
    walk = _walk(revision, noun)
    return walk(value) if walk else value


def plain(value: Any) -> Any:
    """Raw bytes and nouns, at any depth, as dicts, lists and scalars."""
    return read_own_json(value if isinstance(value, msgspec.Raw) else encode(value))


def _with_object_output(result: Result) -> Result:
    """Structured output is an object before 2026-07-28; any other value goes out as the `result` of one."""
    given = result.get("structuredContent", _NONE)
    if given is not _NONE and (type(given) is Among or not _is_object(given)):
        return {**result, "structuredContent": {_WRAPPED: given}}
    return result


def _with_object_schemas(result: Result) -> Result:
    """And so is its schema."""
    if isinstance(result.get("tools"), msgspec.Raw):
        result = {**result, "tools": plain(result["tools"])}
    if "tools" in result and any(not _has_object_output(tool) for tool in result["tools"]):
        result = {**result, "tools": [_with_object_schema(tool) for tool in result["tools"]]}
    return result


_OBJECTS_ONLY: dict[str, Walk] = {"tools/call": _with_object_output, "tools/list": _with_object_schemas}


def _with_object_schema(tool: Any) -> Any:
    if _has_object_output(tool):
        return tool
    members = cast("dict[str, Any]", plain(tool))
    schema = _wrapped_schema(members.pop("outputSchema"))
    return members if schema is None else {**members, "outputSchema": schema}


def _wrapped_schema(schema: dict[str, Any]) -> dict[str, Any] | None:
    """The schema of `{"result": value}`, its definitions still at the root; None where a pointer would miss its aim."""
    raised = {name: schema[name] for name in _OF_ROOTS if name in schema} if "$id" not in schema else {}
    inner = {name: value for name, value in schema.items() if name not in raised}
    if "$id" not in schema and not all(_stays_valid(each) for each in _pointers(inner | raised)):
        return None
    return {"type": "object", "properties": {_WRAPPED: inner}, "required": [_WRAPPED], **raised}


def _pointers(node: Any) -> list[str]:
    if isinstance(node, list):
        return [each for part in cast("list[Any]", node) for each in _pointers(part)]
    if not isinstance(node, dict):
        return []
    members = cast("dict[str, Any]", node)
    own = [members[name] for name in ("$ref", "$dynamicRef") if isinstance(members.get(name), str)]
    return own + [each for part in members.values() for each in _pointers(part)]


def _stays_valid(pointer: str) -> bool:
    """Does it still find its aim one level deeper? Anchors and what is raised with the root do."""
    return pointer.startswith("#/$defs/") or (not pointer.startswith("#/") and pointer != "#")


def _is_object(value: Any) -> bool:
    if isinstance(value, msgspec.Raw):
        return bytes(value).lstrip()[:1] == b"{"
    return isinstance(value, dict | msgspec.Struct)


def _has_object_output(tool: Any) -> bool:
    members = cast("dict[str, Any]", tool)
    schema = members.get("outputSchema") if isinstance(tool, dict) else getattr(tool, "output_schema", None)
    return not isinstance(schema, dict) or cast("dict[str, Any]", schema).get("type") == "object"


def _without_newest_members(result: Result) -> Result:
    if _PERHAPS_UNKNOWN.isdisjoint(result):
        return result
    kept = result.copy()
    for member in _NEWEST_MEMBERS:
        kept.pop(member, None)
    return _without_identity(kept)


def _without_identity(result: Result) -> Result:
    meta = result.get("_meta")
    if not meta or SERVER_INFO not in meta:
        return result
    kept = result.copy()
    if len(meta) > 1:
        kept["_meta"] = {key: value for key, value in meta.items() if key != SERVER_INFO}
    else:
        del kept["_meta"]
    return kept


_LOOKED_AT: dict[Walk, frozenset[str]] = {
    _without_newest_members: _PERHAPS_UNKNOWN,
    _without_identity: frozenset({"_meta"}),
    _with_object_output: frozenset({"structuredContent"}),
    _with_object_schemas: frozenset({"tools"}),
}
"""The members that a step looks at: it leaves a result without them alone."""


@cache
def _walk(revision: Revision, noun: str) -> Walk | None:
    """The walk through one noun, or None where `revision` knows all of it."""
    dropped = frozenset(pair.partition(".")[2] for pair in revision.unknown if pair.startswith(noun + "."))
    inner = {member: part_walk for member, part in PARTS.get(noun, {}).items() if (part_walk := _walk(revision, part))}
    rewrites = noun == "Content" and not revision.blocks >= _EVERY_BLOCK
    if not dropped and not inner and not rewrites:
        return None

    def walk(value: Any) -> Any:
        if type(value) is not dict and type(value) is not list:
            value = plain(value)
        if isinstance(value, list):
            return [walk(item) for item in cast("list[Any]", value)]
        if not isinstance(value, dict):
            return value
        members = cast("dict[str, Any]", value)
        if rewrites and members.get("type") not in revision.blocks:
            members = _as_text(members)
        return {
            member: inner[member](item) if member in inner else item
            for member, item in members.items()
            if member not in dropped
        }

    return walk


def _as_text(block: dict[str, Any]) -> dict[str, Any]:
    """A block the peer has no type for, described in a text block (handshake.md §15.3)."""
    kind = block.get("type")
    if kind == "resource_link":
        parts = [str(block.get("title") or block.get("name") or "resource"), str(block.get("uri", ""))]
        text = ": ".join(part for part in parts if part)
    else:
        text = f"[{kind} content of type {block.get('mimeType', 'unknown')}, not supported by this protocol revision]"
    shaped: dict[str, Any] = {"type": "text", "text": text}
    if "annotations" in block:
        shaped["annotations"] = block["annotations"]
    return shaped
