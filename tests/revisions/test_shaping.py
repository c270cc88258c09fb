"""revisions/shaping.py: whatever comes in, only what the revision knows goes out; and shaping twice is shaping once."""

from copy import deepcopy

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.revisions.shaping import plain, shape_noun, shape_result
from interlock.revisions.table import NEWEST, REVISIONS
from interlock.wire.errors import InvalidParams
from interlock.wire.exchange import Among, BadArguments
from interlock.wire.meta import SERVER_INFO
from interlock.wire.types.content import AudioContent, ResourceLink, TextContent
from interlock.wire.types.tools import Tool
from support.properties import JSON, many

ROWS = list(REVISIONS.values())
A, B, C, D, E = ROWS

# --- results of every kind, with every member any revision has ---

ANY = st.sampled_from([None, True, 1, "x", [1], {"a": 1}])
META = st.dictionaries(st.sampled_from([SERVER_INFO, "com.example/x"]), ANY, max_size=2)
ANNOTATIONS = st.fixed_dictionaries({}, optional={"audience": ANY, "priority": ANY, "lastModified": ANY})


def noun(**members):
    optional = {"title": ANY, "description": ANY, "icons": ANY, "_meta": META, "future": ANY, **members}
    return st.fixed_dictionaries({"name": ANY}, optional=optional)


CONTENTS = st.fixed_dictionaries({"uri": ANY}, optional={"text": ANY, "mimeType": ANY, "_meta": META})
BLOCK = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "image", "audio", "resource", "resource_link"])},
    optional={
        "text": ANY,
        "data": ANY,
        "mimeType": ANY,
        "uri": ANY,
        "name": ANY,
        "title": ANY,
        "icons": ANY,
        "resource": CONTENTS,
        "annotations": ANNOTATIONS,
        "_meta": META,
    },
)
TOOL = noun(inputSchema=ANY, outputSchema=ANY, annotations=ANY)
RESOURCE = noun(uri=ANY, mimeType=ANY, size=ANY, annotations=ANNOTATIONS)
PROMPT = noun(arguments=st.lists(noun(required=ANY), max_size=2))


def result(**members):
    optional = {"resultType": ANY, "ttlMs": ANY, "cacheScope": ANY, "nextCursor": ANY, "_meta": META}
    return st.fixed_dictionaries(members, optional=optional)


RESULTS = st.one_of(
    st.tuples(st.just("tools/list"), result(tools=st.lists(TOOL, max_size=2))),
    st.tuples(
        st.just("tools/call"),
        result(content=st.lists(BLOCK, max_size=3), structuredContent=ANY, isError=ANY),
    ),
    st.tuples(st.just("resources/list"), result(resources=st.lists(RESOURCE, max_size=2))),
    st.tuples(st.just("resources/templates/list"), result(resourceTemplates=st.lists(RESOURCE, max_size=2))),
    st.tuples(st.just("resources/read"), result(contents=st.lists(CONTENTS, max_size=2))),
    st.tuples(st.just("prompts/list"), result(prompts=st.lists(PROMPT, max_size=2))),
    st.tuples(
        st.just("prompts/get"),
        result(messages=st.lists(st.fixed_dictionaries({"role": ANY, "content": BLOCK}), max_size=2)),
    ),
    st.tuples(st.just("completion/complete"), result(completion=ANY)),
    st.tuples(st.just("example/own"), result(title=ANY, icons=ANY)),
)

# --- an inspector written apart from the walk: where each noun stands in a result ---

INSIDE = {
    "tools/list": lambda found: [("Tool", each) for each in found["tools"]],
    "tools/call": lambda found: [("CallToolResult", found)] + [("Content", each) for each in found["content"]],
    "resources/list": lambda found: [("Resource", each) for each in found["resources"]],
    "resources/templates/list": lambda found: [("ResourceTemplate", each) for each in found["resourceTemplates"]],
    "resources/read": lambda found: [("ResourceContents", each) for each in found["contents"]],
    "prompts/list": lambda found: (
        [("Prompt", each) for each in found["prompts"]]
        + [("PromptArgument", one) for each in found["prompts"] for one in each.get("arguments", [])]
    ),
    "prompts/get": lambda found: [("Content", each["content"]) for each in found["messages"]],
}


def nouns_in(method, found):
    yield "Result", found
    for kind, value in INSIDE.get(method, lambda found: [])(found):
        yield kind, value
        if kind in ("Content", "Resource", "ResourceTemplate") and "annotations" in value:
            yield "Annotations", value["annotations"]
        if kind == "Content" and "resource" in value and value["type"] == "resource":
            yield "ResourceContents", value["resource"]


def members_unknown_to(row, kind):
    return {pair.partition(".")[2] for pair in row.unknown if pair.startswith(kind + ".")}


