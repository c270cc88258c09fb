"""server/tools/results.py: from what a tool returned to a CallToolResult."""

import dataclasses
import json
import logging

import attrs
import msgspec
import pytest
from msgspec import UNSET

from interlock.server.content import File, Image
from interlock.server.tools.output_schema import read_output
from interlock.server.tools.results import ToolResult, failed, finisher, result_of_value
from interlock.wire.errors import LocalError
from interlock.wire.exchange import Among
from interlock.wire.meta import OUTPUT_MISMATCH
from interlock.wire.types.content import ImageContent, TextContent
from support.duck_models import Model

PNG = b"\x89PNG\r\n\x1a\n"


class Struct(msgspec.Struct):
    a: int


@dataclasses.dataclass
class Data:
    a: int


@attrs.define
class Attrs:
    a: int


def finish(value, hint, given=None):
    async def t(): ...

    t.__annotations__["return"] = hint
    found = read_output(t, given)
    return finisher("t", found.schema, found.check, found.fill)(value)


def structured(result):
    found = result.get("structuredContent", UNSET)
    return json.loads(bytes(found)) if isinstance(found, msgspec.Raw) else found


def texts(result):
    return [block["text"] for block in result["content"]]


# --- without a schema ---


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("x", [{"type": "text", "text": "x"}]),
        ("", [{"type": "text", "text": ""}]),
        ("é", [{"type": "text", "text": "é"}]),
        (None, []),
        (["a", "b"], [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]),
        (("a",), [{"type": "text", "text": "a"}]),
        (7, [{"type": "text", "text": "7"}]),
        (True, [{"type": "text", "text": "true"}]),
        ([], [{"type": "text", "text": "[]"}]),
        ([1, "a"], [{"type": "text", "text": '[1,"a"]'}]),
    ],
)
def test_plain_values_become_text(value, content):
    assert result_of_value(value) == {"content": content}


def test_blocks_stay_blocks():
    image = ImageContent(data="aGk=", mime_type="image/png")
    assert result_of_value(image) == {"content": [image]}
    assert result_of_value([image, "x"]) == {"content": [image, {"type": "text", "text": "x"}]}
    assert result_of_value(TextContent(text="x"))["content"][0].text == "x"


def test_helpers_are_blocks():
    image = Image(PNG)
    assert result_of_value(image) == {"content": [image.block]}
    assert [type(each).__name__ for each in result_of_value((image, File(b"x", name="a")))["content"]] == [
        "ImageContent",
        "EmbeddedResource",
    ]


def test_beside_blocks_everything_else_is_text():
    content = result_of_value([Image(PNG), {"a": 1}, None, "x"])["content"]
    assert [block["text"] for block in content[1:]] == ['{"a":1}', "null", "x"]


@pytest.mark.parametrize("value", [{"a": 1}, Struct(1), Data(1), Attrs(1), Model(1)])
def test_records_are_structured_with_their_text_twin(value):
    result = result_of_value(value)
    assert structured(result) == {"a": 1} and json.loads(texts(result)[0]) == {"a": 1}


def test_a_list_of_records_that_nobody_declared_is_text_alone():
    result = result_of_value([{"a": 1}])
    assert "structuredContent" not in result and json.loads(texts(result)[0]) == [{"a": 1}]


@pytest.mark.parametrize("value", [b"x", bytearray(b"x"), object(), "\ud800", ["\ud800"], TextContent(text=7)])
def test_what_cannot_go_out_is_a_bug(value):
    with pytest.raises((TypeError, ValueError, OverflowError, NotImplementedError)):
        result_of_value(value)


def test_a_failure_is_marked():
    assert failed("no") == {"content": [{"type": "text", "text": "no"}], "isError": True}


# --- by hand ---


def test_all_of_it_by_hand():
    given = ToolResult(content=["a", Image(PNG)], structured=Struct(1), is_error=True, meta={"com.example/a": 1})
    result = result_of_value(given)
    assert result["content"][0] == {"type": "text", "text": "a"} and result["content"][1].mime_type == "image/png"
    assert (structured(result), result["isError"], result["_meta"]) == ({"a": 1}, True, {"com.example/a": 1})


def test_nothing_by_hand_is_an_empty_result():
    assert result_of_value(ToolResult()) == {"content": []}
    assert result_of_value(ToolResult(meta={})) == {"content": []}


def test_one_block_needs_no_list():
    assert texts(result_of_value(ToolResult(content="x"))) == ["x"]


