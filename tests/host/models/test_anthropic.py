"""The Messages API, spoken with a server on a real socket that has its shapes."""

import json

import pytest

from interlock.host.models.anthropic import AnthropicModel
from interlock.host.models.model import (
    CallPart,
    ModelBusy,
    ModelError,
    ModelRefused,
    ModelRequest,
    ModelTool,
    TextPart,
    Usage,
    gather,
)
from interlock.wire.errors import LocalError
from support.http_peer import HttpPeer, http
from support.model_api import anthropic_events, stream_of

IMAGE = {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}
TOOL = ModelTool(name="add", description="Adds.", input_schema={"type": "object", "properties": {"a": {}}})


def model(peer):
    return AnthropicModel("claude-x", key="k-1", base_url=peer.url.removesuffix("/mcp"), tries=1)


def text(words, role="user"):
    return {"role": role, "content": {"type": "text", "text": words}}


async def asked(request, *said, **more):
    """What it answered, and what it was sent."""
    async with HttpPeer(lambda *_: stream_of(anthropic_events(*said, **more))) as peer:
        reply = await gather(model(peer).reply(request))
    sent = peer.requests[0]
    assert (sent.path, sent.header("x-api-key"), sent.header("anthropic-version")) == (
        "/v1/messages",
        "k-1",
        "2023-06-01",
    )
    return reply, sent.message


async def test_a_text():
    reply, sent = await asked(ModelRequest(messages=[text("Hi")], max_tokens=10), "Hello there")
    assert (reply.text, reply.reason, reply.usage) == ("Hello there", "endTurn", Usage(11, 7))
    assert sent == {
        "model": "claude-x",
        "max_tokens": 10,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
        "stream": True,
    }


async def test_calls_of_tools():
    request = ModelRequest(messages=[text("1 + 2?")], tools=[TOOL], tool_choice="required", system="Be brief.")
    reply, sent = await asked(request, "Let me", ("t1", "add", '{"a": 1}'), ("t2", "add", ""), reason="tool_use")
    assert (reply.reason, reply.calls) == ("toolUse", [CallPart("t1", "add", {"a": 1}), CallPart("t2", "add", {})])
    assert reply.content[0] == {"type": "text", "text": "Let me"}
    assert sent["tools"] == [{"name": "add", "description": "Adds.", "input_schema": TOOL.input_schema}]
    assert (sent["tool_choice"], sent["system"]) == ({"type": "any"}, "Be brief.")


async def test_results_images_and_the_rest():
    used = {"type": "tool_use", "id": "t1", "name": "add", "input": {"a": 1}, "_meta": {"x": 1}}
    result = {
        "type": "tool_result",
        "toolUseId": "t1",
        "content": [{"type": "text", "text": "3"}, IMAGE],
        "isError": True,
    }
    empty = {"type": "tool_result", "toolUseId": "t2", "content": []}
    audio = {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}
    messages = [
        {"role": "user", "content": [IMAGE, audio]},
        {"role": "assistant", "content": [used]},
        {"role": "user", "content": [result, empty]},
    ]
    _, sent = await asked(ModelRequest(messages=messages, temperature=0.5, stop=["END"]), "3")
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    image = {"type": "image", "source": source}
    first, second, third = (message["content"] for message in sent["messages"])
    assert first[0] == image
    assert "audio/wav" in first[1]["text"]  # that API takes none
    assert second == [{"type": "tool_use", "id": "t1", "name": "add", "input": {"a": 1}}]
    three = {"type": "text", "text": "3"}
    assert third == [
        {"type": "tool_result", "tool_use_id": "t1", "content": [three, image], "is_error": True},
        {"type": "tool_result", "tool_use_id": "t2"},
    ]
    assert (sent["temperature"], sent["stop_sequences"]) == (0.5, ["END"])


@pytest.mark.parametrize(
    "theirs, ours",
    [("max_tokens", "maxTokens"), ("stop_sequence", "stopSequence"), ("refusal", "refusal"), ("end_turn", "endTurn")],
)
async def test_why_it_stopped(theirs, ours):
    reply, _ = await asked(ModelRequest(messages=[text("Hi")]), "x", reason=theirs)
    assert reply.reason == ours


async def test_arguments_that_cannot_be_read_call_nothing():
    reply, _ = await asked(ModelRequest(messages=[text("Hi")]), ("t1", "add", '{"a": '), reason="tool_use")
    assert reply.calls[0].wrong


async def test_pieces_come_one_by_one():
    async with HttpPeer(lambda *_: stream_of(anthropic_events("one two"))) as peer:
        found = [event async for event in model(peer).reply(ModelRequest(messages=[text("Hi")]))]
    assert found[:2] == [TextPart("one"), TextPart(" two")]


