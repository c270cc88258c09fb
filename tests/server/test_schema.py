"""server/schema.py: a signature becomes a decoder and a JSON Schema, or a sentence that says why not."""

from __future__ import annotations

import dataclasses
import functools
from typing import Annotated, Any, Literal, TypedDict

import jsonschema_rs
import msgspec
import pytest

from interlock.server.context import BlockingContext, Context
from interlock.server.schema import read_signature
from interlock.wire.errors import LocalError


def read(function):
    return read_signature(function, Context)


def decode(function, text):
    return msgspec.structs.asdict(read(function).decoder.decode(text))


class Point(msgspec.Struct):
    x: int
    y: int = 0


@dataclasses.dataclass
class Named:
    name: str


class Typed(TypedDict):
    key: str


def everything(
    text: str,
    number: int,
    point: Point,
    named: Named,
    typed: Typed,
    anything,
    choice: Literal["a", "b"] = "a",
    maybe: float | None = None,
    many: list[int] = [],  # noqa: B006 - it must not be shared, see below
    bounded: Annotated[int, msgspec.Meta(ge=1, le=5, description="how many")] = 3,
): ...


def test_the_schema_of_a_function_is_a_schema_of_an_object():
    schema = read(everything).schema
    assert schema["type"] == "object"
    assert set(schema["required"]) == {"text", "number", "point", "named", "typed", "anything"}
    assert list(schema["properties"])[:2] == ["text", "number"]
    assert schema["properties"]["choice"]["enum"] == ["a", "b"]
    assert schema["properties"]["bounded"]["maximum"] == 5
    assert "title" not in schema
    assert "$defs" not in schema
    assert schema["properties"]["point"]["required"] and "title" not in schema["properties"]["point"]
    jsonschema_rs.validator_for(schema)  # every reference inside of it can be followed


@pytest.mark.parametrize(
    ("arguments", "fits"),
    [
        (
            {
                "text": "a",
                "number": 1,
                "point": {"x": 1},
                "named": {"name": "n"},
                "typed": {"key": "k"},
                "anything": [],
            },
            True,
        ),
        (
            {
                "text": "a",
                "number": "1",
                "point": {"x": 1},
                "named": {"name": "n"},
                "typed": {"key": "k"},
                "anything": 1,
            },
            False,
        ),
        ({"text": "a", "number": 1, "point": {}, "named": {"name": "n"}, "typed": {"key": "k"}, "anything": 1}, False),
        ({"text": "a"}, False),
        (
            {
                "text": "a",
                "number": 1,
                "point": {"x": 1},
                "named": {"name": "n"},
                "typed": {"key": "k"},
                "anything": None,
                "bounded": 6,
            },
            False,
        ),
    ],
)
def test_schema_and_decoder_agree(arguments, fits):
    signature = read(everything)
    assert jsonschema_rs.validator_for(signature.schema).is_valid(arguments) is fits
    if fits:
        signature.decoder.decode(msgspec.json.encode(arguments))
    else:
        with pytest.raises(msgspec.ValidationError):
            signature.decoder.decode(msgspec.json.encode(arguments))


def test_the_arguments_are_decoded_as_their_types():
    def function(point: Point, named: Named, count: int = 2): ...

    found = decode(function, b'{"point":{"x":1},"named":{"name":"n"}}')
    assert found == {"point": Point(1, 0), "named": Named("n"), "count": 2}


def test_a_mutable_default_is_never_shared():
    def function(many: list[int] = []): ...  # noqa: B006

    first = decode(function, b"{}")["many"]
    first.append(1)
    assert decode(function, b"{}")["many"] == []


def test_a_function_without_parameters_takes_nothing():
    def function(): ...

    signature = read(function)
    # what 2025-11-25 recommends for no parameters
    assert signature.schema == {"type": "object", "additionalProperties": False}
    assert (signature.names, signature.context) == ((), None)


def test_no_required_member_is_no_empty_list():
    def function(a: int = 1): ...

    assert "required" not in read(function).schema


@pytest.mark.parametrize("kind", [Context, BlockingContext])
def test_the_context_is_no_argument(kind):
    def function(a: int, ctx): ...

    function.__annotations__["ctx"] = kind
    signature = read(function)
    assert (signature.context, signature.names) == ("ctx", ("a",))
    assert "ctx" not in signature.schema["properties"]


def test_names_of_parameters_are_the_names_on_the_wire():
    def function(snake_case: int, camelCase: int): ...

    assert set(read(function).schema["properties"]) == {"snake_case", "camelCase"}


def test_methods_and_callables_have_signatures_too():
    class Tools:
        def method(self, a: int): ...

        def __call__(self, b: int): ...

    assert read(Tools().method).names == ("a",)
    assert read(Tools()).names == ("b",)


def test_a_partial_and_a_wrapped_function_are_read():
    def function(a: int, b: int): ...

    @functools.wraps(function)
    def wrapped(*arguments: Any, **named: Any): ...

    assert read(wrapped).names == ("a", "b")


def function_of_args(*args: int): ...
def function_of_kwargs(**kwargs: int): ...
def function_of_positional(a: int, /): ...
def function_of_the_unknown(a: NoSuchType): ...  # noqa: F821
def function_of_no_json(a: type): ...
def function_of_two_structs(a: Point | Named): ...


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (function_of_args, "args"),
        (function_of_kwargs, "kwargs"),
        (function_of_positional, "name every parameter"),
        (function_of_the_unknown, "NoSuchType"),
        (function_of_two_structs, "function_of_two_structs"),
    ],
)
def test_a_signature_that_cannot_come_from_json_is_refused_at_registration(function, told):
    with pytest.raises(LocalError, match=told):
        read(function)


def test_keyword_only_parameters_are_fine():
    def function(*, a: int): ...

    assert decode(function, b'{"a":1}') == {"a": 1}


def test_wrong_values_are_told_where_they_stand():
    def function(point: Point): ...

    with pytest.raises(msgspec.ValidationError, match=r"point\.x"):
        decode(function, b'{"point":{"x":"1"}}')