@many(300)
@given(st.sampled_from(ROWS), RESULTS)
def test_no_member_that_the_revision_does_not_know_goes_out(row, case):
    method, given_result = case
    shaped = shape_result(row, method, given_result)
    for kind, value in nouns_in(method, shaped):
        if method == "example/own":
            break  # nobody but its author knows what the members of an own method mean
        assert not members_unknown_to(row, kind) & set(value), kind
        if kind == "Content":
            assert value["type"] in row.blocks
    if row is not NEWEST:
        assert SERVER_INFO not in shaped.get("_meta", {})


@many(300)
@given(st.sampled_from(ROWS), RESULTS)
def test_shaping_twice_is_shaping_once(row, case):
    method, given_result = case
    once = shape_result(row, method, given_result)
    assert shape_result(row, method, once) == once


@many(200)
@given(st.sampled_from(ROWS), RESULTS)
def test_the_result_that_was_given_stays_as_it_is(row, case):
    # A lasting result is shaped for several revisions: one must not see what another left.
    method, given_result = case
    before = deepcopy(given_result)
    shape_result(row, method, given_result)
    assert given_result == before


@many(100)
@given(RESULTS)
def test_the_newest_revision_gets_everything(case):
    method, given_result = case
    assert shape_result(NEWEST, method, given_result) is given_result


@many(200)
@given(st.sampled_from(ROWS), RESULTS)
def test_members_nobody_has_defined_survive(row, case):
    method, given_result = case
    shaped = shape_result(row, method, given_result)
    for (kind, before), (_, after) in zip(nouns_in(method, given_result), nouns_in(method, shaped), strict=False):
        if kind in ("Tool", "Resource", "ResourceTemplate", "Prompt") and "future" in before:
            assert after["future"] == before["future"]


@many(100)
@given(st.sampled_from(ROWS), st.sampled_from(["Implementation", "Progress", "Tool", "Nothing"]), JSON)
def test_any_value_can_stand_where_a_noun_should(row, kind, value):
    shaped = shape_noun(row, kind, value)
    assert shape_noun(row, kind, shaped) == shaped


# --- what becomes of blocks that a revision has no type for ---


def blocks(row, *content):
    return shape_result(row, "tools/call", {"content": list(content)})["content"]


@pytest.mark.parametrize("row", [A, B])
@pytest.mark.parametrize(
    ("link", "text"),
    [
        (ResourceLink(uri="a:b", name="n", title="T"), "T: a:b"),
        (ResourceLink(uri="a:b", name="n"), "n: a:b"),
        ({"type": "resource_link", "uri": "a:b"}, "resource: a:b"),
        ({"type": "resource_link", "name": "n"}, "n"),
    ],
)
def test_a_link_becomes_text_with_its_uri(row, link, text):
    assert blocks(row, link) == [{"type": "text", "text": text}]


def test_a_link_stays_a_link_where_there_are_links():
    assert blocks(C, ResourceLink(uri="a:b", name="n"))[0]["type"] == "resource_link"


def test_sound_is_described_where_there_is_none():
    [block] = blocks(A, AudioContent(data="aGk=", mime_type="audio/wav"))
    assert block["type"] == "text"
    assert "audio/wav" in block["text"]
    assert "aGk=" not in block["text"]
    assert blocks(B, AudioContent(data="aGk=", mime_type="audio/wav"))[0]["type"] == "audio"
    assert "unknown" in blocks(A, {"type": "audio"})[0]["text"]


def test_annotations_go_with_the_text():
    block = {"type": "audio", "mimeType": "a/b", "annotations": {"priority": 1, "lastModified": "x"}}
    assert blocks(A, block)[0]["annotations"] == {"priority": 1}


def test_the_text_twin_of_structured_content_stays():
    # handshake.md §15.3: where structuredContent is dropped the JSON text remains.
    result = {"content": [{"type": "text", "text": "{}"}], "structuredContent": msgspec.Raw(b"{}")}
    assert shape_result(B, "tools/call", result) == {"content": [{"type": "text", "text": "{}"}]}
    assert "structuredContent" in shape_result(C, "tools/call", result)


# --- nouns and raw bytes ---


def test_nouns_are_walked_like_dicts():
    tool = Tool(name="n", title="T", input_schema={"type": "object"}, meta={"a": 1})
    shaped = shape_result(A, "tools/list", {"tools": [tool]})
    assert shaped == {"tools": [{"name": "n", "inputSchema": {"type": "object"}}]}
    assert shape_result(D, "tools/list", {"tools": [tool]})["tools"][0] is tool


def test_raw_bytes_are_walked_too():
    raw = msgspec.Raw(b'[{"name":"n","title":"T"}]')
    assert shape_result(A, "tools/list", {"tools": raw}) == {"tools": [{"name": "n"}]}


def test_plain_makes_data_of_anything():
    value = {"a": msgspec.Raw(b"[1]"), "b": [TextContent(text="x")], "c": None}
    assert plain(value) == {"a": [1], "b": [{"type": "text", "text": "x"}], "c": None}
    assert plain(msgspec.Raw(b'{"x":2}')) == {"x": 2}


