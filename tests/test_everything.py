"""examples/everything.py: what the official suite asks for, said to every revision in its own words.

Where a raw peer speaks, every frame is judged by the official schema of its revision.
"""

from __future__ import annotations

import asyncio
import base64
import json

import pytest

from interlock import Client, Refused
from support.examples import Ears, connect, process, refusal, watching
from support.servers.everything import module, server
from support.wire_peer import ALL, MODERN, server_under_test

every_revision = pytest.mark.parametrize("revision", ALL)


def everything(revision):
    return server_under_test("memory", revision, server="everything")


async def blocks(peer, name, arguments=None):
    return (await peer.result("tools/call", {"name": name, "arguments": arguments or {}}))["content"]


@every_revision
async def test_every_list_can_be_had(revision):
    async with everything(revision) as peer:
        tools = (await peer.result("tools/list", {}))["tools"]
        prompts = (await peer.result("prompts/list", {}))["prompts"]
        resources = (await peer.result("resources/list", {}))["resources"]
        templates = (await peer.result("resources/templates/list", {}))["resourceTemplates"]
    assert (tools[0]["name"], resources[0]["uri"]) == ("test_simple_text", "test://static-text")
    assert all(tool["description"] for tool in tools) and all(prompt["description"] for prompt in prompts)
    assert templates[0]["uriTemplate"] == "test://template/{id}/data"


@every_revision
async def test_blocks_are_those_the_revision_has(revision):
    async with everything(revision) as peer:
        [picture] = await blocks(peer, "test_image_content")
        assert base64.b64decode(picture["data"], validate=True).startswith(b"\x89PNG")
        [sound] = await blocks(peer, "test_audio_content")
        [held] = await blocks(peer, "test_embedded_resource")
        kinds = [block["type"] for block in await blocks(peer, "test_multiple_content_types")]
    assert kinds == ["text", "image", "resource"] and held["resource"]["mimeType"] == "text/plain"
    if revision == ALL[0]:  # the first revision has no sounds
        assert sound["type"] == "text" and "audio/wav" in sound["text"]
    else:
        assert sound["mimeType"] == "audio/wav" and base64.b64decode(sound["data"]).startswith(b"RIFF")


@every_revision
async def test_resources_are_read(revision):
    async with everything(revision) as peer:
        [text] = (await peer.result("resources/read", {"uri": "test://static-text"}))["contents"]
        [data] = (await peer.result("resources/read", {"uri": "test://static-binary"}))["contents"]
        [made] = (await peer.result("resources/read", {"uri": "test://template/123/data"}))["contents"]
        refused = await peer.error("resources/read", {"uri": "test://template/..%2F/data"})
    assert text["text"] and data["mimeType"] == "image/png" and data["blob"]
    assert made["uri"] == "test://template/123/data" and json.loads(made["text"])["id"] == "123"
    assert refused["code"] == (-32602 if revision in MODERN else -32002)


@every_revision
async def test_prompts_are_got(revision):
    async with everything(revision) as peer:
        simple = await peer.result("prompts/get", {"name": "test_simple_prompt"})
        given = {"name": "test_prompt_with_arguments", "arguments": {"arg1": "one", "arg2": "two"}}
        [told] = (await peer.result("prompts/get", given))["messages"]
        given = {"name": "test_prompt_with_embedded_resource", "arguments": {"resourceUri": "test://x"}}
        first, _ = (await peer.result("prompts/get", given))["messages"]
        picture, _ = (await peer.result("prompts/get", {"name": "test_prompt_with_image"}))["messages"]
        missing = await peer.error("prompts/get", {"name": "test_prompt_with_arguments", "arguments": {"arg1": "1"}})
    assert simple["messages"][0]["role"] == "user"
    assert "one" in told["content"]["text"] and "two" in told["content"]["text"]
    assert first["content"]["resource"]["uri"] == "test://x" and picture["content"]["mimeType"] == "image/png"
    assert missing["code"] == -32602


@every_revision
async def test_arguments_are_completed(revision):
    async with everything(revision) as peer:
        ref = {"type": "ref/prompt", "name": "test_prompt_with_arguments"}
        found = await peer.result("completion/complete", {"ref": ref, "argument": {"name": "arg1", "value": "park"}})
        none = await peer.result("completion/complete", {"ref": ref, "argument": {"name": "arg2", "value": ""}})
        ref = {"type": "ref/resource", "uri": "test://template/{id}/data"}
        numbers = await peer.result("completion/complete", {"ref": ref, "argument": {"name": "id", "value": "12"}})
        ref = {"type": "ref/prompt", "name": "no_such_prompt"}
        refused = await peer.error("completion/complete", {"ref": ref, "argument": {"name": "a", "value": ""}})
    assert found["completion"]["values"] == ["park"] and none["completion"]["values"] == []
    assert numbers["completion"]["values"] == ["12", "123"] and refused["code"] == -32602


