"""server/tools/output_schema.py: the output schema, from the return annotation or from the author's hand."""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime
import decimal
import enum
import typing
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import attrs
import msgspec
import pytest

from interlock.server.content import Audio, File, Image
from interlock.server.tools.encoding import encode_data
from interlock.server.tools.output_schema import read_output
from interlock.server.tools.results import ToolResult
from interlock.wire.errors import LocalError
from interlock.wire.json.schema import validator_of
from interlock.wire.types.content import EmbeddedResource, ImageContent, TextContent
from support.duck_models import Model


class Place(msgspec.Struct):
    city: str
    zip: str | None = None


@dataclasses.dataclass
class Person:
    name: str
    home: Place
    friends: list[Place]


class Typed(TypedDict):
    a: int


class Named(NamedTuple):
    a: int
    b: str


@attrs.define
class Attrs:
    a: int


class Colour(enum.Enum):
    RED = "red"


class Tree(msgspec.Struct):
    value: int
    children: list[Tree] = []


class Forest(msgspec.Struct):
    trees: list[Tree]


PLACE = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "zip": {"type": ["string", "null"]},
    },
    "required": ["city"],
}


def output(hint, given=None, **more):
    async def function(): ...

    function.__annotations__["return"] = hint
    return read_output(function, given, **more)


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (Place, PLACE),
        (dict, {"type": "object"}),
        (dict[str, Any], {"type": "object"}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (int, {"type": "integer"}),
        (bool, {"type": "boolean"}),
        (float, {"type": "number"}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (list[str], {"type": "array", "items": {"type": "string"}}),
        (list[Place], {"type": "array", "items": PLACE}),
        (Place | None, {**PLACE, "type": ["object", "null"]}),
        (Typed, {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}),
        (Attrs, {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}),
        (Literal["b", "a"], {"type": "string", "enum": ["b", "a"]}),
        (Colour, {"type": "string", "enum": ["red"]}),
        (datetime.date, {"type": "string", "format": "date"}),
        (datetime.datetime, {"type": "string"}),
        (Annotated[datetime.datetime, msgspec.Meta(tz=True)], {"type": "string", "format": "date-time"}),
        (datetime.time, {"type": "string"}),
        (datetime.timedelta, {"type": "string"}),
        (Model, {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}),
        (Path, {"type": "string"}),
        (Annotated[int, msgspec.Meta(ge=0)], {"type": "integer", "minimum": 0}),
    ],
    ids=str,
)
def test_data_has_a_schema(hint, schema):
    found = output(hint)
    assert found.schema == schema and found.check is not None


def test_records_inside_of_records_are_written_out():
    schema = output(Person).schema
    assert schema["properties"]["home"] == PLACE and schema["properties"]["friends"]["items"] == PLACE
    assert "$defs" not in schema and "title" not in schema


def test_only_what_holds_itself_is_pointed_to():
    tree = {
        "type": "object",
        "properties": {
            "value": {"type": "integer"},
            "children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}, "default": []},
        },
        "required": ["value"],
    }
    assert output(Tree).schema == {**tree, "$defs": {"Tree": tree}}
    forest = output(Forest)
    assert forest.schema["properties"]["trees"]["items"] == {"$ref": "#/$defs/Tree"}
    forest.check(b'{"trees":[{"value":1,"children":[{"value":2}]}]}')
    with pytest.raises(ValueError):
        forest.check(b'{"trees":[{"value":1,"children":[{"value":"2"}]}]}')


class Region:
    """A model with definitions of its own, as pydantic writes them: they point to the root, wherever they stand."""

    @classmethod
    def model_json_schema(cls, mode):
        place = {"title": "Place", "type": "object", "properties": {"zip": NULLABLE, "near": {"$ref": "#/$defs/Place"}}}
        return {"$defs": {"Place": place}, "title": "Region", "properties": {"capital": {"$ref": "#/$defs/Place"}}}

    @classmethod
    def model_validate(cls, value):
        raise ValueError("let the schema judge")


NULLABLE = {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None, "title": "Zip"}


@pytest.mark.parametrize("hint", [list[Region], dict[str, Region], Region | None, tuple[Region, Tree]])
def test_the_definitions_of_a_model_stand_at_the_root(hint):
    found = output(hint)
    nullable = {key: value for key, value in NULLABLE.items() if key != "title"}
    place = {"type": "object", "properties": {"zip": nullable, "near": {"$ref": "#/$defs/Place"}}}
    assert found.schema["$defs"]["Place"] == place
    judge = validator_of(found.schema)
    region = {"capital": {"zip": None, "near": {"zip": "8010"}}}
    shaped = {list[Region]: [region], dict[str, Region]: {"a": region}, Region | None: region}
    data = shaped.get(hint, [region, {"value": 1}])
    judge(data)
    found.check(msgspec.json.encode(data))
    with pytest.raises(ValueError):
        found.check(msgspec.json.encode(data).replace(b'"8010"', b"8010"))


def test_a_result_may_say_null_where_that_is_the_default():
    output(Place).check(b'{"city":"Graz","zip":null}')
    validator_of(output(Place).schema)({"city": "Graz", "zip": None})


@dataclasses.dataclass
class Checked:
    a: Annotated[int, type("Ge", (), {"__module__": "annotated_types", "ge": 0})()]


def test_a_check_that_another_library_makes_does_not_cost_the_schema():
    assert output(Checked).schema["properties"] == {"a": {"type": "integer"}}


def test_a_decimal_goes_out_as_text():
    found = output(decimal.Decimal)
    assert found.schema == {"type": "string"}
    found.check(encode_data(decimal.Decimal("NaN")))


def test_a_tuple_with_names_is_an_array():
    assert output(Named).schema["type"] == "array"