async def test_one_that_does_not_stream():
    use = {"type": "tool_use", "id": "t1", "name": "add", "input": {"a": 1}}
    content = [{"type": "text", "text": "Well"}, use, 5]
    usage = {"input_tokens": 11, "output_tokens": 7}
    whole = {"type": "message", "role": "assistant", "content": content, "stop_reason": "tool_use", "usage": usage}
    async with HttpPeer(lambda *_: http(200, json.dumps(whole).encode())) as peer:
        reply = await gather(model(peer).reply(ModelRequest(messages=[text("Hi")])))
    assert (reply.text, reply.calls, reply.reason) == ("Well", [CallPart("t1", "add", {"a": 1})], "toolUse")
    assert reply.usage == Usage(11, 7)


async def test_what_it_would_refuse_is_not_sent():
    use = {"type": "tool_use", "id": "functions.a:0", "name": "made up!", "input": {}}
    drawing = {"type": "image", "data": "PHN2Zy8+", "mimeType": "image/svg+xml"}
    blank = {"type": "text", "text": " \n"}
    result = {"type": "tool_result", "toolUseId": "functions.a:0", "content": [blank, drawing]}
    messages = [
        text("I am first", "assistant"),
        {"role": "user", "content": [blank]},
        {"role": "assistant", "content": [blank, use, IMAGE]},
        {"role": "user", "content": [result]},
        text("One"),
        text("Two"),
        text("And so ", "assistant"),
    ]
    _, sent = await asked(ModelRequest(messages=messages, temperature=1.5, stop=["\n\n", "END"]), "x")
    assert [each["role"] for each in sent["messages"]] == ["user", "assistant", "user", "assistant"]
    _, said, told, last = (each["content"] for each in sent["messages"])
    assert [each["type"] for each in said] == ["text", "tool_use", "text"]
    assert (said[1]["id"], said[1]["name"]) == ("functions_a_0", "made_up_")
    assert [each["type"] for each in told] == ["tool_result", "text", "text"]
    assert told[0]["tool_use_id"] == "functions_a_0"
    assert [("image/svg+xml" in each["text"]) for each in told[0]["content"]] == [True]
    assert last == [{"type": "text", "text": "And so"}]
    assert (sent["temperature"], sent["stop_sequences"]) == (1.0, ["END"])


async def test_tools_of_any_name_are_called_by_it():
    odd = ModelTool(name="notes/add.all", input_schema={"oneOf": [{"properties": {"$a": {}, "b": {}}}]})
    request = ModelRequest(messages=[text("Hi")], tools=[odd])
    reply, sent = await asked(request, ("t1", "notes_add_all", "{}"), reason="tool_use")
    assert reply.calls == [CallPart("t1", "notes/add.all", {})]
    (tool,) = sent["tools"]
    assert tool["input_schema"] == {"type": "object", "properties": {"b": {}}, "required": []}
    assert "oneOf" in tool["description"] and "$a" in tool["description"]


@pytest.mark.parametrize("kind, error", [("overloaded_error", ModelBusy), ("invalid_request_error", ModelRefused)])
async def test_an_error_in_the_middle(kind, error):
    told = f"event: error\ndata: {json.dumps({'type': 'error', 'error': {'type': kind, 'message': 'Oh'}})}\n\n"
    events = [*anthropic_events("half", stop=False), told.encode()]
    async with HttpPeer(lambda *_: stream_of(events)) as peer:
        with pytest.raises(error, match="Oh"):
            await gather(model(peer).reply(ModelRequest(messages=[text("Hi")])))


@pytest.mark.parametrize(
    "events",
    [
        anthropic_events("half", stop=False),
        [],
        [b"data: {\n\n"],
        [b"data: [1]\n\n"],
        [b'data: {"type": "content_block_delta", "index": 5, "delta": {"partial_json": "x"}}\n\n'],
        [b'data: {"type": "content_block_start", "index": 0, "content_block": 5}\n\n'],
        [b'data: {"type": "message_start", "message": {"usage": 5}}\n\n'],
    ],
)
async def test_a_broken_stream_is_an_error(events):
    async with HttpPeer(lambda *_: stream_of(events)) as peer:
        with pytest.raises(ModelError):
            await gather(model(peer).reply(ModelRequest(messages=[text("Hi")])))


def test_the_key_is_looked_up_and_not_shown():
    with pytest.raises(LocalError, match="ANTHROPIC_API_KEY"):
        AnthropicModel("m", env={})
    found = AnthropicModel("m", env={"ANTHROPIC_API_KEY": "k-secret"})
    assert "k-secret" not in repr(found) + repr(vars(found))
