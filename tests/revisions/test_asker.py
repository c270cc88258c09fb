"""revisions/asker.py: who is asked how."""

from interlock.revisions.parking import Park
from interlock.revisions.replay import Replay
from interlock.wire.types.capabilities import ClientCapabilities
from support.rounds import Rounds


async def handler(exchange):
    return {"kind": type(exchange.rounds).__name__}


async def test_who_can_answer_nothing_is_not_asked():
    assert (await Rounds(handler)(can=ClientCapabilities()))["kind"] == "NoneType"


async def test_who_can_answer_anything_may_be_asked():
    for can in ({"elicitation": {}}, {"sampling": {}}, {"roots": {}}):
        assert (await Rounds(handler)(can=ClientCapabilities(**can)))["kind"] == Replay.__name__


async def test_what_comes_with_a_state_is_looked_at_whoever_sends_it():
    told = await Rounds(handler)(state="x", can=ClientCapabilities())
    assert told["code"] == -32602


async def test_who_brings_answers_is_heard():
    assert (await Rounds(handler)({}, can=ClientCapabilities()))["kind"] == Replay.__name__


async def test_parking_is_a_choice():
    rounds = Rounds(handler, parks=lambda method, params: params.name == "t")
    assert (await rounds())["kind"] == Park.__name__
