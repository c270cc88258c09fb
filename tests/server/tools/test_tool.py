"""server/tools/tool.py: a function as a tool, and what its value becomes."""

import dataclasses
import json
import logging
import re
from typing import Annotated

import msgspec
import pytest
from msgspec import UNSET

from interlock.server.context import Context
from interlock.server.execution.thread_pool import Threads
from interlock.server.tools.tool import RegisteredTool
from interlock.transport.http.param_headers import ParamHeader
from interlock.wire.errors import InvalidParams, LocalError, Refused, ToolError
from interlock.wire.types.common import Icon
from interlock.wire.types.content import EmbeddedResource
from interlock.wire.types.tools import CallToolParams, ToolAnnotations
from support.doubles import Spoken


def tool(function, **facts):
    return RegisteredTool(function, threads=Threads(2), **facts)


async def call(registered, arguments=None):
    raw = UNSET if arguments is None else msgspec.Raw(arguments)
    params = CallToolParams(name=registered.name, arguments=raw)
    return await registered.call(Spoken("tools/call", params))


def text(result):
    return "\n".join(block["text"] for block in result["content"])


# --- what it says about itself ---


def test_a_tool_is_named_and_described_by_its_function():
    async def add(a: int):
        """Add things.

        Carefully.
        """

    noun = tool(add).noun
    assert (noun.name, noun.description, noun.title, noun.meta) == ("add", "Add things.\n\nCarefully.", UNSET, UNSET)
    assert noun.input_schema["properties"] == {"a": {"type": "integer"}}


def test_a_paragraph_over_several_lines_is_one_line():
    async def add():
        """Add things
        together.
        """

    assert tool(add).noun.description == "Add things together."


def test_facts_that_are_given_count():
    async def add(): ...

    hints = ToolAnnotations(read_only_hint=True)
    noun = tool(add, name="x", title="T", description="D", annotations=hints, meta={"a": 1}).noun
    assert (noun.name, noun.title, noun.description, noun.annotations, noun.meta) == ("x", "T", "D", hints, {"a": 1})


@pytest.mark.parametrize("name", ["a", "A-z_0.9", "x" * 128, "tools.list"])
def test_names_of_the_specification_are_accepted(name):
    async def function(): ...

    assert tool(function, name=name).name == name


@pytest.mark.parametrize("name", ["x" * 129, "a b", "é", "a/b", "a\n", "²", "a,b"])
def test_other_names_are_refused(name):
    async def function(): ...

    with pytest.raises(LocalError, match="tool name"):
        tool(function, name=name)


def test_a_lambda_needs_a_name():
    with pytest.raises(LocalError, match="tool name"):
        tool(lambda: 1)
    assert tool(lambda: 1, name="one").name == "one"


def test_icons_are_listed_and_checked():
    async def f(): ...

    icon = Icon(src="https://example.com/i.png", mime_type="image/png", sizes=["48x48"])
    assert tool(f, icons=[icon]).noun.icons == [icon]
    with pytest.raises(LocalError, match="f: the icon"):
        tool(f, icons=[Icon(src="http://example.com/i.png")])


def test_hints_are_booleans():
    async def f(): ...

    with pytest.raises(LocalError, match=r"f: annotations: .*bool"):
        tool(f, annotations=ToolAnnotations(read_only_hint="yes"))
    for odd in ({"read_only_hint": True}, {"readOnly": True, "title": "F"}):
        with pytest.raises(LocalError, match=r"f: annotations: there is no 'read.*say ToolAnnotations\("):
            tool(f, annotations=odd)
    with pytest.raises(LocalError, match="f: annotations"):
        tool(f, annotations=object())
    assert tool(f, annotations={"readOnlyHint": True}).noun.annotations == ToolAnnotations(read_only_hint=True)


def test_it_asks_in_one_of_two_ways():
    async def f(): ...

    assert (tool(f).park, tool(f, asks="replay").park, tool(f, asks="park").park) == (False, False, True)
    with pytest.raises(LocalError, match="asks='later'"):
        tool(f, asks="later")


