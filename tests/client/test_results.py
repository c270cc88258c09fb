"""client/results.py: typed where the specification types it, untouched where it does not."""

import pytest
from hypothesis import given

from interlock.client.results import read_call, read_contents, read_items, read_prompt
from interlock.wire.errors import BadResult
from interlock.wire.types.content import AudioContent, EmbeddedResource, ImageContent, ResourceLink, TextContent
from interlock.wire.types.tools import Tool
from support.properties import JSON, JSON_OBJECTS, many


@pytest.mark.parametrize(
    ("block", "kind"),
    [
        ({"type": "text", "text": "x"}, TextContent),
        ({"type": "image", "data": "aGk=", "mimeType": "a/b"}, ImageContent),
        ({"type": "audio", "data": "aGk=", "mimeType": "a/b"}, AudioContent),
        ({"type": "resource", "resource": {"uri": "a:b", "text": "x"}}, EmbeddedResource),
        ({"type": "resource_link", "uri": "a:b", "name": "n"}, ResourceLink),
    ],
)
def test_blocks_are_read_as_their_types(block, kind):
    [found] = read_call({"content": [block]}).content
    assert type(found) is kind


@pytest.mark.parametrize(
    "block",
    [
        {"type": "hologram", "data": 1},
        {"type": "text"},
        {"type": "text", "text": 7},
        {"type": 7},
        {"type": ["text"]},
        {"type": {}},
        {},
        "text",
        None,
        [],
    ],
)
def test_strangers_are_passed_on_as_they_came(block):
    assert read_call({"content": [block]}).content == [block]


def test_a_link_of_a_summary_is_a_link():
    # handshake.md §16.13: `{type: "resource", uri}` of servers written from a summary.
    [found] = read_call({"content": [{"type": "resource", "uri": "a:b"}]}).content
    assert (type(found), found.uri, found.name) == (ResourceLink, "a:b", "a:b")
    [named] = read_call({"content": [{"type": "resource", "uri": "a:b", "name": "n"}]}).content
    assert named.name == "n"


def test_the_members_of_a_call():
    found = read_call(
        {
            "content": [{"type": "text", "text": "a"}, {"type": "hologram"}, {"type": "text", "text": "b"}],
            "structuredContent": {"x": 1},
            "isError": True,
            "_meta": {"k": 1},
        }
    )
    assert (found.text, found.structured, found.is_error, found.meta) == ("a\nb", {"x": 1}, True, {"k": 1})


@pytest.mark.parametrize(
    "result", [{}, {"content": []}, {"content": [], "isError": "yes", "_meta": 7, "structuredContent": None}]
)
def test_what_is_not_said_is_nothing(result):
    found = read_call(result)
    assert (found.content, found.text, found.structured, found.is_error, found.meta) == ([], "", None, False, {})


def test_two_results_share_nothing():
    one, other = read_call({}), read_call({})
    one.meta["x"] = 1
    assert other.meta == {}


@pytest.mark.parametrize("content", [None, {}, "x", 7])
def test_content_that_is_no_array_is_no_result(content):
    with pytest.raises(BadResult):
        read_call({"content": content})


@many(200)
@given(JSON_OBJECTS, JSON)
def test_any_result_is_read_or_bad(members, content):
    for read in (read_call, read_prompt, read_contents):
        for result in (members, {**members, "content": content, "messages": content, "contents": content}):
            try:
                read(result)
            except BadResult:
                pass


def test_a_prompt_is_its_messages():
    found = read_prompt(
        {
            "messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}],
            "description": "D",
            "_meta": {"k": 1},
        }
    )
    assert (found.messages[0].role, found.messages[0].content.text) == ("user", "hi")
    assert (found.description, found.meta) == ("D", {"k": 1})
    assert read_prompt({"messages": [], "description": 7}).description is None


@pytest.mark.parametrize("messages", [None, {}, [{}], [{"role": "system", "content": {}}], [{"role": "user"}]])
def test_messages_of_the_wrong_shape_are_no_result(messages):
    with pytest.raises(BadResult, match="prompts/get"):
        read_prompt({"messages": messages})


def test_contents_and_items_are_typed():
    [found] = read_contents({"contents": [{"uri": "a:b", "text": "x"}]})
    assert found.text == "x"
    [tool] = read_items({"tools": [{"name": "n", "inputSchema": {}}]}, "tools", Tool, "tools/list")
    assert tool.name == "n"
    for result in ({}, {"tools": None}, {"tools": [{}]}):
        with pytest.raises(BadResult, match="tools/list"):
            read_items(result, "tools", Tool, "tools/list")