@pytest.mark.parametrize(
    "hint",
    [
        *(str, None, Any, object, typing.NoReturn, list, tuple, list[Any], ToolResult, TextContent, Image),
        *(str | None, str | Place, str | ImageContent, list[str | Image], list[TextContent], tuple[str, Image]),
        *(collections.abc.Sequence[Image | str], Annotated[str, "words"], Annotated[Image, "x"] | None),
        ToolResult | Place,
        complex,
        type("Own", (), {}),
        collections.abc.Callable[[], int],
    ],
    ids=str,
)
def test_text_blocks_and_the_unknown_have_none(hint):
    found = output(hint)
    assert found.schema is None and found.check is None


def test_without_an_annotation_there_is_none():
    async def function(): ...

    assert read_output(function, None).schema is None


@pytest.mark.parametrize("hint", [bytes, bytearray])
def test_bytes_are_to_be_wrapped(hint):
    with pytest.raises(LocalError, match="wrap them in Image, Audio or File"):
        output(hint)


@pytest.mark.parametrize(
    ("hint", "embeds"),
    [
        (EmbeddedResource, True),
        (File, True),
        (list[str | File], True),
        (Annotated[File, "x"] | None, True),
        (Image, False),
        (list[str | Audio], False),
        (list, False),
        (Place, False),
    ],
)
def test_who_embeds_resources_is_known(hint, embeds):
    assert output(hint).embeds is embeds


# --- what fits ---


@pytest.mark.parametrize(
    ("hint", "data"),
    [
        (Place, b'{"city":"Graz"}'),
        (int, b"7"),
        (list[int], b"[]"),
        (Place | None, b"null"),
        (Model, b'{"a":1}'),
        (Path, b'"x"'),
    ],
)
def test_what_fits_passes(hint, data):
    output(hint).check(data)


@pytest.mark.parametrize(
    ("hint", "data"),
    [
        (Place, b"{}"),
        (Place, b'{"city":1}'),
        (int, b'"7"'),
        (list[int], b"[1.5]"),
        (Place | None, b"7"),
        (Model, b'{"a":"1"}'),
    ],
)
def test_what_does_not_is_told(hint, data):
    with pytest.raises(ValueError):
        output(hint).check(data)


@dataclasses.dataclass
class Doubled:
    """What it gives is not what it takes."""

    a: int
    twice: int = 0

    def __post_init__(self):
        if self.twice:
            raise ValueError("twice is ours to set")
        self.twice = 2 * self.a


class Lax(Model):
    """It takes more than it gives, as models do."""

    @classmethod
    def model_validate(cls, value):
        return cls(int(value["a"]))


@pytest.mark.parametrize(
    ("hint", "fits", "refused"),
    [
        (Lax, b'{"a":1}', b'{"a":"1"}'),
        (dict[str, list[Lax]] | None, b'{"x":[{"a":1}]}', b'{"x":[{"a":"1"}]}'),
        (set[int], b"[1,2]", b"[1,1]"),
        (decimal.Decimal, b'"1.5"', b"1.5"),
    ],
)
def test_the_schema_judges_where_the_type_takes_more(hint, fits, refused):
    """Clients know the schema alone, and lose a whole result that breaks it."""
    found = output(hint)
    found.check(fits)
    with pytest.raises(ValueError):
        found.check(refused)


@attrs.define
class Private:
    a: int
    _key: int = 0
    _id: int = attrs.field(kw_only=True)


def test_what_attrs_calls_private_is_neither_written_nor_promised():
    found = output(Private)
    assert list(found.schema["properties"]) == ["a"] and found.schema["required"] == ["a"]
    found.check(encode_data(Private(1, id=2)))


def test_the_schema_judges_what_the_type_cannot_read_back():
    output(Doubled).check(b'{"a":1,"twice":2}')
    with pytest.raises(ValueError):
        output(Doubled).check(b'{"a":1,"twice":"2"}')


# --- by hand ---


def test_a_schema_by_hand_counts_instead_of_the_annotation():
    schema = {"type": "array", "items": {"multipleOf": 2}}
    found = output(Place, schema)
    assert found.schema == schema and found.schema is not schema
    found.check(b"[2,4]")
    with pytest.raises(ValueError, match="2"):
        found.check(b"[3]")


def test_a_type_by_hand_is_described():
    found = output(ToolResult, Place)
    assert found.schema == PLACE
    with pytest.raises(LocalError, match="no schema of"):
        output(Any, complex)


def test_none_is_wanted():
    assert output(Place, False).schema is None
    assert output(EmbeddedResource, False).embeds


@pytest.mark.parametrize("schema", [{"type": "objekt"}, {"properties": 5}, {"a": object()}])
def test_a_broken_schema_is_told_at_registration(schema):
    with pytest.raises(LocalError):
        output(Any, schema)


# --- generators ---


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (collections.abc.AsyncIterator[int], {"type": "integer"}),
        (collections.abc.AsyncGenerator[Place, None], PLACE),
        (collections.abc.Iterator[str], None),
        (collections.abc.Generator[str, None, Place], PLACE),
        (collections.abc.Generator[int, None, None], {"type": "integer"}),
        (collections.abc.AsyncIterator[str | Place], None),
        (Any, None),
    ],
)
def test_a_generator_declares_what_it_ends_with(hint, schema):
    assert output(hint, streams=True).schema == schema


def test_a_schema_that_cannot_be_judged_by_does_not_lose_what_was_given(monkeypatch):
    def too_much(schema):
        raise LocalError("too much to check")

    monkeypatch.setattr("interlock.wire.json.schema.validator_of", too_much)
    output(int).check(b"1")
    output(set[int]).check(b"[1]")
    with pytest.raises(ValueError, match="cannot be read back"):
        output(int).check(b'"1"')