def test_meta_that_held_only_the_server_goes_away():
    assert shape_result(D, "tools/call", {"content": [], "_meta": {SERVER_INFO: {}}}) == {"content": []}
    kept = shape_result(D, "tools/call", {"content": [], "_meta": {SERVER_INFO: {}, "a": 1}})
    assert kept == {"content": [], "_meta": {"a": 1}}


def test_progress_has_no_message_in_the_first_revision():
    told = {"progressToken": 1, "progress": 1, "message": "m"}
    assert shape_noun(A, "Progress", told) == {"progressToken": 1, "progress": 1}
    assert shape_noun(B, "Progress", told) is told


# --- structured output ---


@pytest.mark.parametrize("value", [[1], 7, "x", None, True, msgspec.Raw(b" [1]"), msgspec.Raw(b"7")])
def test_structured_output_is_an_object_before_the_newest_revision(value):
    result = {"content": [], "structuredContent": value}
    for row in (A, B):
        assert "structuredContent" not in shape_result(row, "tools/call", result)
    for row in (C, D):
        assert shape_result(row, "tools/call", result)["structuredContent"] == {"result": value}
    assert shape_result(E, "tools/call", result) is result


def test_an_object_among_other_values_is_wrapped_like_these():
    result = {"content": [], "structuredContent": Among(a=1)}
    assert shape_result(D, "tools/call", result)["structuredContent"] == {"result": {"a": 1}}
    assert shape_result(E, "tools/call", result) is result
    assert plain(result) == {"content": [], "structuredContent": {"a": 1}}


def wrapped(schema):
    [tool] = shape_result(D, "tools/list", {"tools": [{"name": "a", "inputSchema": {}, "outputSchema": schema}]})[
        "tools"
    ]
    return tool.get("outputSchema")


def test_definitions_stay_where_pointers_look_for_them():
    schema = {"$schema": "s", "anyOf": [{"$ref": "#/$defs/A"}], "$defs": {"A": {"items": {"$ref": "#/$defs/A"}}}}
    assert wrapped(schema) == {
        "type": "object",
        "properties": {"result": {"anyOf": [{"$ref": "#/$defs/A"}]}},
        "required": ["result"],
        "$schema": "s",
        "$defs": schema["$defs"],
    }


def test_a_schema_with_a_name_of_its_own_stays_whole():
    schema = {"$id": "https://example.com/s", "$ref": "#/$defs/A", "$defs": {"A": {"type": "integer"}}}
    assert wrapped(schema)["properties"] == {"result": schema}


@pytest.mark.parametrize("pointer", ["#", "#/items", "#/properties/a"])
def test_a_schema_that_points_to_what_moves_is_not_listed(pointer):
    assert wrapped({"type": "array", "items": {"anyOf": [{"$ref": pointer}]}}) is None


@pytest.mark.parametrize("value", [{"a": 1}, msgspec.Raw(b' {"a":1}'), TextContent(text="x")])
def test_an_object_stays_where_the_revision_knows_it(value):
    result = {"content": [], "structuredContent": value}
    assert "structuredContent" in shape_result(C, "tools/call", result)


def test_a_schema_of_output_that_is_no_object_is_wrapped_in_its_tool_alone():
    array = {"name": "a", "inputSchema": {}, "outputSchema": {"type": "array"}}
    object_ = {"name": "b", "inputSchema": {}, "outputSchema": {"type": "object"}}
    noun = Tool(name="c", input_schema={}, output_schema={"type": "array"})
    result = {"tools": [array, object_, noun]}
    shaped = shape_result(D, "tools/list", result)["tools"]
    wrapped = {"type": "object", "properties": {"result": {"type": "array"}}, "required": ["result"]}
    assert [plain(tool)["outputSchema"] for tool in shaped] == [wrapped, {"type": "object"}, wrapped]
    assert "outputSchema" in array and noun.output_schema == {"type": "array"}
    assert shape_result(E, "tools/list", result) is result


def test_the_members_of_an_own_method_stay_as_they_are():
    result = {"title": "T", "resultType": "mine", "tools": 7, "structuredContent": [1]}
    for row in ROWS:
        assert shape_result(row, "example/own", result) == result


@pytest.mark.parametrize("revision", REVISIONS.values(), ids=lambda row: row.name)
def test_arguments_that_do_not_fit_are_told_to_the_model_or_refused(revision):
    told = BadArguments({"content": [{"type": "text", "text": "a: missing"}], "isError": True})
    if revision.tells_arguments:
        assert shape_result(revision, "tools/call", told)["isError"] is True
    else:
        with pytest.raises(InvalidParams, match="a: missing"):
            shape_result(revision, "tools/call", told)
    plain_result = {"content": [], "isError": True}
    assert shape_result(revision, "tools/call", plain_result)["isError"] is True
