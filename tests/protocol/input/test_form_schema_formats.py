"""protocol/input/form_schema.py: what a field of a form says beside its type."""

import pytest

from interlock.protocol.input.form_schema import check_content, wrong_count, wrong_form, wrong_format
from interlock.wire.errors import InvalidParams


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("email", "ada@example.com"),
        ("email", "ada+tag@b"),
        ("uri", "https://example.com/a?b#c"),
        ("uri", "note:7"),
        ("date", "2024-02-29"),
        ("date-time", "2025-01-01T10:00:00Z"),
        ("date-time", "2025-01-01t10:00:00.123456789+02:00"),
        ("hologram", "whatever"),
        (7, "whatever"),
        ("date", 7),
    ],
)
def test_what_fits(name, value):
    assert wrong_format({"format": name}, value) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("email", "ada"),
        ("email", "@b"),
        ("email", "a b@c"),
        ("uri", "example.com"),
        ("uri", "a b:c"),
        ("date", "2023-02-29"),
        ("date", "20240229"),
        ("date", "2024-W01-1"),
        ("date-time", "2025-01-01"),
        ("date-time", "2025-01-01T10:00:00"),
        ("date-time", "2025-01-01T25:00:00Z"),
        ("date-time", "2025-01-01 10:00:00Z"),
    ],
)
def test_what_does_not(name, value):
    assert name in wrong_format({"format": name}, value)


@pytest.mark.parametrize(
    ("field", "count", "wrong"),
    [
        ({}, 9, False),
        ({"minItems": 2}, 1, True),
        ({"minItems": 2}, 2, False),
        ({"maxItems": 2}, 3, True),
        ({"minItems": "2", "maxItems": None}, 0, False),
    ],
)
def test_how_many(field, count, wrong):
    assert (wrong_count(field, ["x"] * count) is not None) is wrong


def test_answers_are_held_to_them():
    choice = {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 1}
    schema = {"type": "object", "properties": {"mail": {"type": "string", "format": "email"}, "some": choice}}
    check_content(schema, {"mail": "a@b", "some": ["a"]})
    for content in ({"mail": "nobody"}, {"some": ["a", "b"]}):
        with pytest.raises(InvalidParams):
            check_content(schema, content)


@pytest.mark.parametrize(
    "schema",
    [
        7,
        [],
        {"properties": 7},
        {"properties": {"a": 7}},
        {"properties": {"a": {"type": "array", "items": 7}}},
        {"properties": {}, "required": 7},
        {"properties": {}, "required": [7]},
    ],
    ids=str,
)
def test_what_is_no_form(schema):
    assert wrong_form({"requestedSchema": schema})


@pytest.mark.parametrize(
    "params",
    [{}, {"url": "https://a"}, {"requestedSchema": {}}, {"requestedSchema": {"properties": {"a": {}}}}],
    ids=str,
)
def test_what_may_be_one(params):
    assert wrong_form(params) is None
