"""A model that says what it was told to say."""

import pytest

from interlock.host.models.model import CallPart, ModelBusy, ModelRequest, TextPart, gather
from interlock.host.models.scripted import ScriptedModel
from interlock.wire.errors import LocalError

ASK = ModelRequest(messages=[{"role": "user", "content": {"type": "text", "text": "Hi"}}])


async def test_it_follows_its_script():
    model = ScriptedModel(
        ["Hello you", {"add": {"a": 1}}, ["And", {"x": {}, "y": {}}], lambda ask: ask.messages[0]["role"]]
    )
    assert [event async for event in model.reply(ASK)][:2] == [TextPart("Hello "), TextPart("you")]
    called = await gather(model.reply(ASK))
    assert (called.calls, called.reason) == ([CallPart("call_1", "add", {"a": 1})], "toolUse")
    both = await gather(model.reply(ASK))
    assert (both.text, [call.id for call in both.calls]) == ("And", ["call_2", "call_3"])
    assert (await gather(model.reply(ASK))).text == "user"
    assert model.requests == [ASK] * 4


async def test_its_end_is_told():
    with pytest.raises(LocalError, match="script"):
        await gather(ScriptedModel().reply(ASK))
    again = ScriptedModel(otherwise="Again")
    assert [(await gather(again.reply(ASK))).text for _ in range(2)] == ["Again", "Again"]


async def test_it_fails_when_it_shall():
    with pytest.raises(ModelBusy):
        await gather(ScriptedModel([ModelBusy("later")]).reply(ASK))
