"""server/schema/builder.py: types, their schemas, what fits them and what does not: a table, and properties over it."""

import dataclasses
import datetime
import decimal
import enum
import json
import pathlib
import uuid
from typing import Annotated, Any, Generic, Literal, NamedTuple, Required, TypedDict, TypeVar

import attrs
import jsonschema_rs
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some
from msgspec import Meta, Raw

from interlock.server.arguments.decode import fitting
from interlock.server.arguments.errors import Unmendable
from interlock.server.context import Context
from interlock.server.schema.signature import read_signature
from interlock.wire.errors import LocalError
from support.properties import many

T = TypeVar("T")


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"
    AMBER = "amber"


class Level(enum.IntEnum):
    """How loud."""

    HIGH = 3
    LOW = 1


class Rights(enum.Flag, boundary=enum.STRICT):  # the default of Python 3.11.2 drops bits it does not know
    READ = 1
    WRITE = 2


@dataclasses.dataclass
class Address:
    """Where somebody lives.

    Only for deliveries.
    """

    street: str
    zip: Annotated[str, Meta(pattern="^[0-9]{4}$")] = "1010"
    tags: list[str] = dataclasses.field(default_factory=list)
    floor: int | None = None


@dataclasses.dataclass
class Tree:
    value: int
    children: list["Tree"] = dataclasses.field(default_factory=list)


class Options(TypedDict, total=False):
    mode: Required[Literal["fast", "exact", "auto"]]
    limit: int


class Point(NamedTuple):
    x: int
    y: int = 0


class Circle(msgspec.Struct, tag="circle"):
    radius: float


class Square(msgspec.Struct, tag="square", forbid_unknown_fields=True):
    side: float


class Box(msgspec.Struct, Generic[T]):
    content: T


@attrs.define
class Owner:
    name: str
    age: int = 30


STRING = {"type": "string"}
INTEGER = {"type": "integer"}
BASE64 = {"type": "string", "contentEncoding": "base64"}
ADDRESS = {
    "type": "object",
    "properties": {
        "street": STRING,
        "zip": {"type": "string", "pattern": "^[0-9]{4}$", "default": "1010"},
        "tags": {"type": "array", "items": STRING, "default": []},
        "floor": INTEGER,
    },
    "required": ["street"],
    "description": "Where somebody lives.",
}
CIRCLE = {
    "type": "object",
    "properties": {"type": {"type": "string", "const": "circle"}, "radius": {"type": "number"}},
    "required": ["type", "radius"],
}
SQUARE = {
    "type": "object",
    "properties": {"type": {"type": "string", "const": "square"}, "side": {"type": "number"}},
    "required": ["type", "side"],
    "additionalProperties": False,
}

