"""server/arguments/coercion.py: a value in the type that was meant, only where that is beyond doubt."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from interlock.server.arguments import coercion
from interlock.server.arguments.coercion import coerced, kinds_of
from interlock.wire.json.reader import read_slow_json
from support.properties import many

INTEGER, STRING, ARRAY = {"type": "integer"}, {"type": "string"}, {"type": "array", "items": {"type": "integer"}}


@pytest.mark.parametrize(
    ("value", "schema", "meant"),
    [
        ("5", INTEGER, 5),
        (" -5 ", INTEGER, -5),
        ("5.0", INTEGER, 5),
        (5.0, INTEGER, 5),
        ("5", {"type": "number"}, 5),
        ("1e3", {"type": "number"}, 1000.0),
        ("true", {"type": "boolean"}, True),
        ("False", {"type": "boolean"}, False),
        ("null", {"type": ["integer", "null"]}, None),
        ("[1, 2]", ARRAY, [1, 2]),
        ('["1"]', ARRAY, [1]),
        (["1", 2], ARRAY, [1, 2]),
        ('{"a": "1"}', {"type": "object", "properties": {"a": INTEGER}}, {"a": 1}),
        ({"a": "1", "b": "2"}, {"type": "object", "properties": {"a": STRING}, "additionalProperties": INTEGER},
         {"a": "1", "b": 2}),
        (["1", "2"], {"type": "array", "prefixItems": [STRING], "items": INTEGER}, ["1", 2]),
        ("3", {"enum": [1, 3]}, 3),
        ("3", {"const": 3}, 3),
        ("[1]", {"anyOf": [ARRAY, {"type": "null"}]}, [1]),
        ({"a": "1"}, {"anyOf": [{"type": "object", "properties": {"a": INTEGER}}, ARRAY]}, {"a": 1}),
        ("5", {"$ref": "#/$defs/n"}, 5),
        (["5"], {"$ref": "#/$defs/list"}, [5]),
    ],
)  # fmt: skip
def test_what_is_meant(value, schema, meant):
    definitions = {"n": INTEGER, "list": {"type": "array", "items": {"$ref": "#/$defs/n"}}}
    found = coerced(value, schema, definitions)
    assert found == meant and type(found) is type(meant)


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        ("5", STRING),
        (5, STRING),
        ("5", {"type": ["integer", "string"]}),
        ("5", {"anyOf": [INTEGER, STRING]}),
        ("5", {}),
        ("5", True),
        ("5", {"allOf": [INTEGER]}),
        ("x", INTEGER),
        ("", INTEGER),
        ("5.5", INTEGER),
        (5.5, INTEGER),
        ("05", INTEGER),
        ("1_000", INTEGER),
        ("true", INTEGER),
        ("yes", {"type": "boolean"}),
        ("1", {"type": "boolean"}),
        (1, {"type": "boolean"}),
        (True, INTEGER),
        ("1,2", ARRAY),
        ("5", ARRAY),
        ('"5"', INTEGER),
        ("NaN", {"type": "number"}),
        ({"a": "1"}, {"anyOf": [{"type": "object", "properties": {"a": INTEGER}}, {"type": "object"}]}),
        ("5", {"$ref": "https://example.org/"}),
        ("5", {"$ref": "#/$defs/loop"}),
        ("[" * 5000, ARRAY),
    ],
)
def test_what_is_in_doubt_stays(value, schema):
    found = coerced(value, schema, {"loop": {"$ref": "#/$defs/loop"}})
    assert found == value and type(found) is type(value)


@many(200)
@given(some.text(), some.sampled_from([STRING, {}, {"type": ["null", "string"]}, {"enum": ["a", 1]}]))
def test_a_text_stays_where_a_text_may_stand(text, schema):
    assert coerced(text, schema, {}) is text


def test_what_a_schema_allows():
    assert kinds_of({"anyOf": [INTEGER, {"oneOf": [STRING, {"const": None}]}]}, {}) == {"integer", "string", "null"}
    assert kinds_of({"anyOf": [INTEGER, {}]}, {}) is None
    deep: dict = INTEGER
    for _ in range(50):
        deep = {"anyOf": [deep]}
    assert kinds_of(deep, {}) is None


def test_a_number_keeps_its_kind_where_both_are_allowed():
    assert type(coerced(5.0, {"type": ["integer", "number"]}, {})) is float
    assert type(coerced(5.0, {"type": "integer"}, {})) is int


def test_texts_are_read_by_the_decoder_that_takes_no_longer_for_any_number(monkeypatch):
    read = []
    monkeypatch.setattr(coercion, "read_slow_json", lambda data: read.append(data) or read_slow_json(data))
    assert coerced(["1e300", "5e-324"], {"type": "array", "items": {"type": "number"}}, {}) == [1e300, 5e-324]
    assert read == [b"1e300", b"5e-324"]
