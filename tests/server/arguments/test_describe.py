"""server/arguments/describe.py: a schema in words and by example."""

import jsonschema_rs
import pytest

from interlock.server.arguments.describe import NO_EXAMPLE, example_of, shown, words_of

DEFINITIONS = {"tree": {"type": "object", "properties": {"next": {"$ref": "#/$defs/tree"}}, "required": ["next"]}}

TABLE = [
    ({"type": "string"}, "a string", "text"),
    ({"type": "string", "minLength": 6}, "a string at least 6 characters long", "textxx"),
    ({"type": "string", "maxLength": 2}, "a string at most 2 characters long", "te"),
    ({"type": "string", "pattern": "^a"}, "a string matching ^a", NO_EXAMPLE),
    ({"type": "string", "minLength": 10_000}, "a string at least 10000 characters long", NO_EXAMPLE),
    ({"type": "string", "format": "date"}, "a date", "2031-05-17"),
    ({"type": "string", "contentEncoding": "base64"}, "a string of base64", "aGVsbG8="),
    ({"type": "integer"}, "an integer", 1),
    ({"type": "integer", "minimum": 3}, "an integer at least 3", 3),
    ({"type": "integer", "exclusiveMinimum": 3, "maximum": 9}, "an integer more than 3, at most 9", 4),
    ({"type": "integer", "maximum": -3}, "an integer at most -3", -3),
    ({"type": "integer", "exclusiveMaximum": 0}, "an integer less than 0", -1),
    ({"type": "integer", "minimum": 4, "multipleOf": 3}, "an integer at least 4, a multiple of 3", 6),
    ({"type": "number", "multipleOf": 0.5}, "a number a multiple of 0.5", 0.5),
    ({"type": "integer", "exclusiveMinimum": 3, "exclusiveMaximum": 4},
     "an integer more than 3, less than 4", NO_EXAMPLE),
    ({"type": "boolean"}, "true or false", True),
    ({"type": "null"}, "null", None),
    ({"type": ["integer", "null"]}, "an integer or null", 1),
    ({"enum": ["b", "a"]}, 'one of "b", "a"', "b"),
    ({"const": 5}, "5", 5),
    ({"type": "array", "items": {"type": "integer"}, "minItems": 2},
     "an array, each item an integer with at least 2 items", [1, 1]),
    ({"type": "array", "prefixItems": [{"const": 1}, {"type": "string"}]}, "an array", [1, "text"]),
    ({"type": "object", "properties": {"a": {"const": 1}, "b": {}}, "required": ["a"]}, "an object with 'a'", {"a": 1}),
    ({"type": "object"}, "an object", {}),
    ({"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "integer"}]}, "an integer or a string", 1),
    ({"type": "string", "examples": ["Graz"], "default": "Wien"}, "a string", "Graz"),
    ({"type": "string", "default": "Wien"}, "a string", "Wien"),
    ({}, "a value", NO_EXAMPLE),
    (True, "a value", NO_EXAMPLE),
    ({"$ref": "#/$defs/tree"}, "an object with 'next'", NO_EXAMPLE),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "words", "example"), TABLE)
def test_in_words_and_by_example(schema, words, example):
    assert words_of(schema, DEFINITIONS) == words
    found = example_of(schema, DEFINITIONS)
    assert found is NO_EXAMPLE if example is NO_EXAMPLE else found == example
    if found is not NO_EXAMPLE:
        assert jsonschema_rs.is_valid(schema, found, validate_formats=True)


def test_many_choices_are_cut():
    assert words_of({"enum": list(range(50))}, {}).endswith("19, …")


def test_a_value_is_shown_short_and_printable():
    assert shown({"a": [1]}) == '{"a":[1]}'
    assert shown("x" * 500).startswith('"xxx') and len(shown("x" * 500)) < 200
    assert "\u202e" not in shown("a\u202eb")


def test_a_schema_that_leads_back_to_itself_has_an_end():
    """Of an author's own making: ours have a value at the bottom."""
    definitions = {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "integer"}]}}
    assert example_of({"$ref": "#/$defs/a"}, definitions) is NO_EXAMPLE
    assert words_of({"$ref": "#/$defs/a"}, definitions).startswith("a value or an integer")


def test_a_mapping_is_told_by_its_members():
    schema = {"type": "object", "additionalProperties": {"type": "boolean"}}
    assert words_of(schema, {}) == "an object, each member true or false"
    assert example_of(schema, {}) == {"name": True}
    assert example_of({**schema, "propertyNames": {"enum": ["a"]}}, {}) == {"a": True}
    assert example_of({**schema, "propertyNames": {"pattern": "^x$"}}, {}) is NO_EXAMPLE
    assert example_of({"type": "object", "minProperties": 1}, {}) is NO_EXAMPLE
