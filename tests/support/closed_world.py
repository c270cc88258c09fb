"""What a revision's schema does not name: the leaks that open JSON Schema objects let pass.

    leaks(peer.transcript)        # every member of a server's frames that its revision has no word for

The official schemas allow unknown members nearly everywhere. Here they are read the other way round: a member
that no alternative of the definition names is a leak, unless the place is open by meaning (`_meta`, a tool's own
schemas and data, experimental capabilities).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from support.schema_source import Schema
from support.schemas import Oracle, SchemaViolation, Sender
from support.transcripts import Pairing, Transcript

__all__ = ["leaks", "unnamed"]

# Their inside belongs to authors, not to the revision. `extensions` came with 2026-07-28; the handshake
# carries it as an additional capability (CAP-08, extensions.md), which is for the tests of CAP to judge.
OPEN = frozenset({"_meta", "inputSchema", "outputSchema", "structuredContent", "experimental", "extensions"})
FRAME_MEMBERS = frozenset({"jsonrpc", "id", "method", "params", "result", "error"})
ERROR_MEMBERS = frozenset({"code", "message", "data"})


def leaks(transcript: Transcript, sender: Sender = "server") -> list[str]:
    """Every member in the frames of `sender` that the transcript's revision does not name."""
    oracle = Oracle.load(transcript.revision)
    pairing = Pairing()
    found: list[str] = []
    for entry in transcript.entries:
        for frame, answers in pairing.take(entry):
            if entry.sender == sender and isinstance(frame, dict):
                found += _in_frame(oracle, frame, sender, answers)
    return found


def _in_frame(oracle: Oracle, frame: Schema, sender: Sender, answers: str | None) -> Iterator[str]:
    yield from (f"frame: {name}" for name in frame.keys() - FRAME_MEMBERS)
    if "method" in frame:
        known = {**oracle.requests(sender), **oracle.notifications(sender)}
        method = frame["method"]
        if method not in known:
            yield f"method {method}"
        else:
            yield from (f"{method} {path}" for path in unnamed(oracle, known[method], frame))
    elif "error" in frame:
        yield from (f"error: {name}" for name in frame["error"].keys() - ERROR_MEMBERS)
    elif answers is not None:
        definition = oracle.result_definitions(answers, sender)[0]
        if definition != "Result":  # the method of an author: its result is the author's too
            yield from (f"{answers} {path}" for path in unnamed(oracle, definition, frame["result"]))


def unnamed(oracle: Oracle, definition: str, value: Any) -> list[str]:
    """The paths of all members of `value` that the definition and what it refers to do not name."""
    return list(_walk(oracle, oracle.document.reference(definition), value, ""))


def _walk(oracle: Oracle, schema: Schema, value: Any, path: str) -> Iterator[str]:
    schema = _whole(oracle, _alternative(oracle, schema, value))
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _walk(oracle, schema.get("items", {}), item, f"{path}/{index}")
    elif isinstance(value, dict) and schema.get("properties"):
        for name, member in value.items():
            if name in OPEN:
                continue
            if name in schema["properties"]:
                yield from _walk(oracle, schema["properties"][name], member, f"{path}/{name}")
            elif name not in ("jsonrpc", "id"):  # older definitions describe a call without its envelope
                yield f"{path}/{name}"
    elif isinstance(value, dict) and isinstance(schema.get("additionalProperties"), dict):
        for name, member in value.items():
            yield from _walk(oracle, schema["additionalProperties"], member, f"{path}/{name}")


def _alternative(oracle: Oracle, schema: Schema, value: Any) -> Schema:
    """Of several alternatives the one whose constants (a block's `type`) and required members fit."""
    schema = oracle.document.resolve(schema)
    branches = schema.get("anyOf") or schema.get("oneOf")
    if not branches or not isinstance(value, dict):
        return schema
    for branch in branches:
        resolved = _whole(oracle, oracle.document.resolve(branch))
        members = resolved.get("properties", {})
        constants = {name: part["const"] for name, part in members.items() if "const" in part}
        if constants.items() <= value.items() and set(resolved.get("required", ())) <= value.keys():
            return _alternative(oracle, branch, value)
    raise SchemaViolation(f"fits none of the alternatives: {value!r:.200}")


def _whole(oracle: Oracle, schema: Schema) -> Schema:
    """A definition with everything that its `allOf` adds."""
    whole = dict(schema)
    for part in schema.get("allOf", ()):
        part = _whole(oracle, oracle.document.resolve(part))
        whole["properties"] = {**part.get("properties", {}), **whole.get("properties", {})}
        whole["required"] = [*part.get("required", ()), *whole.get("required", ())]
    return whole
