"""Instances: what is required, everything, every alternative once, and an end to recursion."""

from __future__ import annotations

from typing import Any

from support.instances import NO_HINT, Instances
from support.schema_source import Document


def instances_of(**definitions: dict[str, Any]) -> Instances:
    document = Document("test", "https://json-schema.org/draft/2020-12/schema", definitions)
    return Instances(document, lambda path: "hinted" if path == ("hint",) else NO_HINT)


def test_minimal_has_what_is_required():
    made = instances_of(
        A={
            "type": "object",
            "required": ["a", "b", "list"],
            "properties": {
                "a": {"const": 5},
                "b": {"anyOf": [{"enum": ["x", "y"]}, {"type": "null"}]},
                "c": {"type": "string"},
                "list": {"type": "array", "items": {"type": "string"}},
            },
        }
    )
    assert made.minimal("A") == {"a": 5, "b": "x", "list": []}


def test_full_has_everything_and_one_variant_per_alternative():
    made = instances_of(
        A={
            "type": "object",
            "properties": {
                "hint": {"type": "string"},
                "n": {"type": ["integer", "null"]},
                "u": {"type": "string", "format": "uri"},
                "either": {"anyOf": [{"$ref": "#/$defs/B"}, {"type": "boolean"}, {"type": "number"}]},
            },
            "additionalProperties": {},
        },
        B={
            "allOf": [
                {"$ref": "#/$defs/C"},
                {"properties": {"d": {"type": "array", "items": {"type": "null"}}}},
            ]
        },
        C={"type": "object", "properties": {"c": {}}, "required": ["c"]},
    )
    base, second, third = made.full("A")
    common = {"hint": "hinted", "n": 1, "u": "note://one", "key": "text"}
    assert base.value == common | {"either": {"c": "text", "d": [None]}} and base.focus == ()
    assert second.value == common | {"either": True} and second.focus == ("either",)
    assert third.value == common | {"either": 0.5} and third.focus == ("either",)
    assert made.minimal("B") == {"c": "text"}


def test_recursive_definitions_end():
    made = instances_of(
        J={
            "anyOf": [
                {"type": "object", "additionalProperties": {"$ref": "#/$defs/J"}},
                {"type": "array", "items": {"$ref": "#/$defs/J"}},
                {"type": "string"},
            ]
        },
        N={"type": "object", "properties": {"next": {"$ref": "#/$defs/N"}}},
    )
    assert [variant.value for variant in made.full("J")] == [{"key": "text"}, ["text"], "text"]
    assert [variant.value for variant in made.full("N")] == [{"next": {}}]