async def test_completions_are_declared_where_there_is_a_word_for_it():
    for revision in ALL:
        async with server_under_test("memory", revision, server="everything", opened=False) as peer:
            assert ("completions" in (await peer.open())["capabilities"]) == (revision != ALL[0])


@every_revision
async def test_a_schema_keeps_every_word(revision):
    async with everything(revision) as peer:
        tools = {tool["name"]: tool for tool in (await peer.result("tools/list", {}))["tools"]}
    schema = tools["json_schema_2020_12_tool"]["inputSchema"]
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$defs"]["address"]["$anchor"] and schema["additionalProperties"] is False
    assert isinstance(schema["allOf"][0]["anyOf"], list) and {"if", "then", "else"} <= set(schema)
    assert tools["test_x_mcp_header"]["inputSchema"]["properties"]["region"]["x-mcp-header"] == "Region"


@every_revision
async def test_failures_and_progress_are_told(revision):
    async with everything(revision) as peer:
        failed = await peer.result("tools/call", {"name": "test_error_handling"})
        await peer.result("tools/call", {"name": "test_tool_with_progress"}, meta={"progressToken": "p1"})
        told = peer.notices("notifications/progress")
    assert failed["isError"] is True and failed["content"][0]["text"]
    assert [(each["progressToken"], each["progress"]) for each in told] == [("p1", 0), ("p1", 50), ("p1", 100)]


async def test_the_lists_change_and_change_back():
    async with everything(MODERN[0]) as peer:
        before = await peer.result("tools/list", {})
        for kind in ("tool", "prompt"):
            [said] = await blocks(peer, f"test_trigger_{kind}_change")
            assert said["text"] == f"Added and removed passing_{kind}."
        assert await peer.result("tools/list", {}) == before


# --- tools that ask: one line of the author in every revision that has the question ---

SAID = {
    "test_elicitation": "User response: test, test",
    "test_elicitation_sep1034_defaults": "John Doe",
    "test_elicitation_sep1330_enums": "option1",
    "test_streaming_elicitation": "ok: True",
    "test_sampling": "LLM response: Paris",
    "test_missing_capability": "Paris",
    "test_input_required_result_elicitation": "Hello, test!",
    "test_input_required_result_sampling": "The model says: Paris",
    "test_input_required_result_list_roots": "Roots: file:///workspace",
    "test_input_required_result_request_state": "state-ok: True",
    "test_input_required_result_multiple_inputs": "Paris test, 1 roots",
    "test_input_required_result_multi_round": "test likes test.",
    "test_input_required_result_tampered_state": "ok: True",
    "test_input_required_result_capabilities": "test, Paris",
}
ARGUMENTS = {"test_elicitation": {"message": "Who?"}, "test_sampling": {"prompt": "The capital of France?"}}
HAVE_FORMS = [revision for revision in ALL if revision >= "2025-06-18"]


def fill_in(params):
    samples = {"string": "test", "boolean": True, "integer": 1, "number": 1.5, "array": []}
    fields = params["requestedSchema"]["properties"].items()
    content = {name: part.get("default", (part.get("enum") or [samples[part["type"]]])[0]) for name, part in fields}
    content |= {"titledSingle": "value1"} if "titledSingle" in content else {}
    return {"action": "accept", "content": content}


def say_paris(params):
    return {"role": "assistant", "content": {"type": "text", "text": "Paris"}, "model": "none"}


@pytest.mark.parametrize("revision", HAVE_FORMS)
async def test_tools_ask_and_go_on(revision):
    async with Client(
        server, revision=revision, elicit=fill_in, sample=say_paris, roots=["file:///workspace"]
    ) as client:
        for name, said in SAID.items():
            if revision == "2025-06-18" and name == "test_elicitation_sep1330_enums":
                with pytest.raises(Refused, match="choice of several"):  # its forms have no such field yet
                    await client.call_tool(name)
                continue
            result = await client.call_tool(name, ARGUMENTS.get(name))
            assert not result.is_error and said in result.text, (name, result.text)
        prompt = await client.get_prompt("test_input_required_result_prompt")
    assert prompt.messages[0].content.text == "Write a greeting. It is about test."


