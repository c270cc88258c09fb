"""Chat completions, spoken with a server on a real socket that has their shapes."""

import json

import pytest

from interlock.host.models.model import (
    CallPart,
    ModelBusy,
    ModelError,
    ModelRefused,
    ModelRequest,
    ModelTool,
    Usage,
    gather,
)
from interlock.host.models.openai import OpenAIModel
from interlock.wire.errors import LocalError
from support.http_peer import HttpPeer
from support.model_api import openai_chunks, stream_of

IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
SOUND = {"type": "audio", "data": "aGk=", "mimeType": "audio/x-wav"}
TOOL = ModelTool(name="add", description="Adds.", input_schema={"type": "object"})
ASK = ModelRequest(messages=[{"role": "user", "content": {"type": "text", "text": "Hi"}}], max_tokens=10)


def model(peer, **more):
    return OpenAIModel("gpt-x", base_url=peer.url.removesuffix("/mcp") + "/v1/", tries=1, **{"key": "k-1", **more})


async def asked(request, *said, events=None, **more):
    async with HttpPeer(lambda *_: stream_of(events or openai_chunks(*said, **more))) as peer:
        reply = await gather(model(peer).reply(request))
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
    function = {"name": "add", "description": "Adds.", "parameters": {"type": "object"}}
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
    _, sent = await asked(ModelRequest(messages=messages, temperature=0.5, stop=["END"]), "3")
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    sound = {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}}
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a":1}'}}
    told = "3\n[image of type image/png that this model cannot take]"
    assert sent["messages"] == [
        {"role": "user", "content": [image, sound]},
        {"role": "assistant", "content": "Well", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": told},
        {"role": "user", "content": [image]},
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


def test_the_key_is_looked_up_and_not_shown():
    with pytest.raises(LocalError, match="OPENAI_API_KEY"):
        OpenAIModel("m", env={})
    found = OpenAIModel("m", env={"OPENAI_API_KEY": "k-secret"})
    assert "k-secret" not in repr(found) + repr(vars(found))
