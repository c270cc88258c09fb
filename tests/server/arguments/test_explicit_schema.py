"""server/arguments/explicit_schema.py: a schema that its author wrote, and where the arguments go."""

from collections.abc import Mapping
from typing import Annotated, Any, TypedDict

import msgspec
import pytest
from msgspec import Raw

from interlock.server.arguments.errors import Unmendable
from interlock.server.arguments.explicit_schema import read_given
from interlock.server.context import Context
from interlock.wire.errors import LocalError

SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"$anchor": "address", "type": "object"}},
    "properties": {"home": {"$ref": "#/$defs/address"}},
    "allOf": [{"anyOf": [{"required": ["home"]}]}],
    "if": {"required": ["home"]},
    "then": {},
    "else": {"maxProperties": 0},
    "additionalProperties": False,
}


def test_the_schema_is_kept_word_for_word_and_in_order():
    async def function(arguments: dict): ...

    signature, _ = read_given(function, Context, SCHEMA)
    assert signature.schema == SCHEMA
    assert list(signature.schema) == list(SCHEMA)


def test_nobody_can_change_it_later():
    async def function(arguments: dict): ...

    schema = {"type": "object", "properties": {}}
    signature, _ = read_given(function, Context, schema)
    schema["properties"]["a"] = 1
    assert signature.schema == {"type": "object", "properties": {}}


def test_all_arguments_go_into_one_dict():
    async def function(given, ctx: Context): ...

    signature, arguments = read_given(function, Context, SCHEMA)
    assert (signature.context, signature.names) == ("ctx", ("given",))
    assert arguments(Raw(b'{"home": {"ctx": [null]}}')) == {"given": {"home": {"ctx": [None]}}}


class Home(TypedDict):
    home: dict


@pytest.mark.parametrize("hint", [dict, dict[str, Any], Mapping[str, Any], Home, object, Any, dict | None])
def test_the_parameter_for_all_arguments_takes_an_object(hint):
    async def function(given: hint): ...

    assert read_given(function, Context, SCHEMA)[0].names == ("given",)


@pytest.mark.parametrize("hint", [int, str, list[int], int | None, Annotated[int, "a number"]])
def test_a_parameter_that_cannot_hold_an_object_is_refused(hint):
    async def raw(a: hint): ...

    with pytest.raises(LocalError, match=r"raw: with input_schema, a gets all arguments as one dict.*\*\*arguments"):
        read_given(raw, Context, SCHEMA)


def test_an_object_without_properties_is_listed_with_empty_ones():
    async def function(given: dict): ...

    signature, _ = read_given(function, Context, {"type": "object", "maxProperties": 2})
    assert signature.schema == {"type": "object", "maxProperties": 2, "properties": {}}


def test_or_each_into_its_own():
    async def function(ctx: Context, **given): ...

    signature, arguments = read_given(function, Context, {"type": "object"})
    assert (signature.context, signature.names) == ("ctx", ())
    assert arguments(Raw(b'{"a": 1, "b-c": 2}')) == {"a": 1, "b-c": 2}


def test_nobody_takes_the_place_of_the_context():
    async def function(ctx: Context, **given): ...

    _, arguments = read_given(function, Context, {"type": "object"})
    with pytest.raises(Unmendable, match="ctx: no such argument"):
        arguments(Raw(b'{"ctx": 1}'))


@pytest.mark.parametrize("raw", [b"[]", b'"a"', b"1", b"null"])
def test_arguments_are_an_object(raw):
    async def one(given): ...
    async def many(**given): ...

    for function in (one, many):
        _, arguments = read_given(function, Context, SCHEMA)
        with pytest.raises(msgspec.ValidationError):
            arguments(Raw(raw))


def test_another_signature_has_no_place_for_them():
    async def none(): ...
    async def only_context(ctx: Context): ...
    async def two(a, b): ...
    async def both(a, **b): ...
    async def positions(*a): ...
    async def positional(a, /): ...

    for function in (none, only_context, two, both, positions, positional):
        with pytest.raises(LocalError, match="one dict"):
            read_given(function, Context, SCHEMA)


@pytest.mark.parametrize("schema", [{}, {"type": "array"}, {"type": ["object"]}, {"type": "object", "x": object()}])
def test_what_is_no_schema_of_an_object_is_refused(schema):
    async def function(given): ...

    with pytest.raises(LocalError, match="input_schema"):
        read_given(function, Context, schema)


def test_arguments_are_checked_against_it():
    async def function(given): ...

    _, arguments = read_given(function, Context, SCHEMA)
    for bad in (b'{"office": 1}', b'{"home": 5}', b"{}"):
        with pytest.raises(Unmendable):
            arguments(Raw(bad))


def test_what_is_wrong_names_the_place_the_shape_and_an_example():
    async def function(given): ...

    schema = {"type": "object", "properties": {"a": {"items": {"type": "integer", "minimum": 3}}}}
    _, arguments = read_given(function, Context, schema)
    with pytest.raises(Unmendable) as caught:
        arguments(Raw(b'{"a": [5, 1]}'))
    assert caught.value.lines == [
        "a[1]: 1 is less than the minimum of 3; expected an integer at least 3; for example 3"
    ]


def test_what_it_means_is_taken_where_the_schema_leaves_no_doubt():
    async def function(given): ...

    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}, "c": {}}}
    _, arguments = read_given(function, Context, schema)
    assert arguments(Raw(b'{"a": "5", "b": "5", "c": "5"}')) == {"given": {"a": 5, "b": "5", "c": "5"}}


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"type": "object", "properties": {"a": {"type": "objekt"}}}, "no usable JSON Schema"),
        ({"type": "object", "$schema": "urn:x"}, "dialect"),
        ({"type": "object", "$ref": "https://example.org/schema"}, "another address"),
        ({"type": "object", "$ref": "#"}, "never ends"),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_at_registration(schema, why):
    async def function(given): ...

    with pytest.raises(LocalError, match=why):
        read_given(function, Context, schema)


def test_large_arguments_are_not_converted_and_small_ones_beside_them_are(monkeypatch):
    from interlock.server.arguments import repair

    async def function(given): ...

    converted = []

    def watched(value, *rest):
        converted.append(set(value))
        return coerced(value, *rest)

    coerced = repair.coerced
    monkeypatch.setattr(repair, "coerced", watched)
    properties = {"values": {"type": "array", "items": {"type": "integer"}}, "n": {"type": "integer"}}
    _, arguments = read_given(function, Context, {"type": "object", "properties": properties})
    many = list(range(repair.MAX_REPAIR_BYTES))
    found = arguments(Raw(msgspec.json.encode({"values": many, "n": "5"})))["given"]
    assert found == {"values": many, "n": 5} and list(found) == ["values", "n"]
    with pytest.raises(Unmendable, match="is not of type"):
        arguments(Raw(msgspec.json.encode({"values": list(map(str, many)), "n": "5"})))
    assert converted == [{"n"}, {"n"}]