async def test_only_what_the_client_can_answer_is_asked():
    async with Client(server, sample=say_paris) as client:
        assert (await client.call_tool("test_input_required_result_capabilities")).text == "Paris"
    async with Client(server) as client:
        assert "nobody" in (await client.call_tool("test_input_required_result_capabilities")).text
        with pytest.raises(Refused) as caught:
            await client.call_tool("test_missing_capability")
    assert caught.value.code == -32021 and caught.value.data["requiredCapabilities"]["sampling"] == {}


def test_every_asking_tool_is_shown():
    asking = {name for name in vars(module) if name.startswith(("test_elicit", "test_input_required_result"))}
    assert asking - {"test_input_required_result_prompt"} <= set(SAID)


# --- the same as a process, by our client ---


@every_revision
async def test_the_contract_over_stdio(revision):
    ears, steps = Ears(), []
    options = {"elicit": fill_in, "sample": say_paris, "roots": ["file:///workspace"], "on_notification": ears}
    async with connect(process("everything.py"), revision, **options) as client:
        plain = await client.call_tool("test_simple_text")
        assert plain.text == "This is a simple text response for testing."
        assert (await client.call_tool("test_error_handling")).is_error
        await client.call_tool("test_tool_with_progress", on_progress=lambda done, of, _: steps.append((done, of)))
        assert steps == [(0, 100), (50, 100), (100, 100)]
        assert (await client.call_tool("test_reconnection")).text == "Still here."  # no stream to let go here
        assert (await client.call_tool("test_sampling", {"prompt": "?"})).text == "LLM response: Paris"
        if revision in HAVE_FORMS:
            assert (await client.call_tool("test_elicitation", {"message": "?"})).text == "User response: test, test"
        else:
            assert "no elicitation/create" in await refusal(client.call_tool("test_elicitation", {"message": "?"}))
        async with watching(client, ears, "test://watched-resource", lists=("toolsListChanged", "promptsListChanged")):
            await client.call_tool("test_trigger_tool_change")
            await ears.until("notifications/tools/list_changed")
            await client.call_tool("test_trigger_prompt_change")
            await ears.until("notifications/prompts/list_changed")
            await client.call_tool("touch", {"uri": "test://watched-resource"})
            await ears.until("notifications/resources/updated", uri="test://watched-resource")
        told = await refusal(client.call_tool("passing_tool"))
        assert "Unknown tool" in told, "it has gone again: else one of several workers would list more than another"


@every_revision
async def test_log_messages_over_stdio(revision):
    """By the level of the session, or of the request, and not below."""
    ears = Ears()
    async with connect(process("everything.py"), revision, on_notification=ears) as client:
        meta = {"_meta": {"io.modelcontextprotocol/logLevel": "debug"}} if revision in MODERN else {}
        if not meta:
            assert await client.request("logging/setLevel", {"level": "debug"}) == {}
        await client.request("tools/call", {"name": "test_tool_with_logging", "arguments": {}, **meta})
        told = [(await ears.until("notifications/message"))["data"] for _ in range(3)]
        if not meta:
            await client.request("logging/setLevel", {"level": "error"})
        await client.call_tool("test_logging_tool")
        await client.ping()
    assert told == ["Tool execution started", "Tool processing data", "Tool execution completed"]
    assert [method for method, _ in ears.all if method == "notifications/message"] == []


async def test_two_clients_of_different_eras_do_not_mix_up_their_answers():
    """Each with a process of its own, and each with many questions open at once."""

    async def ask(revision, name):
        def who(params):
            return {"action": "accept", "content": {"name": name, "color": "blue"}}

        async with connect(process("everything.py"), revision, elicit=who) as client:
            calls = (client.call_tool("test_input_required_result_multi_round") for _ in range(20))
            return {result.text for result in await asyncio.gather(*calls)}

    old, new = await asyncio.gather(ask("2025-06-18", "Ada"), ask(MODERN[0], "Bob"))
    assert (old, new) == ({"Ada likes blue."}, {"Bob likes blue."})


HOSTILE = [
    ("test_sampling", {}),
    ("test_sampling", {"prompt": ["a"]}),
    ("test_x_mcp_header", {"region": {}}),
    ("json_schema_2020_12_tool", {"contactMethod": "phone"}),
    ("json_schema_2020_12_tool", {"phone": "1", "contactMethod": "phone", "extra": 1}),
    ("json_schema_2020_12_tool", {"phone": "1", "contactMethod": "pigeon"}),
]


@every_revision
async def test_hostile_arguments_are_refused_in_words(revision):
    async with connect(process("everything.py"), revision) as client:
        for tool, arguments in HOSTILE:
            told = await refusal(client.call_tool(tool, arguments))
            assert told and "reference" not in told, (tool, arguments, told)
        assert "Unknown tool" in await refusal(client.call_tool("passing_tool"))
        assert (await client.call_tool("test_simple_text")).text
