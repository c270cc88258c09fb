"""The facts of tests/schemas against a second source: the wire models of `mcp-types`."""

from __future__ import annotations

import re
import types
from collections.abc import Iterator
from typing import Any

import pytest

from support import packaged_schema
from support.packaged_schema import PACKAGED, load_packaged_document
from support.schema_notation import COMBINERS, CONSTRAINTS, STEPS
from support.schema_source import Document, load_document, repair

Fact = tuple[str, Any]  # a path inside a definition, and what holds there

ABSENT = {"2026-07-28": {"SubscriptionsListenResultMetaObject", "SubscriptionsListenResultResponse"}}
# Where the models of the package accept more than the official schema does.
LOOSER = {
    "2025-11-25": {r"/(in|out)putSchema/properties/\{\}$", r"/requestedSchema/properties/\{\}"},
    "2026-07-28": {r"/requestedSchema/properties/\{\}", r"/io\.modelcontextprotocol/serverInfo"},
}


def list_facts(document: Document, schema: Any, path: str = "") -> Iterator[Fact]:
    """Members, types, constants and bounds at every path below a schema, alternatives side by side.

    `format` is left out (the package has none), and so is the inside of JSONValue, which contains itself.
    """
    name = document.referred(schema)
    if name == "JSONValue":
        yield path, name
    elif name is not None:
        yield from list_facts(document, document.definitions[name], path)
    kinds = schema.get("type", [])
    yield from ((path, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds))
    for key in schema.keys() & CONSTRAINTS - {"format"}:
        yield path, (key, frozenset(schema[key]) if key == "enum" else schema[key])
    for member, part in schema.get("properties", {}).items():
        yield f"{path}/{member}", "required" if member in schema.get("required", ()) else "optional"
        yield from list_facts(document, part, f"{path}/{member}")
    for step, key in STEPS.items():
        if schema.get(key, True) is not True:
            yield from list_facts(document, schema[key], f"{path}/{step}")
    for key in COMBINERS.values():
        for part in schema.get(key, ()):
            yield from list_facts(document, part, path)


def collect_facts(document: Document, name: str) -> set[Fact]:
    found = set(list_facts(document, document.definitions[name]))
    return found - {(path, "optional") for path, fact in found if fact == "required"}  # `allOf` may add the duty


@pytest.mark.parametrize("revision", PACKAGED)
def test_both_sources_say_the_same(revision: str):
    ours, theirs = load_document(revision), load_packaged_document(revision)
    repair(theirs)
    assert ours.definitions.keys() - theirs.definitions.keys() == ABSENT.get(revision, set())
    differences, excused = [], set()
    for name in ours.definitions.keys() & theirs.definitions.keys():
        for path, fact in collect_facts(ours, name) ^ collect_facts(theirs, name):
            reasons = {pattern for pattern in LOOSER[revision] if re.search(pattern, path)}
            excused |= reasons
            if not reasons:
                differences.append(f"{name}{path}: {fact}")
    assert sorted(differences) == []
    assert excused == LOOSER[revision]


def collect_changed(**members: Any) -> set[Fact]:
    """The facts of a definition with two members, one of them as given."""
    properties = {"name": {"type": "string"}, "size": {"type": "integer", "minimum": 0}} | members
    schema = {"type": "object", "properties": properties, "required": ["name"]}
    return collect_facts(Document("test", "", {"A": schema, "B": {"type": "string"}}), "A")


@pytest.mark.parametrize(
    "members",
    [
        {"name": {"type": "number"}},
        {"name": {"type": ["string", "null"]}},
        {"name": {"type": "string", "const": "a"}},
        {"size": {"type": "integer", "minimum": 1}},
        {"size": {"type": "integer"}},
        {"more": {}},
        {"size": {"type": "array", "items": {"type": "integer"}}},
        {"size": {"anyOf": [{"type": "integer", "minimum": 0}, {"$ref": "#/$defs/B"}]}},
    ],
)
def test_every_change_is_a_difference(members: dict[str, Any]):
    assert collect_changed(**members) != collect_changed()


def test_absent_is_not_null():
    schema: dict[str, Any] = {
        "properties": {
            "a": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
            "b": {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}], "default": None},
            "c": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "allOf": [{"properties": {"d": {"anyOf": [{}, {"type": "null"}], "default": None}}}],
    }
    packaged_schema.forbid_explicit_null(schema)
    assert schema["properties"]["a"] == {"type": "string"}
    assert schema["properties"]["b"] == {"anyOf": [{"type": "string"}, {"type": "integer"}]}
    assert schema["properties"]["c"]["anyOf"][1] == {"type": "null"}
    assert schema["allOf"][0]["properties"]["d"] == {}


def test_only_a_module_s_own_types_are_taken():
    module = types.ModuleType("wire")
    vars(module).update(Tool=int, Any=Any, helper=str, WireModel=dict)
    assert list(packaged_schema.wire_types(module)) == [("Tool", int)]
