"""protocol/input/form_schema.py: forms are flat, and an answer fits its form or is refused."""

import pytest

from interlock.protocol.input.form_schema import check_content, check_form
from interlock.wire.errors import InvalidParams, LocalError


def form(required=(), **fields):
    return {"type": "object", "properties": fields, "required": list(required)}


FULL = form(
    ["name"],
    name={"type": "string", "minLength": 2, "maxLength": 5},
    age={"type": "integer", "minimum": 0, "maximum": 150},
    score={"type": "number"},
    sure={"type": "boolean", "default": True},
    mail={"type": "string", "format": "email"},
    one={"type": "string", "enum": ["a", "b"]},
    titled={"type": "string", "oneOf": [{"const": "a", "title": "A"}]},
    legacy={"type": "string", "enum": ["a"], "enumNames": ["A"]},
    many={"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
    titles={"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}},
)


def test_every_kind_of_field():
    check_form(FULL)


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object"},
        {"type": "array", "properties": {}},
        form(a={"type": "object", "properties": {}}),
        form(a={"type": "array", "items": {"type": "string"}}),
        form(a={"type": "array"}),
        form(a={"type": "null"}),
        form(a={}),
        form(a=True),
        form(a={"type": "string", "format": "password"}),
    ],
)
def test_what_is_no_form(schema):
    with pytest.raises(LocalError):
        check_form(schema)


@pytest.mark.parametrize(
    "content",
    [
        {"name": "Ada"},
        {"name": "Ada", "age": 36, "score": 1.5, "sure": False, "mail": "a@b.c", "unknown": ["x"]},
        {"name": "Ada", "age": 36.0, "score": 1},
        {"name": "Ada", "one": "b", "titled": "a", "legacy": "a", "many": ["a", "b"], "titles": []},
    ],
)
def test_what_fits(content):
    check_content(FULL, content)


def test_a_field_that_says_its_type_in_another_way_takes_what_it_is_given():
    check_content({"properties": {"a": {"type": ["string", "null"], "title": "A"}}}, {"a": "x"})
    check_content({"properties": {"a": {"title": "A"}}}, {"a": 1.5})
    with pytest.raises(InvalidParams):
        check_content({"properties": {"a": {"title": "A"}}}, {"a": {}})


@pytest.mark.parametrize(
    "content",
    [
        None,
        [],
        {},
        {"name": 7},
        {"name": "A"},
        {"name": "Augusta"},
        {"name": "Ada", "age": "36"},
        {"name": "Ada", "age": 36.5},
        {"name": "Ada", "age": True},
        {"name": "Ada", "age": -1},
        {"name": "Ada", "age": 151},
        {"name": "Ada", "age": 10**400},
        {"name": "Ada", "sure": 1},
        {"name": "Ada", "one": "c"},
        {"name": "Ada", "titled": "A"},
        {"name": "Ada", "many": "a"},
        {"name": "Ada", "many": ["c"]},
        {"name": "Ada", "titles": ["A"]},
        {"name": "Ada", "unknown": {}},
        {"name": "Ada", "unknown": None},
        {"name": "Ada", "unknown": [1]},
    ],
)
def test_what_does_not(content):
    with pytest.raises(InvalidParams):
        check_content(FULL, content)
