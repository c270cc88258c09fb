"""protocol/input/strategy.py: who is asked how."""

import asyncio

import pytest

from interlock.protocol.input.parking import Park
from interlock.protocol.input.replay import Replay
from interlock.wire.types.capabilities import ClientCapabilities
from support.doubles import turns
from support.rounds import Rounds, accept, form


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


@pytest.mark.parametrize("parks", [False, True])
async def test_an_act_asked_for_twice_at_once_is_done_once(parks):
    """In whatever way the questions travel; the first of two who ask for it may be cancelled by its own timeout."""
    acts = []

    async def act():
        await turns()
        acts.append("paid")
        return len(acts)

    async def pays(exchange):
        calls = [asyncio.ensure_future(exchange.once("pay", act)) for _ in range(3)]
        await turns(1)
        calls[0].cancel()
        found = await asyncio.gather(*calls[1:])
        answer = await exchange.ask(form("Sure?", "sure"))
        return {"receipts": [each.decode() for each in found], "said": answer["action"]}

    rounds = Rounds(pays, parks=lambda method, params: parks)
    result = await rounds.all_of({"sure": accept()})
    assert (result["receipts"], result["said"]) == (["1", "1"], "accept")
    assert acts == ["paid"]
