"""A revision's row against its official schema: what exists, what does not, and nothing forgotten."""

from __future__ import annotations

from typing import Any

from interlock.revisions.revision import Revision
from support.schemas import Oracle

__all__ = ["check_row"]

# The experimental tasks of 2025-11-25 are not offered, so nothing of them stands in a row.
NOT_OFFERED = ("tasks/", "notifications/tasks/")
NEWEST = "2026-07-28"
# Where the members of each noun of ours are found in the schemas; several where a noun has several forms.
DEFINITIONS = {
    "Tool": ["Tool"],
    "CallToolResult": ["CallToolResult"],
    "Resource": ["Resource"],
    "ResourceTemplate": ["ResourceTemplate"],
    "ResourceContents": ["TextResourceContents", "BlobResourceContents"],
    "Prompt": ["Prompt"],
    "PromptArgument": ["PromptArgument"],
    "Implementation": ["Implementation"],
    "Content": ["TextContent", "ImageContent", "EmbeddedResource"],
    "PromptRef": ["PromptReference"],
}
# Nouns without a definition of their own in every revision: the way to their members.
PLACES = {
    "Annotations": ("TextContent", "annotations"),
    "Progress": ("ProgressNotification", "params"),
    "CompleteParams": ("CompleteRequest", "params"),
}
# Members of results that only the newest revision has; they are written as members of one noun, Result.
OF_RESULTS = {"resultType", "ttlMs", "cacheScope"}
BLOCKS = {"text", "image", "audio", "resource", "resource_link"}


def check_row(row: Revision) -> None:
    """Compare everything in `row` that its schema knows."""
    oracle = Oracle.load(row.name)
    _check_methods(row, oracle)
    _check_capabilities(row, oracle)
    _check_blocks(row, oracle)
    assert row.batches is oracle.batches
    for noun, definitions in DEFINITIONS.items():
        for definition in definitions:
            _check_members(row, noun, definition)
    for noun, path in PLACES.items():
        newest, here = (_members_at(Oracle.load(name), path) for name in (NEWEST, row.name))
        assert _unknown(row, noun) == newest - here - {"_meta"}, f"{noun} in {row.name}"


def _offered(methods: Any) -> set[str]:
    return {method for method in methods if not method.startswith(NOT_OFFERED)}


def _check_methods(row: Revision, oracle: Oracle) -> None:
    assert row.requests == _offered(oracle.requests("client"))
    assert row.client_notices == _offered(oracle.notifications("client"))
    assert row.server_notices == _offered(oracle.notifications("server"))
    definitions = oracle.document.definitions
    asked = _offered(oracle.requests("server")) - {"ping"}  # answered by the connection, nobody's question
    if "InputRequest" in definitions:  # asked by returning `input_required`
        branches = definitions["InputRequest"]["anyOf"]
        asked = {oracle.document.resolve(branch)["properties"]["method"]["const"] for branch in branches}
    assert set(row.questions) == asked
    assert set(row.questions.values()) <= row.client_capabilities


def _check_capabilities(row: Revision, oracle: Oracle) -> None:
    for name, declared in (
        ("ServerCapabilities", row.server_capabilities),
        ("ClientCapabilities", row.client_capabilities),
    ):
        known = set(oracle.document.definitions[name]["properties"]) - {"tasks"}
        # Extensions are declared by capability in 2025-11-25 already, beside its schema (an open set).
        assert declared - {"extensions"} == known - {"extensions"}
        assert known <= declared


def _check_blocks(row: Revision, oracle: Oracle) -> None:
    definitions = oracle.document.definitions
    kinds = {
        definition["properties"]["type"]["const"]
        for definition in definitions.values()
        if "const" in definition.get("properties", {}).get("type", {})
    }
    assert row.blocks == kinds & BLOCKS


def _check_members(row: Revision, noun: str, definition: str) -> None:
    newest = _members(Oracle.load(NEWEST), definition) - OF_RESULTS
    here = _members(Oracle.load(row.name), definition)
    unknown = _unknown(row, noun)
    if noun == "Content":
        unknown &= newest  # icons are a member of one kind of block only
    missing = newest - here
    if definition == "CallToolResult":
        missing -= {"_meta"}
    assert unknown == missing, f"{noun} in {row.name}"


def _unknown(row: Revision, noun: str) -> set[str]:
    return {pair.partition(".")[2] for pair in row.unknown if pair.startswith(noun + ".")}


def _members_at(oracle: Oracle, path: tuple[str, ...]) -> set[str]:
    found = oracle.document.definitions[path[0]]
    for member in path[1:]:
        found = oracle.document.resolve(found["properties"][member])
    return set(found["properties"])


def _members(oracle: Oracle, definition: str) -> set[str]:
    return set(oracle.document.definitions[definition]["properties"])
