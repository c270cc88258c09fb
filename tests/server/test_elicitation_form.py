"""server/elicitation_form.py: a form out of a type, and the answer as that type."""

import dataclasses
import enum
from typing import Annotated, Any, Literal, TypedDict, get_args

import msgspec
import pytest

from interlock.server.elicitation_form import check_accepted, form_of
from interlock.server.input import read_form
from interlock.wire.errors import InvalidParams, LocalError


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Seat(msgspec.Struct):
    row: Annotated[int, msgspec.Meta(ge=1, le=40, title="Row")]
    window: bool = True
    color: Color = Color.RED
    meal: Literal["veg", "fish"] | None = None
    extras: list[Literal["bag", "lounge"]] = []


@dataclasses.dataclass
class Person:
    name: str
    age: int | None = None


class Pair(TypedDict):
    a: int
    b: str


def test_a_record():
    form = form_of(Seat)
    assert form.schema["properties"] == {
        "row": {"type": "integer", "minimum": 1, "maximum": 40, "title": "Row"},
        "window": {"type": "boolean", "default": True},
        "color": {"type": "string", "enum": ["red", "blue"], "default": "red"},
        "meal": {"type": "string", "enum": ["veg", "fish"]},
        "extras": {"type": "array", "items": {"type": "string", "enum": ["bag", "lounge"]}, "default": []},
    }
    assert form.schema["required"] == ["row"]
    content = {"row": 7, "color": "blue", "extras": ["bag"]}
    check_accepted(form, content)
    assert form.read(content) == Seat(row=7, color=Color.BLUE, extras=["bag"])


@pytest.mark.parametrize(
    ("wanted", "content", "value"),
    [
        (Person, {"name": "Ada"}, Person("Ada")),
        (Person, {"name": "Ada", "age": 36}, Person("Ada", 36)),
        (Pair, {"a": 1, "b": "x"}, {"a": 1, "b": "x"}),
        (str, {"value": "x"}, "x"),
        (bool, {"value": False}, False),
        (float, {"value": 1.5}, 1.5),
        (Literal["a", "b"], {"value": "b"}, "b"),
        (Color, {"value": "red"}, Color.RED),
    ],
)
def test_what_comes_back(wanted, content, value):
    form = form_of(wanted)
    check_accepted(form, content)
    assert form.read(content) == value


def test_choices_stand_in_the_order_in_which_they_were_written():
    for wanted in (Literal["low", "medium", "high"], Literal["high", "medium", "low"]):
        assert form_of(wanted).schema["properties"]["value"]["enum"] == list(get_args(wanted))
    assert form_of(list[Color]).schema["properties"]["value"]["items"]["enum"] == ["red", "blue"]


def test_a_json_schema_gives_a_dict():
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    form = form_of(schema)
    assert form.schema == schema
    check_accepted(form, {"name": "x"})
    assert form.read({"name": "x"}) == {"name": "x"}
    with pytest.raises(InvalidParams):
        check_accepted(form, {})


def test_choices_are_a_list_of_texts_in_their_order():
    form = form_of(["later", "now"])
    assert form.schema["properties"]["value"]["enum"] == ["later", "now"]
    check_accepted(form, {"value": "now"})
    assert form.read({"value": "now"}) == "now"
    with pytest.raises(InvalidParams):
        check_accepted(form, {"value": "never"})


@pytest.mark.parametrize("content", [None, {}, {"note": "fine"}])
def test_a_yes_needs_no_content(content):
    form = form_of(None)
    assert form.schema == {"type": "object", "properties": {}}
    form.check({"action": "accept", "content": content})
    assert read_form("Sure?", form, {"action": "accept", "content": content}) is None
    assert read_form("Sure?", form, {"action": "accept"}) is None


class Nested(msgspec.Struct):
    inner: Seat


@pytest.mark.parametrize(
    "wanted", [Nested, list[int], dict[str, int], Any, bytes, object, {"type": "string"}, [], ["a", 1], 3]
)
def test_what_no_form_can_ask_for(wanted):
    with pytest.raises(LocalError):
        form_of(wanted)


@pytest.mark.parametrize("content", [None, {}, {"row": "7"}, {"row": 0}, {"row": 7, "color": "green"}])
def test_what_does_not_fit(content):
    with pytest.raises(InvalidParams):
        check_accepted(form_of(Seat), content)


class SeatModel:
    """A model in pydantic's manner."""

    def __init__(self, row):
        self.row = row

    @classmethod
    def model_json_schema(cls):
        row = {"title": "Row", "anyOf": [{"type": "integer"}, {"type": "null"}], "default": None}
        return {"title": "Seat", "type": "object", "properties": {"row": row}}

    @classmethod
    def model_validate(cls, value):
        if value.get("row") == 13:
            raise ValueError("there is no row 13")
        return cls(value.get("row"))


def test_a_model_asks_with_its_own_schema_and_reads_the_answer_itself():
    form = form_of(SeatModel)
    assert form.schema == {"type": "object", "properties": {"row": {"type": "integer"}}, "required": []}
    assert form.read({"row": 7}).row == 7
    with pytest.raises(InvalidParams, match="there is no row 13"):
        form.read({"row": 13})


@dataclasses.dataclass
class Tree:
    under: list["Tree"]


def test_what_contains_itself_is_no_form():
    with pytest.raises(LocalError, match="contains itself"):
        form_of(Tree)


@dataclasses.dataclass
class Wish:
    text: str
    loud: bool = False


@pytest.mark.parametrize(("wanted", "value"), [(int, True), (int, 1.5), (bool, 1), (str, 1), (float, "1")])
def test_a_value_of_another_type_is_not_taken_for_one(wanted, value):
    with pytest.raises(InvalidParams):
        form_of(wanted).read({"value": value})


def test_a_form_is_made_once_for_a_type():
    assert form_of(int) is form_of(int) and form_of(int).identity != form_of(str).identity
    assert form_of({"type": "object", "properties": {}}).identity == b""


def test_what_was_left_out_is_there_with_its_default():
    assert vars(form_of(Wish).read({"text": "x"})) == {"text": "x", "loud": False}


@pytest.mark.parametrize("content", [{"value": 1}, {"value": 1, "note": "x"}])
def test_a_plain_value_fits_alone_and_beside_others(content):
    form_of(int).check({"action": "accept", "content": content})


@pytest.mark.parametrize(
    "content", [None, [], {}, {"other": 1}, {"value": True}, {"value": "1"}, {"value": 1, "note": {"deep": 1}}]
)
def test_what_is_no_such_plain_value_is_refused(content):
    with pytest.raises(InvalidParams):
        form_of(int).check({"action": "accept", "content": content})


def test_nothing_is_asked_of_what_was_declined():
    form_of(int).check({"action": "decline"})


def test_a_type_with_bounds_is_looked_at_in_full():
    with pytest.raises(InvalidParams):
        form_of(Annotated[int, msgspec.Meta(ge=5)]).check({"action": "accept", "content": {"value": 4}})
