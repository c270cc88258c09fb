"""What tools give: text, blocks, data with a schema and its text twin, in the words of every revision."""

from __future__ import annotations

import base64
import json
import re

import jsonschema_rs
import pytest

from interlock.wire.errors import Refused
from interlock.wire.meta import OUTPUT_MISMATCH
from support.giving import SINCE_2025_03, SINCE_2025_06, SINCE_2025_11, given, over
from support.servers.giving import FAILURES, PNG
from support.wire_peer import ALL, CARRIERS, MODERN, server_under_test

BLOCKS_OF = {revision: {"text", "image", "resource"} for revision in ALL}
for known in SINCE_2025_03:
    BLOCKS_OF[known] = BLOCKS_OF[known] | {"audio"}
for known in SINCE_2025_06:
    BLOCKS_OF[known] = BLOCKS_OF[known] | {"resource_link"}

DATA_TOOLS = [
    ("place", {}, {"city": "Graz", "zip": None}),
    ("number", {}, 7),
    ("numbers", {}, [1, 2]),
    ("maybe", {"there": True}, {"city": "Graz", "zip": None}),
    ("maybe", {"there": False}, None),
    ("even", {"number": 4}, {"even": 4}),
    ("pair", {}, [1, "one"]),
]


async def listed(client):
    return {tool["name"]: tool for tool in (await client.request("tools/list"))["tools"]}


async def called(client, name, arguments=None, **options):
    return await client.request("tools/call", {"name": name, "arguments": arguments or {}}, **options)


def texts(result):
    return [block["text"] for block in result["content"] if block["type"] == "text"]


# --- data ---


@pytest.mark.requirement("TOOLS-15", "TOOLS-19", "TOOLS-20", "TOOLS-22", "TOOLS-23")
@pytest.mark.requirement("TOOLS-008", "TOOLS-017", "TOOLS-018", "TOOLS-019", "TOOLS-020")
@over(SINCE_2025_06)
async def test_data_fits_the_schema_that_is_listed_and_has_a_text_twin(carrier, revision):
    async with given(carrier, revision) as client:
        tools = await listed(client)
        for name, arguments, value in DATA_TOOLS:
            schema, result = tools[name]["outputSchema"], await called(client, name, arguments)
            data = result["structuredContent"]
            jsonschema_rs.Draft202012Validator(schema).validate(data)
            assert [json.loads(text) for text in texts(result)] == [value] and "isError" not in result
            assert "$schema" not in schema
            if revision in MODERN:
                assert data == value and result["resultType"] == "complete"
            else:
                assert schema["type"] == "object" and data == (
                    value if name in ("place", "even") else {"result": value}
                )


@over(ALL[:2])
async def test_older_revisions_get_the_text_twin_alone(carrier, revision):
    async with given(carrier, revision) as client:
        assert not any("outputSchema" in tool for tool in (await listed(client)).values())
        for name, arguments, value in DATA_TOOLS:
            result = await called(client, name, arguments)
            assert "structuredContent" not in result and [json.loads(text) for text in texts(result)] == [value]


@pytest.mark.requirement("TOOLS-20", "TOOLS-020", "TOOLS-23", "TOOLS-017")
@over(ALL)
async def test_data_that_does_not_fit_is_delivered_as_text_and_marked(carrier, revision):
    """No client gets structured content that breaks the schema, and none loses what the tool did."""
    async with given(carrier, revision) as client:
        for name, arguments, kept in (("wrong", {}, {"town": "Graz"}), ("even", {"number": 3}, {"even": 3})):
            result = await called(client, name, arguments)
            value, note = texts(result)
            assert json.loads(value) == kept and "has done its work" in note
            assert result["isError"] is True and "structuredContent" not in result
            assert result["_meta"][OUTPUT_MISMATCH] in note


@pytest.mark.requirement("TOOLS-23", "TOOLS-017")
@over(ALL)
async def test_content_is_always_there(carrier, revision):
    async with given(carrier, revision) as client:
        assert (await called(client, "nothing"))["content"] == []
        for name in ("place", "number", "told", "by_hand"):
            assert isinstance((await called(client, name))["content"], list)


@over(ALL)
async def test_all_of_a_result_by_hand(carrier, revision):
    async with given(carrier, revision) as client:
        result = await called(client, "by_hand", {"fails": True})
        assert [block["type"] for block in result["content"]] == ["text", "image"]
        assert result["isError"] is True and result["_meta"]["com.example/b"] == 2
        assert result.get("structuredContent") == (None if revision < "2025-06-18" else {"a": [1]})
        assert "isError" not in await called(client, "by_hand")


# --- blocks ---


