"""Servers that ask for a model's words."""

import pytest

from interlock import Client, Context, Server
from interlock.host.callbacks.sampling import Sampler, SamplingBounds
from interlock.host.models.model import End, ModelBusy, ModelFacts, Usage
from interlock.host.models.scripted import ScriptedModel
from interlock.host.user import Absent, ScriptedUser
from interlock.server.execution.rate_limits import Rate
from interlock.wire.errors import InternalError, InvalidParams, Refused
from support.open_gate import OpenGate

ASK = {"messages": [{"role": "user", "content": {"type": "text", "text": "Sum up"}}], "maxTokens": 100}
YES = {"review_sampling": True, "review_answer": True}


def sampler(model=None, user=None, gate=None, **more):
    models = [ScriptedModel(["Short words"]) if model is None else model]
    return Sampler("notes", gate or OpenGate(), user or ScriptedUser(**YES), models, **more)


async def test_a_request_is_seen_before_and_its_answer_after():
    user = ScriptedUser(**YES)
    answer = await sampler(user=user)(ASK)
    assert answer == {
        "role": "assistant",
        "content": {"type": "text", "text": "Short words"},
        "model": "scripted",
        "stopReason": "endTurn",
    }
    assert user.seen == [("review_sampling", ("notes", ASK)), ("review_answer", ("notes", ASK, answer))]


async def test_what_the_user_changes_is_what_is_used():
    model = ScriptedModel(["Long words"])
    edited = {**ASK, "systemPrompt": "Be brief."}
    mine = {"role": "assistant", "content": {"type": "text", "text": "Mine"}, "model": "me"}
    user = ScriptedUser(review_sampling=edited, review_answer=mine)
    assert await sampler(model, user)(ASK) == mine
    assert model.requests[0].system == "Be brief."


@pytest.mark.parametrize("user", [ScriptedUser(), Absent(), ScriptedUser(review_sampling={"messages": 5})])
async def test_a_no_before_asks_no_model(user):
    model = ScriptedModel(["x"])
    with pytest.raises(Refused) as refused:
        await sampler(model, user)(ASK)
    assert (refused.value.code, refused.value.message, model.requests) == (-1, "User rejected sampling request", [])


async def test_a_no_after_gives_the_server_nothing():
    with pytest.raises(Refused) as refused:
        await sampler(user=ScriptedUser(review_sampling=True))(ASK)
    assert refused.value.code == -1


async def test_rules_may_allow_without_asking_or_deny():
    user = ScriptedUser()
    allowing = OpenGate(sampling="allow", sampling_answer="allow")
    assert (await sampler(user=user, gate=allowing)(ASK))["content"]["text"] == "Short words"
    assert user.seen == []
    with pytest.raises(Refused):
        await sampler(gate=OpenGate(sampling="deny"))(ASK)


async def test_context_is_given_only_where_it_is_allowed():
    asked = []

    async def context(server, what):
        asked.append((server, what))
        return "They talk about milk." if what == "thisServer" else None

    for wanted, system in [("thisServer", "S\n\nThey talk about milk."), ("allServers", "S"), ("none", "S")]:
        model, user = ScriptedModel(["x"]), ScriptedUser(**YES)
        await sampler(model, user, context=context)({**ASK, "systemPrompt": "S", "includeContext": wanted})
        assert model.requests[0].system == system
        assert user.seen[0][1][1]["systemPrompt"] == system  # whoever reviews sees it, too
    assert asked == [("notes", "thisServer"), ("notes", "allServers")]
    model = ScriptedModel(["x"])
    await sampler(model)({**ASK, "includeContext": "allServers"})
    assert model.requests[0].system is None


async def test_tokens_are_bounded():
    model = ScriptedModel(otherwise="one two three")
    one = sampler(model, bounds=SamplingBounds(tokens=50, tokens_altogether=7))
    await one(ASK)
    assert (model.requests[0].max_tokens, one.used) == (50, 4)
    await one({**ASK, "maxTokens": 20})
    assert model.requests[1].max_tokens == 20
    with pytest.raises(InternalError, match="used up"):
        await one(ASK)


async def test_requests_are_bounded():
    one = sampler(ScriptedModel(otherwise="x"), bounds=SamplingBounds(requests=Rate(0.001, 2)))
    await one(ASK)
    await one(ASK)
    with pytest.raises(InternalError, match="Too many"):
        await one(ASK)


@pytest.mark.parametrize(
    "wrong",
    [
        {"messages": 5},
        {"maxTokens": 0},
        {"maxTokens": "many"},
        {"messages": [{"role": "system", "content": {"type": "text", "text": "x"}}]},
        {"modelPreferences": {"costPriority": 2}},
        {"tools": [{"name": "t"}]},
        {"tools": [5]},
        {"temperature": "hot"},
        {"temperature": 3},
        {"temperature": True},
        {"stopSequences": "END"},
        {"stopSequences": [5]},
        {"systemPrompt": 5},
        {"messages": [{"role": "user", "content": [5]}]},
    ],
)
async def test_what_is_wrong_is_refused_before_anybody_is_asked(wrong):
    user = ScriptedUser(**YES)
    with pytest.raises(InvalidParams):
        await sampler(user=user)({**ASK, **wrong})
    assert user.seen == []


async def test_models_that_cannot_take_it_are_not_asked():
    blind = ScriptedModel(["x"], facts=ModelFacts(name="blind", can=frozenset()))
    image = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    with pytest.raises(InvalidParams, match="No model"):
        await sampler(blind)({**ASK, "messages": [{"role": "user", "content": image}]})


async def test_how_a_model_fails_is_not_the_servers_business():
    with pytest.raises(InternalError) as refused:
        await sampler(ScriptedModel([ModelBusy("key sk-1 over quota")]))(ASK)
    assert refused.value.message == "The model gave no answer"


async def test_tools_are_used_as_the_server_chose():
    tool = {"name": "add", "inputSchema": {"type": "object"}}
    model = ScriptedModel([{"add": {"a": 1}}, "I will not", "x"])
    one = sampler(model)
    answer = await one({**ASK, "tools": [tool], "toolChoice": {"mode": "required"}})
    used = {"type": "tool_use", "id": "call_1", "name": "add", "input": {"a": 1}}
    assert (answer["content"], answer["stopReason"]) == ([used], "toolUse")
    with pytest.raises(InternalError, match="no tool"):
        await one({**ASK, "tools": [tool], "toolChoice": {"mode": "required"}})
    await one({**ASK, "tools": [tool], "toolChoice": {"mode": "none"}})
    assert [request.tool_choice for request in model.requests] == ["required", "required", "none"]


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-11-25", "2026-07-28"])
async def test_a_server_samples_through_its_client(revision):
    server = Server("notes")

    @server.tool
    async def brief(ctx: Context) -> str:
        return (await ctx.sample("Sum up", max_tokens=10)).text

    async with Client(server, revision=revision, sample=sampler(ScriptedModel(["Milk"]))) as client:
        assert (await client.call_tool("brief")).text == "Milk"
    async with Client(server, revision=revision, sample=sampler(user=Absent())) as client:
        with pytest.raises(Refused, match="rejected"):
            await client.call_tool("brief")


async def test_tokens_of_a_model_that_does_not_count_them_are_estimated():
    class Silent(ScriptedModel):
        async def reply(self, request):
            async for event in super().reply(request):
                yield End("endTurn", Usage()) if isinstance(event, End) else event

    one = sampler(Silent(otherwise="Short words"))
    await one(ASK)
    assert one.used > 4
