"""The words in which a host and a model talk."""

import pytest

from interlock.host.models.model import (
    CallPart,
    End,
    ModelBusy,
    ModelError,
    ModelFacts,
    TextPart,
    Usage,
    blocks_of,
    gather,
)
from interlock.wire.errors import RemoteError


async def events(*given):
    for each in given:
        yield each


async def test_pieces_become_blocks_in_their_order():
    call = CallPart("1", "add", {"a": 1})
    reply = await gather(events(TextPart("Let "), TextPart("me"), call, TextPart("!"), End("toolUse", Usage(3, 4))))
    assert reply.content == [
        {"type": "text", "text": "Let me"},
        {"type": "tool_use", "id": "1", "name": "add", "input": {"a": 1}},
        {"type": "text", "text": "!"},
    ]
    assert (reply.text, reply.calls, reply.reason, reply.usage) == ("Let me!", [call], "toolUse", Usage(3, 4))


async def test_an_answer_without_an_end_is_none():
    with pytest.raises(ModelError, match="broke off"):
        await gather(events(TextPart("and then")))


async def test_nothing_said_is_an_answer():
    assert (await gather(events(End("endTurn")))).content == []


@pytest.mark.parametrize("trait", ["cheapness", "speed", "intelligence"])
@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan")])
def test_traits_are_shares(trait, value):
    with pytest.raises(ValueError, match=trait):
        ModelFacts(name="m", **{trait: value})


def test_content_is_a_list_or_its_only_block():
    block = {"type": "text", "text": "x"}
    assert blocks_of({"role": "user", "content": block}) == blocks_of({"role": "user", "content": [block]}) == [block]


def test_who_is_busy_says_until_when():
    assert ModelBusy("later", 3.0).retry_after == 3.0
    assert issubclass(ModelError, RemoteError)