def test_it_is_known_whether_it_may_speak():
    async def silent(): ...

    async def speaks(ctx: Context): ...

    assert not tool(silent).takes_context
    assert tool(speaks).takes_context


# --- calling ---


async def add(a: int, b: int = 1) -> str:
    return str(a + b)


@pytest.mark.parametrize(("arguments", "sum"), [(b'{"a":1}', "2"), (b'{"a":1,"b":2}', "3"), (b' {"a":1} ', "2")])
async def test_a_call_gives_its_value(arguments, sum):
    assert await call(tool(add), arguments) == {"content": [{"type": "text", "text": sum}]}


async def test_without_arguments_there_are_none():
    async def nothing() -> str:
        return "x"

    assert text(await call(tool(nothing))) == "x"


@pytest.mark.parametrize("arguments", [b"{}", b'{"a":"x"}', b'{"a":1.5}', b'{"a":null}', b'{"a":1,"b":[]}'])
async def test_wrong_values_are_for_the_model_to_mend(arguments):
    # isError, not a protocol error (SEP-1303, modern.md §13.2).
    result = await call(tool(add), arguments)
    assert result["isError"] is True
    assert "add" in text(result) and "`" not in text(result)


@pytest.mark.parametrize("arguments", [b"[]", b'"x"', b"7", b" [1]"])
async def test_arguments_that_are_no_object_are_a_broken_request(arguments):
    with pytest.raises(InvalidParams, match="object"):
        await call(tool(add), arguments)


@pytest.mark.parametrize("arguments", [b"null", b" null"])
async def test_null_in_the_place_of_arguments_is_none(arguments):
    assert text(await call(tool(lambda: "here", name="bare"), arguments)) == "here"
    assert "a: missing" in text(await call(tool(add), arguments))


@pytest.mark.parametrize("arguments", [b'{"a":1e400}', b'{"a":"\\ud800"}'])
async def test_arguments_that_are_no_json_inside_are_a_broken_request_too(arguments):
    # Raw members are skipped by their outline, so this is where they are found out: never an internal error.
    registered = tool(add)
    try:
        result = await call(registered, arguments)
    except InvalidParams:
        return
    assert result["isError"] is True


async def test_a_tool_error_goes_to_the_model_word_for_word():
    async def fails():
        raise ToolError("out of paper")

    assert await call(tool(fails)) == {"content": [{"type": "text", "text": "out of paper"}], "isError": True}


async def test_a_refusal_is_an_answer_of_the_protocol():
    async def refuses():
        raise Refused("no", code=5)

    with pytest.raises(Refused) as caught:
        await call(tool(refuses))
    assert caught.value.code == 5


@pytest.mark.parametrize("error", [RuntimeError("secret"), SystemExit("secret"), KeyboardInterrupt("secret")])
async def test_a_bug_tells_the_model_a_reference_and_the_log_everything(error, caplog):
    def fails():
        raise error

    with caplog.at_level(logging.ERROR, "interlock.server"):
        result = await call(tool(fails))
    assert result["isError"] is True
    assert "secret" not in text(result)
    reference = text(result).partition("reference ")[2].rstrip(")")
    assert reference in caplog.messages[0]
    assert "secret" in caplog.text


async def test_a_value_that_is_no_json_is_a_bug_of_the_tool(caplog):
    async def odd():
        return {"x": object()}

    assert (await call(tool(odd)))["isError"] is True
    assert caplog.records


# --- what it gives ---


async def test_an_annotation_of_data_is_declared_and_kept():
    async def f(a: int) -> dict[str, int]:
        return {"a": a}

    registered = tool(f)
    assert registered.noun.output_schema == {"type": "object", "additionalProperties": {"type": "integer"}}
    result = await call(registered, b'{"a":1}')
    assert bytes(result["structuredContent"]) == b'{"a":1}' and text(result) == '{"a":1}'


async def test_a_schema_by_hand_is_listed_word_for_word():
    async def f() -> dict:
        return {"a": 1}

    schema = {"type": "object", "properties": {"a": {"const": 1}}, "x-own": [1]}
    registered = tool(f, output_schema=schema)
    assert registered.noun.output_schema == schema and registered.noun.output_schema is not schema
    assert bytes((await call(registered))["structuredContent"]) == b'{"a":1}'


