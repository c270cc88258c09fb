"""server/choices.py: what an author wrote is offered in the order in which it was written."""

import dataclasses
import enum
from collections.abc import Sequence
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, NotRequired, Optional, TypedDict, TypeVar

import msgspec
import pytest

from interlock.server.choices import put_in_order

T = TypeVar("T")
Size = Literal["small", "medium", "large"]
Alias = NewType("Alias", Size)
SIZES = ["small", "medium", "large"]


class Level(enum.Enum):
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    TOP = "high"  # noqa: PIE796 - an alias of the one before


class Rank(enum.IntEnum):
    LAST = 3
    FIRST = 1


class Renamed(msgspec.Struct, rename="camel", tag=True):
    my_size: Size = "small"
    other: Size = msgspec.field(default="small", name="elsewhere")


class Other(msgspec.Struct, tag=True):
    size: Size


@dataclasses.dataclass
class Order:
    size: Size


class Typed(TypedDict):
    size: NotRequired[Annotated[Size, msgspec.Meta(title="T")]]


class Pair(NamedTuple):
    size: Size
    level: Level


class Row(msgspec.Struct, array_like=True, tag="row"):
    size: Size


class Box(msgspec.Struct, Generic[T]):
    size: Size
    inner: T


class Tree(msgspec.Struct):
    size: Size
    left: Optional["Tree"] = None


class Both(msgspec.Struct):
    up: Literal["a", "c", "b"]
    down: Literal["c", "a", "b"]


def enums_in(schema: Any) -> list[list[Any]]:
    """Every list of choices, tags excepted."""
    if isinstance(schema, list):
        return [found for part in schema for found in enums_in(part)]
    if not isinstance(schema, dict):
        return []
    own = [schema["enum"]] if len(schema.get("enum", [])) > 1 else []
    return own + [found for key, part in schema.items() if key != "enum" for found in enums_in(part)]


@pytest.mark.parametrize(
    ("wanted", "choices"),
    [
        (Size, [SIZES]),
        (Alias, [SIZES]),
        (Annotated[Size, msgspec.Meta(title="S")], [SIZES]),
        (Level, [["low", "medium", "high"]]),
        (Rank, [[3, 1]]),
        (Literal["z", 2, None, "b", 1], [["z", 2, None, "b", 1]]),
        (Size | None, [SIZES]),
        (Size | int, [SIZES]),
        (list[Size], [SIZES]),
        (Sequence[Size], [SIZES]),
        (set[Level], [["low", "medium", "high"]]),
        (tuple[Size, ...], [SIZES]),
        (tuple[int, Size], [SIZES]),
        (dict[str, Size], [SIZES]),
        (dict[str, list[Size | None]], [SIZES]),
        (Renamed, [SIZES, SIZES]),
        (Order, [SIZES]),
        (Typed, [SIZES]),
        (Pair, [SIZES, ["low", "medium", "high"]]),
        (Row, [SIZES]),
        (Box[Level], [SIZES, ["low", "medium", "high"]]),
        (Tree, [SIZES]),
        (Both, [["a", "c", "b"], ["c", "a", "b"]]),
        (list[Order] | dict[str, Order], [SIZES]),
        (Renamed | Other | None, [SIZES, SIZES, SIZES]),
    ],
)
def test_it_is_as_it_was_written(wanted, choices):
    schema = msgspec.json.schema(wanted)
    before = [sorted(map(str, each)) for each in enums_in(schema)]
    assert put_in_order(schema, wanted) is schema
    assert enums_in(schema) == choices
    assert [sorted(map(str, each)) for each in enums_in(schema)] == before


@pytest.mark.parametrize("wanted", [int, str, Any, None, list, dict[str, Any], msgspec.Raw])
def test_without_choices_nothing_changes(wanted):
    schema = msgspec.json.schema(wanted)
    assert put_in_order(schema, wanted) == msgspec.json.schema(wanted)


def test_choices_of_another_type_are_left_alone():
    for listed in (["a", "b"], [1, True], "text", [{}]):
        assert put_in_order({"enum": listed}, Literal["b", "c"]) == {"enum": listed}
    assert put_in_order({"enum": [True, 2]}, Literal[2, 1]) == {"enum": [True, 2]}
    assert put_in_order({"$ref": "#/$defs/Gone"}, Level) == {"$ref": "#/$defs/Gone"}
