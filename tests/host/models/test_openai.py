"""Chat completions, spoken with a server on a real socket that has their shapes."""

import json

import pytest

from interlock.host.models.model import (
    CallPart,
    ModelBusy,
    ModelError,
    ModelFacts,
    ModelRefused,
    ModelRequest,
    ModelTool,
    Usage,
    gather,
)
from interlock.host.models.openai import OpenAIModel
from interlock.wire.errors import LocalError
from support.http_peer import HttpPeer, http
from support.model_api import openai_chunks, stream_of

IMAGE = {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}
SOUND = {"type": "audio", "data": "aGk=", "mimeType": "audio/x-wav"}
TOOL = ModelTool(name="add", description="Adds.", input_schema={"type": "object"})
ASK = ModelRequest(messages=[{"role": "user", "content": {"type": "text", "text": "Hi"}}], max_tokens=10)


def model(peer, **more):
    return OpenAIModel("gpt-x", base_url=peer.url.removesuffix("/mcp") + "/v1/", tries=1, **{"key": "k-1", **more})


async def asked(request, *said, events=None, facts=None, **more):
    async with HttpPeer(lambda *_: stream_of(events or openai_chunks(*said, **more))) as peer:
        reply = await gather(model(peer, facts=facts).reply(request))
    sent = peer.requests[0]
    assert (sent.path, sent.header("authorization")) == ("/v1/chat/completions", "Bearer k-1")
    return reply, sent.message


async def test_a_text():
    reply, sent = await asked(ASK, "Hello there")
    assert (reply.text, reply.reason, reply.usage) == ("Hello there", "endTurn", Usage(11, 7))
    assert sent == {
        "model": "gpt-x",
        "max_completion_tokens": 10,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


async def test_calls_of_tools():
    request = ModelRequest(messages=ASK.messages, tools=[TOOL], tool_choice="required", system="Be brief.")
    reply, sent = await asked(request, "Let me", ("c1", "add", '{"a": 1}'), ("c2", "add", ""), reason="tool_calls")
    assert (reply.reason, reply.calls) == ("toolUse", [CallPart("c1", "add", {"a": 1}), CallPart("c2", "add", {})])
    function = {"name": "add", "description": "Adds.", "parameters": {"type": "object", "properties": {}}}
    assert (sent["tools"], sent["tool_choice"]) == ([{"type": "function", "function": function}], "required")
    assert sent["messages"][0] == {"role": "system", "content": "Be brief."}


async def test_results_images_and_sounds():
    used = {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}}
    result = {"type": "tool_result", "toolUseId": "c1", "content": [{"type": "text", "text": "3"}, IMAGE]}
    messages = [
        {"role": "user", "content": [IMAGE, SOUND]},
        {"role": "assistant", "content": [{"type": "text", "text": "Well"}, used]},
        {"role": "user", "content": [result]},
    ]
    facts = ModelFacts(name="gpt-x", can=frozenset({"images", "audio", "tools"}))
    _, sent = await asked(ModelRequest(messages=messages, temperature=0.5, stop=["END"]), "3", facts=facts)
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    sound = {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}}
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a":1}'}}
    told = "3\n[image: it follows]"
    whose = {"type": "text", "text": "[this is from the results of tools, and not from the user]"}
    assert sent["messages"] == [
        {"role": "user", "content": [image, sound]},
        {"role": "assistant", "content": "Well", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": told},
        {"role": "user", "content": [whose, image]},
    ]
    assert (sent["temperature"], sent["stop"]) == (0.5, ["END"])


@pytest.mark.parametrize(
    "theirs, ours", [("length", "maxTokens"), ("stop", "endTurn"), ("content_filter", "content_filter")]
)
async def test_why_it_stopped(theirs, ours):
    reply, _ = await asked(ASK, "x", reason=theirs)
    assert reply.reason == ours


def _piece(delta, reason=None):
    return f"data: {json.dumps({'choices': [{'index': 0, 'delta': delta, 'finish_reason': reason}]})}\n\n".encode()


async def test_servers_that_leave_out_what_others_say():
    whole = {"tool_calls": [{"function": {"name": "a", "arguments": "{}"}}, {"function": {"name": "b"}}]}
    reply, _ = await asked(ASK, events=[_piece(whole), _piece({"content": None}, "stop")])  # no ids, usage, [DONE]
    assert reply.calls == [CallPart("call_0", "a", {}), CallPart("call_1", "b", {})]
    assert (reply.reason, reply.usage) == ("toolUse", Usage())


async def test_calls_that_all_have_the_same_place():
    calls = [
        {"index": 0, "id": f"c{number}", "function": {"name": "add", "arguments": f'{{"a": {number}}}'}}
        for number in (1, 2)
    ]
    events = [_piece({"tool_calls": [call]}) for call in calls] + [_piece({}, "stop")]
    reply, _ = await asked(ASK, events=events)
    assert reply.calls == [CallPart("c1", "add", {"a": 1}), CallPart("c2", "add", {"a": 2})]


async def test_pieces_of_calls_may_be_mixed_and_have_new_ids():
    def part(index, text, **more):
        return {"index": index, "id": f"id{text}", "function": {"arguments": text, **more}}

    pieces = [part(0, '{"a"', name="x"), part(1, '{"b"', name="y"), part(0, ": 1}"), part(1, ": 2}")]
    reply, _ = await asked(ASK, events=[_piece({"tool_calls": [each]}) for each in pieces] + [_piece({}, "stop")])
    assert [(call.name, call.arguments) for call in reply.calls] == [("x", {"a": 1}), ("y", {"b": 2})]


async def test_one_that_does_not_stream():
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
    choice = {"index": 0, "message": {"content": "Well", "tool_calls": [call]}, "finish_reason": "tool_calls"}
    whole = {"choices": [choice], "usage": {"prompt_tokens": 11, "completion_tokens": 7}}
    async with HttpPeer(lambda *_: http(200, json.dumps(whole).encode())) as peer:
        reply = await gather(model(peer).reply(ASK))
    assert (reply.text, reply.calls, reply.usage) == ("Well", [CallPart("c1", "add", {"a": 1})], Usage(11, 7))


async def test_what_it_would_refuse_is_not_sent():
    drawing = {"type": "image", "data": "PHN2Zy8+", "mimeType": "image/svg+xml"}
    use = {"type": "tool_use", "id": "c1", "name": "made up!", "input": {}}
    messages = [
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [{"type": "tool_result", "toolUseId": "c1", "content": [drawing, SOUND]}]},
        {"role": "user", "content": [drawing]},
        *ASK.messages,
    ]
    tools = [ModelTool(name=f"t.{number}", input_schema={}) for number in range(130)]
    _, sent = await asked(ModelRequest(messages=messages, tools=tools, stop=[*"abcde", ""]), "x")
    assert [each["role"] for each in sent["messages"]] == ["user", "assistant", "tool", "user"]
    _, said, told, last = sent["messages"]
    assert said["tool_calls"][0]["function"]["name"] == "made_up_"
    assert "image/svg+xml" in told["content"] and "audio/x-wav" in told["content"]
    assert [each["type"] for each in last["content"]] == ["text", "text"]
    assert (len(sent["tools"]), sent["tools"][1]["function"]["name"], sent["stop"]) == (128, "t_1", [*"abcd"])
    assert sent["tools"][0]["function"]["parameters"] == {"type": "object", "properties": {}}