def test_no_schema_if_none_is_wanted():
    async def f() -> dict: ...

    assert tool(f, output_schema=False).noun.output_schema is UNSET


def test_a_tool_that_embeds_resources_is_known_by_its_annotation():
    async def plain() -> str: ...

    async def embeds() -> list[str | EmbeddedResource]: ...

    assert (tool(plain).embeds, tool(embeds).embeds) == (False, True)


# --- a schema of the author's own ---


async def test_a_given_schema_is_listed_as_it_is_and_the_arguments_come_in_one_dict():
    schema = {"type": "object", "allOf": [{"anyOf": [{"required": ["a"]}]}], "$defs": {"x": {"$anchor": "x"}}}

    async def free(given: dict) -> dict:
        return given

    registered = tool(free, input_schema=schema)
    assert registered.noun.input_schema == {**schema, "properties": {}}
    assert json.loads(text(await call(registered, b'{"a": [1, null]}'))) == {"a": [1, None]}
    assert (await call(registered))["isError"]
    with pytest.raises(InvalidParams, match="object"):
        await call(registered, b"[1]")


async def test_or_as_keywords_that_cannot_replace_the_context():
    async def free(ctx: Context, **given) -> str:
        return f"{type(ctx).__name__} {given}"

    registered = tool(free, input_schema={"type": "object"})
    assert text(await call(registered, b'{"a": 1}')) == "Context {'a': 1}"
    refused = await call(registered, b'{"ctx": 1}')
    assert refused["isError"] and "ctx: no such argument" in text(refused)


async def test_a_plain_function_takes_a_given_schema_too():
    def free(**given) -> str:
        return str(given)

    assert text(await call(tool(free, input_schema={"type": "object"}), b'{"a": 1}')) == "{'a': 1}"


def test_an_annotation_of_a_parameter_reaches_the_schema():
    """`x-mcp-header` says which argument a client repeats as a header (2026-07-28, transports/http)."""

    async def regional(region: Annotated[str, msgspec.Meta(extra_json_schema={"x-mcp-header": "Region"})] = ""): ...

    member = tool(regional).noun.input_schema["properties"]["region"]
    assert member == {"type": "string", "x-mcp-header": "Region", "default": ""}


# --- parameters in headers ---


def test_marked_parameters_are_read_once():
    async def f(a: Annotated[int, msgspec.Meta(extra_json_schema={"x-mcp-header": "A"})], b: str) -> None: ...

    assert tool(f).param_headers == (ParamHeader("A", "integer", ("a",)),)


def test_a_mark_that_breaks_a_rule_is_the_authors_mistake():
    async def f(a: Annotated[float, msgspec.Meta(extra_json_schema={"x-mcp-header": "A"})]) -> None: ...

    with pytest.raises(LocalError, match="f: x-mcp-header: a must be"):
        tool(f)


@pytest.mark.parametrize("raised", [KeyError("x"), RuntimeError("inside"), SystemExit(3), KeyboardInterrupt()])
async def test_a_class_that_fails_over_its_arguments_fails_the_call_with_a_reference(raised, caplog):
    @dataclasses.dataclass
    class Fragile:
        number: int

        def __post_init__(self):
            raise raised

    async def take(it: Fragile): ...

    result = await call(tool(take), b'{"it": {"number": 1}}')
    assert result["isError"] and re.fullmatch(r"The tool take failed unexpectedly \(reference \w+\)", text(result))
    assert caplog.records[-1].exc_info[1] is raised


async def test_a_class_may_say_to_the_model_what_is_wrong():
    @dataclasses.dataclass
    class Shelf:
        number: int

        def __post_init__(self):
            raise ToolError("there are shelves 1 to 9")

    async def take(it: Shelf): ...

    result = await call(tool(take), b'{"it": {"number": 10}}')
    assert result["isError"] and text(result) == "there are shelves 1 to 9"
