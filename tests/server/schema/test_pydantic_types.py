"""server/schema/pydantic_types.py: what only pydantic can read is read by it. Its part is played by doubles: it is no
dependency."""

import json
import sys
import types
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Raw

from interlock import Server
from interlock.server.arguments.decode import fitting
from interlock.server.context import Context
from interlock.server.schema.pydantic_types import adapted, is_adaptable
from interlock.server.schema.signature import read_signature
from interlock.server.tools.encoding import encode_data
from interlock.server.tools.output_schema import read_output
from interlock.testing import MemoryClient
from interlock.wire.errors import LocalError


class Own:
    """A type of pydantic's, such as a URL."""

    def __init__(self, text: str) -> None:
        self.text = text

    @classmethod
    def __get_pydantic_core_schema__(cls) -> None: ...


class Cat:
    """A model of it."""

    def __init__(self, lives: int) -> None:
        self.lives = lives

    @classmethod
    def __get_pydantic_core_schema__(cls) -> None: ...

    @classmethod
    def model_json_schema(cls, mode: str = "validation") -> dict[str, Any]:
        return {"type": "object", "properties": {"lives": {"type": "integer"}}, "required": ["lives"]}

    @classmethod
    def model_validate(cls, value: Any) -> "Cat":
        return cls(value["lives"])

    def model_dump(self, mode: str, by_alias: bool) -> dict[str, Any]:
        return {"lives": self.lives}


class Told(msgspec.Struct):
    """msgspec reads it, whatever else it says of itself."""

    a: int

    @classmethod
    def __get_pydantic_core_schema__(cls) -> None: ...


class Tells:
    discriminator = "kind"


class TypeAdapter:
    """Reads texts as `Own` and objects as `Cat`; keeps what it was made for."""

    def __init__(self, hint: Any) -> None:
        if hint == Cat | complex:
            raise RuntimeError("complex is beyond me\nfor many reasons")
        self.hint = hint

    def json_schema(self, mode: str) -> dict[str, Any]:
        return {"anyOf": [{"type": "string", "title": "T"}, Cat.model_json_schema()], "x-mode": mode}

    def validate_json(self, data: bytes) -> Any:
        return self.validate_python(json.loads(data))

    def validate_python(self, value: Any) -> Any:
        if isinstance(value, str):
            return Own(value)
        if not isinstance(value, dict) or "lives" not in value:
            raise ValueError("neither a text nor a cat")
        return Cat(value["lives"])


@pytest.fixture(autouse=True)
def library(monkeypatch):
    module = types.ModuleType("pydantic")
    module.__dict__["TypeAdapter"] = TypeAdapter
    core = types.ModuleType("pydantic_core")
    core.__dict__["to_jsonable_python"] = lambda value: value.text
    monkeypatch.setitem(sys.modules, "pydantic", module)
    monkeypatch.setitem(sys.modules, "pydantic_core", core)


@pytest.mark.parametrize(
    ("hint", "needed"),
    [
        *((hint, True) for hint in (Own, Cat | Own, Cat | str, Cat | str | None, Annotated[Cat, "x"] | int)),
        *((hint, False) for hint in (Cat, Cat | None, int, int | str, Told, Told | None)),
    ],
)
def test_what_it_is_needed_for(hint, needed):
    assert is_adaptable(hint) is needed


def test_without_the_library_nothing_is(monkeypatch):
    monkeypatch.delitem(sys.modules, "pydantic")
    assert not is_adaptable(Own)


def taking(hint):
    def function(x): ...

    function.__annotations__["x"] = hint
    signature = read_signature(function, Context)
    return signature, fitting(signature)


def test_a_type_of_its_own_is_read_by_it():
    signature, arguments = taking(list[Own])
    assert signature.schema["properties"]["x"]["items"]["anyOf"][0] == {"type": "string"}
    found = arguments(Raw(b'{"x": ["a"]}'))["x"]
    assert type(found[0]) is Own and found[0].text == "a"


def test_a_union_is_read_as_a_whole_and_none_stays_outside():
    signature, arguments = taking(Cat | Own | None)
    assert signature.schema["properties"]["x"]["anyOf"][-1] == {"type": "null"}
    assert arguments(Raw(b'{"x": null}')) == {"x": None}
    assert arguments(Raw(b'{"x": {"lives": 9}}'))["x"].lives == 9
    with pytest.raises(ValueError, match="neither a text nor a cat"):
        arguments(Raw(b'{"x": [1]}'))


def test_what_tells_the_members_apart_is_its_to_read():
    model, rest = adapted(Cat | Own, (Tells(), "words"))
    hint = model.model_validate.__self__.hint
    assert hint.__origin__ == Cat | Own and type(hint.__metadata__[0]) is Tells
    assert rest == ("words",)


def test_a_description_stays_with_the_argument():
    assert taking(Annotated[Cat | Own, "which"])[0].schema["properties"]["x"]["description"] == "which"


def test_what_it_cannot_read_is_told_at_registration_in_one_line():
    with pytest.raises(LocalError, match="complex is beyond me") as refused:
        taking(Cat | complex)
    assert "\n" not in str(refused.value)


def test_a_result_of_such_a_type_is_declared_and_written():
    async def give(): ...

    give.__annotations__["return"] = list[Cat | Own]
    found = read_output(give, None)
    assert found.schema is not None and found.schema["items"]["x-mode"] == "serialization"
    assert found.check is not None
    found.check(encode_data([Cat(1), Own("a")]))
    with pytest.raises(ValueError):
        found.check(b'[{"lives": "1"}]')


async def test_a_tool_takes_and_gives_them():
    server = Server("pets")

    @server.tool
    async def feed(pet: Cat | Own, how: Literal["much", "little"] = "much") -> Cat | Own:
        return Own(how) if isinstance(pet, Own) else pet

    async with MemoryClient(server) as client:
        assert (await client.call_tool("feed", {"pet": {"lives": 9}})).structured == {"lives": 9}
        assert (await client.call_tool("feed", {"pet": "x", "how": "little"})).structured == "little"
        assert (await client.call_tool("feed", {"pet": 5})).is_error
