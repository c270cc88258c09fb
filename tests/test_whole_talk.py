"""One conversation, the same with a scripted model and with both services' own words, over real sockets."""

import json

import pytest

from interlock import Conversation, Host, HostTools, Server
from interlock.host.models.anthropic import AnthropicModel
from interlock.host.models.openai import OpenAIModel
from interlock.host.models.scripted import ScriptedModel
from interlock.host.user import ScriptedUser
from support.http_peer import HttpPeer
from support.model_api import anthropic_events, openai_chunks, stream_of

SAID = ["Let me see", ("c1", "house__add", '{"a": 20, "b": 22}'), ("c2", "house__fail", "{}")]
END = "It is 42, and the other failed."


def house():
    server = Server("house")

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    @server.tool
    async def fail() -> str:
        raise RuntimeError("inside")

    return server


def services():
    """Each with how its answers look and how it is made."""
    return {
        "anthropic": (anthropic_events, "tool_use", AnthropicModel, ""),
        "openai": (openai_chunks, "tool_calls", OpenAIModel, "/v1"),
    }


async def talk(model):
    async with Host({"house": house()}, user=ScriptedUser(True)) as host:
        conversation = Conversation(HostTools(host), model)
        answer = await conversation.say("20 + 22?")
    return answer, conversation


async def through(service):
    events, reason, make, path = services()[service]
    answers = iter([events(*SAID, reason=reason), events(END)])
    async with HttpPeer(lambda *_: stream_of(next(answers))) as peer:
        base = peer.url.removesuffix("/mcp") + path
        found = await talk(make("m", key="k", base_url=base, tries=1))
    return found, [request.message for request in peer.requests]


def shape(messages):
    """What was said, without ids and without the reference of a failure."""
    kinds = [(message["role"], [block["type"] for block in message["content"]]) for message in messages]
    results = [block for message in messages for block in message["content"] if block["type"] == "tool_result"]
    return kinds, [block.get("isError", False) for block in results], results[0]["content"]


@pytest.mark.parametrize("service", ["anthropic", "openai"])
async def test_the_same_talk_with_every_model(service):
    (answer, conversation), sent = await through(service)
    calls = {"house__add": {"a": 20, "b": 22}, "house__fail": {}}
    scripted, other = await talk(ScriptedModel([["Let me see", calls], END]))
    assert answer == scripted == END
    assert shape(conversation.messages) == shape(other.messages)
    assert conversation.sources == other.sources == {"house"}
    told = json.dumps(sent[1])
    assert "42" in told and "inside" not in told  # what went wrong inside a tool is not the model's business


async def test_what_each_service_is_told_of_the_tools():
    for service, names in (("anthropic", lambda tool: tool["name"]), ("openai", lambda tool: tool["function"]["name"])):
        _, sent = await through(service)
        assert [names(tool) for tool in sent[0]["tools"]] == ["house__add", "house__fail"]