@pytest.mark.requirement("TOOLS-16", "TOOLS-17", "TOOLS-45", "TOOLS-022", "TOOLS-023")
@over(ALL)
async def test_every_block_in_the_words_of_the_revision(carrier, revision):
    async with given(carrier, revision) as client:
        text, picture, sound, file, binary, link = (await called(client, "blocks"))["content"]
        assert {block["type"] for block in (text, picture, sound, file, binary, link)} == BLOCKS_OF[revision]
        assert text["text"] == "text" and base64.b64decode(picture["data"]) == PNG
        assert file["resource"] == {"uri": "file:///a.txt", "mimeType": "text/plain", "text": "hi"}
        assert base64.b64decode(binary["resource"]["blob"]) == b"\0"
        assert "note://one" in (link["uri"] if "uri" in link else link["text"])
        noted = {"audience": ["user"], "priority": 0.5}
        if revision >= "2025-06-18":
            noted["lastModified"] = "2025-01-12T15:00:58Z"
        assert picture["annotations"] == link["annotations"] == noted
        assert ("_meta" in picture) == (revision >= "2025-06-18")
        assert ("icons" in link) == (revision >= "2025-11-25")
        linked = [each["uri"] for each in (await client.request("resources/list"))["resources"]]
        assert linked == []  # a link need not be listed


@pytest.mark.requirement("TOOLS-18", "TOOLS-024")
@over(ALL)
async def test_who_embeds_resources_declares_them_and_answers_for_them(carrier, revision):
    async with given(carrier, revision) as client:
        assert client.capabilities.can("resources")
        assert await client.list_resources() == [] and await client.list_resource_templates() == []


@pytest.mark.requirement("TOOLS-27", "TOOLS-026")
@over(ALL)
async def test_a_block_of_the_wrong_shape_never_reaches_the_wire(carrier, revision):
    async with given(carrier, revision) as client:
        result = await called(client, "broken_block")
        assert result["isError"] is True and "reference" in texts(result)[0]
        assert [block["type"] for block in result["content"]] == ["text"]


# --- failures ---


@pytest.mark.requirement("TOOLS-27", "TOOLS-026")
@over(ALL)
async def test_words_for_the_model_reach_it(carrier, revision):
    async with given(carrier, revision) as client:
        for name, words in (("told", "out of paper"), ("told_in_group", "out of ink")):
            result = await called(client, name)
            assert result["isError"] is True and texts(result) == [words]


@pytest.mark.requirement("TOOLS-27", "TOOLS-026")
@over(ALL)
async def test_whatever_is_raised_the_call_fails_and_the_server_lives(carrier, revision):
    async with given(carrier, revision) as client:
        for tool in ("fail", "fail_in_thread"):
            for how in FAILURES:
                result = await called(client, tool, {"how": how})
                assert result["isError"] is True, how
                [text] = texts(result)
                assert re.fullmatch(rf"The tool {tool} failed unexpectedly \(reference [0-9a-f]{{8}}\)", text), text
        assert texts(await called(client, "number")) == ["7"]


@pytest.mark.requirement("TOOLS-24", "TOOLS-025")
@over(ALL)
async def test_an_unknown_tool_is_an_error_of_the_protocol(carrier, revision):
    async with given(carrier, revision) as client:
        for name in ("no_such_tool", "Place", ""):
            with pytest.raises(Refused) as caught:
                await called(client, name)
            assert caught.value.code == -32602


# --- every frame, judged by the official schema ---


@pytest.mark.requirement("TOOLS-23", "TOOLS-40", "TOOLS-45", "TOOLS-017", "TOOLS-019")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", ALL)
async def test_all_that_tools_give_is_what_the_schema_of_the_revision_says(carrier, revision):
    async with server_under_test(carrier, revision, server="giving") as peer:
        await peer.result("tools/list", {})
        for name, arguments, _ in DATA_TOOLS:
            await peer.result("tools/call", {"name": name, "arguments": arguments})
        for name in ("wrong", "by_hand", "nothing", "blocks", "told", "steps", "growing"):
            await peer.result("tools/call", {"name": name, "arguments": {}}, meta={"progressToken": name})


@pytest.mark.requirement("TOOLS-40", "TOOLS-42")
@over(ALL)
async def test_a_tool_says_of_itself_what_the_revision_knows(carrier, revision):
    async with given(carrier, revision) as client:
        tools = await listed(client)
        told = tools["place"]
        expected = {"name", "description", "inputSchema"}
        expected |= {"annotations"} if revision in SINCE_2025_03 else set()
        expected |= {"title", "outputSchema", "_meta"} if revision in SINCE_2025_06 else set()
        expected |= {"icons"} if revision in SINCE_2025_11 else set()
        assert set(told) == expected
        if "annotations" in told:
            assert told["annotations"] == {"title": "Place", "readOnlyHint": True}  # what is unsaid has its default
        assert "execution" not in told


@pytest.mark.requirement("TOOLS-47")
@over(SINCE_2025_11[:1])
async def test_no_tool_offers_tasks(carrier, revision):
    """Absent means forbidden, which is what this server does with task-augmented calls: it offers no tasks."""
    async with given(carrier, revision) as client:
        assert all("execution" not in tool for tool in (await listed(client)).values())
        assert "tasks" not in (client._open_edge().discovered.get("capabilities") or {})