TABLE: list[tuple[Any, dict, list, list]] = [
    # type, schema, what fits, what does not
    (str, STRING, ["", "1"], [1, None, True, ["a"]]),
    (int, INTEGER, [0, -5, 10**30], ["x", 1.5, None, True, [1]]),
    (float, {"type": "number"}, [1, 1.5, -2e10], ["x", None, False]),
    (bool, {"type": "boolean"}, [True, False], [0, 1, "yes", None]),
    (None, {"type": "null"}, [None], [0, "", False]),
    (Any, {}, [1, "a", None, {"b": []}], []),
    (object, {}, [1, "a", None, {"b": []}], []),
    (list[int], {"type": "array", "items": INTEGER}, [[], [1, 2]], ["1,2", [1, "a"], {}, None]),
    (list, {"type": "array"}, [[1, "a"]], [{}, "a"]),
    (set[int], {"type": "array", "items": INTEGER, "uniqueItems": True}, [[1, 2]], [["a"]]),
    (
        tuple[int, str],
        {"type": "array", "prefixItems": [INTEGER, STRING], "items": False, "minItems": 2, "maxItems": 2},
        [[1, "a"]],
        [[1], [1, "a", 2], ["a", 1]],
    ),
    (tuple[()], {"type": "array", "maxItems": 0}, [[]], [[1]]),
    (tuple[int, ...], {"type": "array", "items": INTEGER}, [[], [1]], [["a"]]),
    (dict[str, int], {"type": "object", "additionalProperties": INTEGER}, [{}, {"a": 1}], [{"a": "b"}, [], 1]),
    (
        dict[int, str],
        {"type": "object", "propertyNames": {"pattern": "^(0|-?[1-9][0-9]*)$"}, "additionalProperties": STRING},
        [{"1": "a", "-7": "b"}],
        [{"a": "b"}],
    ),
    (
        dict[Level, str],
        {
            "type": "object",
            "propertyNames": {"enum": ["3", "1"], "description": "How loud."},
            "additionalProperties": STRING,
        },
        [{"3": "a", "1": "b"}],
        [{"2": "b"}, {"HIGH": "a"}],
    ),
    (
        dict[Annotated[str, Meta(max_length=2)], Any],
        {"type": "object", "propertyNames": {"maxLength": 2}},
        [{"ab": 1}],
        [{"abc": 1}],
    ),
    (int | str, {"type": ["integer", "string"]}, [1, "1"], [1.5, None, []]),
    (int | None, {"type": ["integer", "null"]}, [1, None], ["x", 1.5]),
    (list[int] | None, {"type": ["array", "null"], "items": INTEGER}, [[1], None], [["a"], 1]),
    (Address | None, {"anyOf": [ADDRESS, {"type": "null"}]}, [None, {"street": "a"}], [1, {}]),
    (list[int] | dict[str, int], {"anyOf": [
        {"type": "array", "items": INTEGER}, {"type": "object", "additionalProperties": INTEGER}
    ]}, [[1], {"a": 1}], [["a"], {"a": "b"}]),
    (Literal["z", "a", "m"], {"type": "string", "enum": ["z", "a", "m"]}, ["z", "m"], ["b", 1, None]),
    (Literal[3, 1], {"type": "integer", "enum": [3, 1]}, [3, 1], [2, "x"]),
    (Literal["z", 1, None], {"type": ["string", "integer", "null"], "enum": ["z", 1, None]}, ["z", 1, None], ["1"]),
    (Literal["z", "a"] | None, {"type": ["string", "null"], "enum": ["z", "a", None]}, ["z", None], ["b"]),
    (Literal[True], {"type": "boolean", "enum": [True]}, [True], [False, 1, "x"]),
    (Literal["z", False], {"type": ["string", "boolean"], "enum": ["z", False]}, ["z", False], [True, 0, "b"]),
    (Color, {"type": "string", "enum": ["red", "blue", "amber"]}, ["blue"], ["RED", "green", 1]),
    (Level, {"type": "integer", "enum": [3, 1], "description": "How loud."}, [3, 1], [2, "x"]),
    (list[Color], {"type": "array", "items": {"type": "string", "enum": ["red", "blue", "amber"]}}, [["red"]], [["x"]]),
    (Annotated[int, Meta(ge=1, le=9)], {"type": "integer", "minimum": 1, "maximum": 9}, [1, 9], [0, 10]),
    (Annotated[int, Meta(gt=1, lt=9)], {"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 9}, [2], [1, 9]),
    (Annotated[float, Meta(multiple_of=0.5)], {"type": "number", "multipleOf": 0.5}, [1.5], [1.3]),
    (Annotated[str, Meta(min_length=1, max_length=3)], {"type": "string", "minLength": 1, "maxLength": 3}, ["a"], [""]),
    (Annotated[str, Meta(pattern="^a")], {"type": "string", "pattern": "^a"}, ["ab"], ["ba"]),
    (
        Annotated[list[int], Meta(min_length=1, max_length=2)],
        {"type": "array", "items": INTEGER, "minItems": 1, "maxItems": 2},
        [[1]],
        [[], [1, 2, 3]],
    ),
    (Annotated[dict, Meta(min_length=1)], {"type": "object", "minProperties": 1}, [{"a": 1}], [{}]),
    (
        Annotated[str, Meta(title="City", description="Which", examples=["Graz"], extra_json_schema={"x-a": 1})],
        {"type": "string", "title": "City", "description": "Which", "examples": ["Graz"], "x-a": 1},
        ["Wien"],
        [1],
    ),
    (Address, ADDRESS, [{"street": "a"}, {"street": "a", "floor": None, "more": 1}], [{}, {"street": "a", "zip": "x"}]),
    (
        Options,
        {
            "type": "object",
            "properties": {"mode": {"type": "string", "enum": ["fast", "exact", "auto"]}, "limit": INTEGER},
            "required": ["mode"],
        },
        [{"mode": "auto"}],
        [{}, {"mode": "slow"}, {"mode": "fast", "limit": "x"}],
    ),
    (
        Point,
        {
            "type": "array",
            "prefixItems": [{"description": "x", **INTEGER}, {"description": "y", **INTEGER, "default": 0}],
            "items": False,
            "minItems": 1,
            "maxItems": 2,
        },
        [[1], [1, 2]],
        [[], [1, 2, 3], {"x": 1}],
    ),
    (Circle | Square, {"anyOf": [CIRCLE, SQUARE]}, [{"type": "circle", "radius": 1}], [{"radius": 1}, {"type": "x"}]),
    (Square, SQUARE, [{"type": "square", "side": 1}], [{"type": "square", "side": 1, "more": 1}]),
    (Box[int], {"type": "object", "properties": {"content": INTEGER}, "required": ["content"]}, [{"content": 1}], [{}]),
    (
        Owner,
        {
            "type": "object",
            "properties": {"name": STRING, "age": {"type": "integer", "default": 30}},
            "required": ["name"],
        },
        [{"name": "a"}],
        [{}, {"name": 1}],
    ),
    (datetime.datetime, {"type": "string", "format": "date-time"}, ["2026-07-28T12:00:00Z"], ["today", 1]),
    (datetime.date, {"type": "string", "format": "date"}, ["2026-07-28"], ["28.7.2026", 1]),
    (datetime.time, {"type": "string", "format": "time"}, ["12:00:00Z"], ["noon", 1]),
    (Annotated[datetime.time, Meta(tz=False)], STRING, ["12:00:00"], ["12:00:00Z"]),
    (datetime.timedelta, {"type": "string", "format": "duration"}, ["PT1H", "P1DT2H"], ["1h", 1]),
    (uuid.UUID, {"type": "string", "format": "uuid"}, ["123e4567-e89b-42d3-a456-426614174000"], ["x", 1]),
    (
        decimal.Decimal,
        {"type": ["number", "string"], "pattern": r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"},
        [1, 1.5, "1.50", "-3e4"],
        ["x", "", None, True],
    ),
    (pathlib.Path, STRING, ["a/b", ""], [1, None, "a\0b"]),
    (bytes, BASE64, ["aGk=", ""], ["!", 1]),
    (Annotated[bytes, Meta(max_length=3)], {**BASE64, "maxLength": 4}, ["aGk="], []),
]  # fmt: skip
IDS = [str(row[0]) for row in TABLE]
LOOSE = (datetime.date, datetime.time, datetime.datetime, datetime.timedelta, uuid.UUID, bytes, pathlib.Path)


def reader(hint, **default):
    def function(x): ...

    function.__annotations__["x"] = hint
    if default:
        function.__defaults__ = (default["default"],)
    signature = read_signature(function, Context, closed=True)
    return signature, fitting(signature)


def schema_of(hint, **default):
    return reader(hint, **default)[0].schema["properties"]["x"]


def fits(arguments, value):
    try:
        arguments(Raw(json.dumps({"x": value}).encode()))
    except Unmendable:
        return False
    return True


@pytest.mark.parametrize(("hint", "schema", "good", "bad"), TABLE, ids=IDS)
def test_the_table(hint, schema, good, bad):
    signature, arguments = reader(hint)
    assert signature.schema["properties"]["x"] == schema
    assert list(schema_of(hint)) == list(schema)  # in the same order, every time
    assert [value for value in good if not fits(arguments, value)] == []
    assert [value for value in bad if fits(arguments, value)] == []


@pytest.mark.parametrize(("hint", "schema", "good", "bad"), TABLE, ids=IDS)
def test_the_schema_judges_as_the_decoder_does(hint, schema, good, bad):
    judge = jsonschema_rs.validator_for(reader(hint)[0].schema, validate_formats=True)
    judged = [value for value in good if not (isinstance(value, dict) and None in value.values())]
    assert [value for value in judged if not judge.is_valid({"x": value})] == []
    if hint is not bytes and hint is not pathlib.Path and "tz" not in str(hint):  # no schema says these
        assert [value for value in bad if judge.is_valid({"x": value})] == []


@pytest.mark.parametrize("hint", [row[0] for row in TABLE], ids=IDS)
def test_every_schema_is_valid_in_its_dialect_and_in_one_piece(hint):
    schema = reader(hint)[0].schema
    assert jsonschema_rs.meta.is_valid({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema})
    assert schema["type"] == "object" and "$defs" not in schema and "$ref" not in json.dumps(schema)


TEXTS = some.text(some.characters(codec="utf-8"), max_size=8)
JSON = some.recursive(
    some.none() | some.booleans() | some.integers(-(2**70), 2**70) | some.floats(allow_nan=False, allow_infinity=False)
    | TEXTS | some.sampled_from(["z", "red", "circle", "1", "true", "[1]", "1010", "fast"]),
    lambda inner: some.lists(inner, max_size=3)
    | some.dictionaries(TEXTS | some.sampled_from(["x", "street", "mode", "type", "name"]), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
PLAIN = [row[0] for row in TABLE if row[0] not in LOOSE and "bytes" not in str(row[0]) and "tz=" not in str(row[0])]


@pytest.mark.parametrize("hint", PLAIN, ids=[str(hint) for hint in PLAIN])
@many(60)
@given(value=JSON)
def test_what_is_valid_decodes(hint, value):
    signature, arguments = reader(hint)
    if jsonschema_rs.is_valid(signature.schema, {"x": value}):
        assert fits(arguments, value)


@pytest.mark.parametrize("hint", PLAIN, ids=[str(hint) for hint in PLAIN])
@many(60)
@given(value=JSON)
def test_what_decodes_without_help_is_valid(hint, value):
    signature, _ = reader(hint)
    try:
        signature.decoder.decode(json.dumps({"x": value}).encode())
    except msgspec.ValidationError:
        return
    told = without_default_nulls(value)
    unique = told if hint != set[int] else list(dict.fromkeys(told))
    assert jsonschema_rs.is_valid(signature.schema, {"x": unique})


def without_default_nulls(value):
    """`floor: null` says what its absence says, so the schema does not offer it."""
    if isinstance(value, dict):
        return {name: member for name, member in value.items() if not (name == "floor" and member is None)}
    return value


# --- beyond the table ---


def test_only_a_type_that_contains_itself_is_a_reference():
    signature, arguments = reader(Tree)
    node = {"type": "array", "items": {"$ref": "#/$defs/Tree"}, "default": []}
    assert signature.schema["properties"]["x"] == {"$ref": "#/$defs/Tree"}
    assert signature.schema["$defs"] == {
        "Tree": {"type": "object", "properties": {"value": INTEGER, "children": node}, "required": ["value"]}
    }
    assert fits(arguments, {"value": 1, "children": [{"value": 2}]})
    assert not fits(arguments, {"value": 1, "children": [{"value": "x"}]})


def test_two_recursive_types_of_one_name_stay_two():
    def make():
        @dataclasses.dataclass
        class Node:
            next: "Node | None" = None

        Node.__annotations__["next"] = Node | None
        return Node

    one, other = make(), make()

    def function(a, b): ...

    function.__annotations__.update(a=one, b=other)
    schema = read_signature(function, Context).schema
    assert set(schema["$defs"]) == {"Node", "Node2"}


@pytest.mark.parametrize(
    ("hint", "default", "schema"),
    [
        (int, 5, {"type": "integer", "default": 5}),
        (int | None, None, INTEGER),
        (int, None, INTEGER),
        (int | None, 5, {"type": ["integer", "null"], "default": 5}),
        (int | str | None, None, {"type": ["integer", "string"]}),
        (Literal["b", "a"] | None, None, {"type": "string", "enum": ["b", "a"]}),
        (Address | None, None, ADDRESS),
        (list[int], [1], {"type": "array", "items": INTEGER, "default": [1]}),
        (Color, Color.BLUE, {"type": "string", "enum": ["red", "blue", "amber"], "default": "blue"}),
        (pathlib.Path, pathlib.Path("a"), {"type": "string", "default": "a"}),
        (datetime.date, datetime.date(2026, 1, 2), {"type": "string", "format": "date", "default": "2026-01-02"}),
        (Point, Point(1, 2), None),
        (int, object(), INTEGER),
        (float, float("inf"), {"type": "number"}),
    ],
)
def test_defaults(hint, default, schema):
    signature, arguments = reader(hint, default=default)
    found = signature.schema["properties"]["x"]
    assert found == schema if schema is not None else found["default"] == [1, 2]
    assert "required" not in signature.schema
    assert arguments(Raw(b"{}")) == {"x": default}


class Cat(msgspec.Struct, tag="cat"):
    size: Literal["small", "large"]


class Dog(msgspec.Struct, tag="dog"):
    mood: Literal["glad", "angry"]


class Bird(msgspec.Struct, tag="bird"):
    song: Literal["soft", "loud"]


def test_choices_keep_their_order_in_every_member_of_a_union():
    ways = schema_of(Cat | Dog | Bird)["anyOf"]
    assert [list(way["properties"].values())[1]["enum"] for way in ways] == [
        ["small", "large"],
        ["glad", "angry"],
        ["soft", "loud"],
    ]


class Kitten(Cat, tag="kitten"):
    pass


def test_choices_of_a_base_keep_their_order():
    assert schema_of(Kitten)["properties"]["size"]["enum"] == ["small", "large"]


@dataclasses.dataclass
class Undocumented:
    size: int = 1


@dataclasses.dataclass
class Documented:
    """How large it is."""

    size: int = 1


def test_only_what_the_author_wrote_about_a_dataclass_is_told():
    """Also after Python has written a signature there, which Python 3.15 does when it is read first."""
    for _ in range(2):
        assert "description" not in schema_of(Undocumented)
        assert schema_of(Documented)["description"] == "How large it is."
        assert (Undocumented.__doc__ or "").startswith("Undocumented(")


def test_flags_are_any_of_their_members_together():
    signature, arguments = reader(Rights)
    assert signature.schema["properties"]["x"] == {"type": "integer"}
    assert arguments(Raw(b'{"x": 3}')) == {"x": Rights.READ | Rights.WRITE}
    assert not fits(arguments, 8)


def test_null_is_accepted_where_it_is_the_default():
    _, arguments = reader(int, default=None)
    assert arguments(Raw(b'{"x": null}')) == {"x": None}


@pytest.mark.parametrize(
    "hint",
    [
        complex,
        type,
        dict[bool, int],
        dict[tuple[int, int], str],
        Circle | Address,
        list[int] | set[int],
        Annotated[str, Meta(ge=1)],
    ],
)
def test_a_type_that_json_has_not_is_refused_by_name(hint):
    with pytest.raises(LocalError, match="function"):
        reader(hint)


class Limit:
    """A constraint of a library that msgspec does not read."""

    def __init__(self, ge):
        self.ge = ge


Limit.__module__ = "annotated_types"


class Described(TypedDict):
    a: Required[Annotated[int, "How many"]]
    b: Annotated[int, "not this", Meta(description="this")]


class Lost(msgspec.Struct):
    a: Annotated[int, Limit(1)]


@dataclasses.dataclass
class Foreign:
    a: int
    __pydantic_fields__ = {"a": 1}


@dataclasses.dataclass
class Holding:
    foreign: Foreign  # by itself pydantic could read it, but not inside of a class that it does not know


@dataclasses.dataclass
class Kind:
    lives: int
    kind: str = dataclasses.field(default="cat", init=False)


@attrs.define
class Counted:
    lives: int
    count: int = attrs.field(default=0, init=False)


@dataclasses.dataclass
class Area:
    side: int
    area: int = dataclasses.field(init=False)


@pytest.mark.parametrize("hint", [Kind, Counted])
def test_what_a_class_sets_itself_is_not_asked_for(hint):
    assert list(schema_of(hint)["properties"]) == ["lives"]
    assert fits(reader(hint)[1], {"lives": 9})


def test_what_a_class_sets_itself_but_must_be_read_is_refused():
    with pytest.raises(LocalError, match=r"Area\.area is set by the class itself"):
        reader(Area)


def test_a_text_in_a_class_describes_its_field():
    properties = schema_of(Described)["properties"]
    assert [properties[name]["description"] for name in "ab"] == ["How many", "this"]


@pytest.mark.parametrize("hint", [Lost, list[Lost], Lost | None, Holding])
def test_a_check_that_would_be_lost_in_a_class_is_refused(hint):
    with pytest.raises(LocalError, match="checked"):
        reader(hint)
