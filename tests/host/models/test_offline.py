"""A model without a model."""

import pytest

from interlock.host.chat.content_blocks import text_block
from interlock.host.models.model import CallPart, ModelRequest, ModelTool, gather
from interlock.host.models.offline import PlainModel

TOOLS = [ModelTool(name=name, description="Does.\nMore", input_schema={}) for name in ("a__add", "a__get", "b__get")]


async def said(text, tools=TOOLS, **more):
    message = {"role": "user", "content": [text_block(text)]}
    return await gather(PlainModel().reply(ModelRequest(messages=[message], tools=tools, **more)))


@pytest.mark.parametrize(
    "text, arguments",
    [
        ("add", {}),
        ("add a=1 b='two words' c=true d=x=y", {"a": 1, "b": "two words", "c": True, "d": "x=y"}),
        ('add {"a": [1]}', {"a": [1]}),
        ("a__add a=1", {"a": 1}),
    ],
)
async def test_it_calls_what_it_is_told(text, arguments):
    reply = await said(text)
    assert (reply.calls, reply.reason) == ([CallPart("plain_1", "a__add", arguments)], "toolUse")


@pytest.mark.parametrize("text", ["add 1", "add a='", 'add {"a"', "add [1]", 'add {"a":' + "[" * 9_999])
async def test_arguments_that_are_none_are_told(text):
    assert (await said(text)).calls[0].wrong


async def test_where_it_is_not_told_it_offers():
    assert "a__get  Does." in (await said("get")).text and "a__add" not in (await said("get")).text
    assert "a__add" in (await said("hello")).text
    assert "and 10 more" in (await said("x", [ModelTool(name=f"s__{n}", input_schema={}) for n in range(30)])).text
    assert (await said("hello", ())).text == "You said: hello"
    assert (await said("add a=1", tool_choice="none")).calls == []


async def test_it_says_what_came_back():
    blocks = [
        {"type": "tool_result", "toolUseId": "1", "content": [text_block("5"), {"type": "image"}]},
        {"type": "tool_result", "toolUseId": "2", "content": [text_block("no")], "isError": True},
    ]
    request = ModelRequest(messages=[{"role": "user", "content": blocks}], tools=TOOLS)
    assert (await gather(PlainModel().reply(request))).text == "It says: 5\n(image)\nThat failed: no"
