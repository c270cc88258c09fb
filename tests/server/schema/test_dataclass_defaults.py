"""server/schema/dataclass_defaults.py: dataclasses that were read from JSON have all their fields."""

import dataclasses
import enum
from typing import Annotated, Any

import msgspec
import pytest

from interlock import Server
from interlock.server.schema.dataclass_defaults import filler_of
from interlock.testing import MemoryClient


class Level(enum.Enum):
    LOW = "low"


@dataclasses.dataclass
class Item:
    text: str
    level: Level = Level.LOW
    due: str | None = None
    tags: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Inner:
    a: int = 1


@dataclasses.dataclass(frozen=True)
class Outer:
    inner: Inner
    inners: frozenset[Inner] = frozenset()


@dataclasses.dataclass(slots=True)
class Slotted:
    inner: Inner
    b: int = 2


@dataclasses.dataclass
class Late:
    a: int
    b: int = dataclasses.field(init=False)


class Held(msgspec.Struct):
    inner: Inner
    more: dict[str, list[Inner]] = {}


@dataclasses.dataclass
class Tree:
    name: str = "leaf"
    under: list["Tree"] = dataclasses.field(default_factory=list)


@pytest.mark.parametrize(
    ("hint", "sent"),
    [
        (Item, b'{"text":"x"}'),
        (Outer, b'{"inner":{},"inners":[{}]}'),
        (Slotted, b'{"inner":{}}'),
        (Held, b'{"inner":{},"more":{"a":[{}]}}'),
        (Tree, b'{"under":[{"under":[{}]}]}'),
        (list[Inner], b"[{}]"),
        (tuple[Inner, int], b"[{},1]"),
        (dict[str, Annotated[Inner | None, "x"]], b'{"a":{}}'),
    ],
)
def test_what_was_left_at_the_class_is_in_the_instance(hint, sent):
    value = msgspec.json.decode(sent, type=hint)
    whole = msgspec.json.encode(msgspec.json.decode(msgspec.json.encode(dataclasses_as_python_does(value))))
    fill = filler_of([hint])
    assert fill is not None
    assert msgspec.json.encode(value) != whole  # msgspec has not learned it yet
    fill(value)
    assert msgspec.json.encode(value) == whole


def dataclasses_as_python_does(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return {f.name: dataclasses_as_python_does(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, msgspec.Struct):
        return {name: dataclasses_as_python_does(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, dict):
        return {key: dataclasses_as_python_does(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [dataclasses_as_python_does(each) for each in value]
    return value


@pytest.mark.parametrize("hint", [int, list[str], dict[str, Any], msgspec.Raw, Late])
def test_where_nothing_can_be_missing_nothing_is_done(hint):
    assert filler_of([hint]) is None


@dataclasses.dataclass
class Kind:
    kind: str = dataclasses.field(default="cat", init=False)


def test_of_what_python_made_only_what_no_constructor_takes_is_missing():
    assert filler_of([Item, Outer], made_here=True) is None
    fill = filler_of([list[Kind]], made_here=True)
    assert fill is not None
    value = [Kind()]
    fill(value)
    assert vars(value[0]) == {"kind": "cat"}


def test_a_field_that_nobody_has_set_stays_absent():
    fill = filler_of([Item])
    assert fill is not None
    value = Late(1)
    fill(value)
    assert vars(value) == {"a": 1}


async def test_a_tool_gives_back_the_whole_record_it_was_given():
    server = Server("todo")

    @server.tool
    async def add(item: Item, at: int = 0) -> Item:
        return item

    async with MemoryClient(server) as client:
        for place in (1, "1"):  # as it is, and mended
            found = await client.call_tool("add", {"item": {"text": "x"}, "at": place})
            assert found.structured == {"text": "x", "level": "low", "due": None, "tags": []}