async def test_an_error_in_a_word():
    events = [*openai_chunks("half", done=False), b'data: {"error": "out of memory"}\n\n']
    with pytest.raises(ModelRefused, match="out of memory"):
        await asked(ASK, events=events)


async def test_a_server_here_needs_no_key():
    async with HttpPeer(lambda *_: stream_of(openai_chunks("x"))) as peer:
        assert (await gather(model(peer, key="", limit_word="max_tokens").reply(ASK))).text == "x"
    assert peer.requests[0].header("authorization") is None
    assert peer.requests[0].message["max_tokens"] == 10


@pytest.mark.parametrize("kind, error", [("rate_limit_exceeded", ModelBusy), ("invalid_request_error", ModelRefused)])
async def test_an_error_in_the_middle(kind, error):
    told = f"data: {json.dumps({'error': {'message': 'Oh', 'code': kind}})}\n\n".encode()
    async with HttpPeer(lambda *_: stream_of([*openai_chunks("half", done=False), told])) as peer:
        with pytest.raises(error, match="Oh"):
            await gather(model(peer).reply(ASK))


@pytest.mark.parametrize(
    "events",
    [
        openai_chunks("half", done=False),
        [b"data: [DONE]\n\n"],
        [b"data: {\n\n"],
        [b'data: {"choices": 5}\n\n'],
        [b'data: {"choices": [5]}\n\n'],
        [b'data: {"choices": [{"delta": {"tool_calls": [5]}}]}\n\n'],
        [_piece({"tool_calls": [{"index": n, "function": {"name": "a"}} for n in range(200)]})],
    ],
)
async def test_a_broken_stream_is_an_error(events):
    async with HttpPeer(lambda *_: stream_of(events)) as peer:
        with pytest.raises(ModelError):
            await gather(model(peer).reply(ASK))


def test_those_that_listen_have_it_in_their_names():
    assert OpenAIModel("GPT-Audio", key="").facts.can == {"images", "tools", "audio"}
    assert OpenAIModel("gpt-x", key="").facts.can == {"images", "tools"}


def test_the_key_is_looked_up_and_not_shown():
    with pytest.raises(LocalError, match="OPENAI_API_KEY"):
        OpenAIModel("m", env={})
    found = OpenAIModel("m", env={"OPENAI_API_KEY": "k-secret"})
    assert "k-secret" not in repr(found) + repr(vars(found))