def test_data_by_hand_gets_its_text_twin_unless_the_author_says_otherwise():
    assert texts(result_of_value(ToolResult(structured=[1]))) == ["[1]"]
    assert result_of_value(ToolResult(structured=None))["content"] == [{"type": "text", "text": "null"}]
    assert result_of_value(ToolResult(structured={"a": 1}, content=[]))["content"] == []


def test_reserved_keys_by_hand_are_a_bug():
    with pytest.raises(LocalError, match="reserved"):
        result_of_value(ToolResult(meta={"io.modelcontextprotocol/serverInfo": 1}))


# --- with a schema ---


@pytest.mark.parametrize(
    ("value", "hint", "data"),
    [
        (Struct(1), Struct, {"a": 1}),
        ({"a": 1}, Struct, {"a": 1}),
        (Data(1), Data, {"a": 1}),
        (Model(1), Model, {"a": 1}),
        (7, int, 7),
        ([1, 2], list[int], [1, 2]),
        (["a"], list[str], ["a"]),
        (None, Struct | None, None),
        (ToolResult(structured=Struct(1)), Struct, {"a": 1}),
    ],
)
def test_what_fits_is_structured_with_its_text_twin(value, hint, data):
    result = finish(value, hint)
    assert structured(result) == data and json.loads(texts(result)[0]) == data
    assert "isError" not in result


@dataclasses.dataclass
class Kind:
    kind: str = dataclasses.field(default="cat", init=False)
    lives: int = 9


@pytest.mark.parametrize("value", [Kind(), ToolResult(structured=Kind())])
def test_what_a_class_sets_itself_is_written_too(value):
    result = finish(value, Kind if isinstance(value, Kind) else ToolResult, None if isinstance(value, Kind) else Kind)
    assert structured(result) == {"kind": "cat", "lives": 9}
    assert json.loads(result["content"][0]["text"]) == {"kind": "cat", "lives": 9}


def test_an_object_of_a_tool_that_also_gives_other_values_is_marked():
    assert type(finish(Struct(1), Struct | None)["structuredContent"]) is Among
    assert type(finish(ToolResult(structured=Struct(1)), Struct | None)["structuredContent"]) is Among
    assert type(finish(Struct(1), Struct)["structuredContent"]) is msgspec.Raw


@pytest.mark.parametrize(
    ("value", "hint", "kept"),
    [
        ({"a": "one"}, Struct, '{"a":"one"}'),
        ({"b": 1}, Struct, '{"b":1}'),
        ("a text", Struct, "a text"),
        ([1, "x"], list[int], '[1,"x"]'),
        (ToolResult(content="kept", structured={"a": "x"}), Struct, "kept"),
        (ToolResult(content="kept"), Struct, "kept"),
    ],
)
def test_what_does_not_fit_is_delivered_marked_and_logged(value, hint, kept, caplog):
    # the tool has run: its content is never lost, and never told as if nothing had happened (users: destructive output)
    with caplog.at_level(logging.ERROR, "interlock.server"):
        result = finish(value, hint)
    assert result["isError"] is True and "structuredContent" not in result
    first, note = texts(result)
    assert first == kept
    assert "has done its work" in note and result["_meta"][OUTPUT_MISMATCH] in note
    assert note.partition("reference ")[2][:8] in caplog.messages[0]


def test_blocks_of_a_tool_that_promised_data_are_delivered():
    result = finish(Image(PNG), Struct)
    assert result["content"][0].mime_type == "image/png" and result["isError"]


def test_the_reason_is_bounded_and_harmless():
    result = finish({"a": "\x1b[2J" + "x" * 5000}, Struct)
    assert len(result["_meta"][OUTPUT_MISMATCH]) < 400 and "\x1b" not in result["_meta"][OUTPUT_MISMATCH]


def test_meta_by_hand_stays_beside_the_mark():
    result = finish(ToolResult(structured=7, meta={"com.example/a": 1}), Struct)
    assert set(result["_meta"]) == {"com.example/a", OUTPUT_MISMATCH}


def test_a_failure_by_hand_owes_no_data():
    assert finish(ToolResult(content="no", is_error=True), Struct) == failed("no")


def test_a_schema_by_hand_judges():
    schema = {"type": "object", "properties": {"a": {"multipleOf": 2}}}
    assert structured(finish({"a": 4}, dict, schema)) == {"a": 4}
    assert finish({"a": 3}, dict, schema)["isError"] is True


def test_what_is_no_json_is_a_bug_also_with_a_schema():
    with pytest.raises((TypeError, NotImplementedError)):
        finish({"a": object()}, Struct)
