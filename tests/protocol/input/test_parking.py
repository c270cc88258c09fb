"""protocol/input/parking.py: a parked run goes on where it was, once, and not for ever."""

import asyncio
import contextlib
import logging

import pytest

from interlock.protocol.input.rounds import STATE_REFUSED
from interlock.wire.errors import CannotAsk, InvalidParams
from interlock.wire.exchange import Question
from interlock.wire.types.capabilities import ClientCapabilities
from support.doubles import turns
from support.rounds import CAN, Rounds, accept, form
from support.virtual_time import virtual_time

PARKS = {"parks": lambda method, params: True}
GIVEN = {key: accept(n=number) for number, key in enumerate(["a", "b", "c"])}


async def test_it_runs_once_over_all_rounds():
    seen = []

    async def asks(exchange):
        seen.append("run")
        first = await exchange.ask(form("A?", "a"))
        one, two = await asyncio.gather(exchange.ask(form("B?", "b")), exchange.ask(form("C?", "c")))
        return {"sum": first["content"]["n"] + one["content"]["n"] + two["content"]["n"]}

    rounds = Rounds(asks, **PARKS)
    assert (await rounds.all_of(GIVEN))["sum"] == 3
    assert seen == ["run"] and len(rounds.asker.parking) == 0


async def test_what_came_with_the_first_request_counts():
    async def asks(exchange):
        return (await exchange.ask(form("A?", "a")))["content"]

    assert (await Rounds(asks, **PARKS)({"a": accept(n=7)}))["n"] == 7


@pytest.mark.parametrize("after", range(12))
async def test_a_round_never_ends_without_a_question(after):
    """In whatever turn of the loop the only question is taken back."""

    async def asks(exchange):
        asking = asyncio.ensure_future(exchange.ask(form("A?", "a")))
        await turns(after)
        asking.cancel()
        await turns(20)
        return {"done": True}

    found = await asyncio.wait_for(Rounds(asks, **PARKS)(), 10)
    assert found.get("done") or list(found["inputRequests"]) == ["a"]


async def test_some_answers_leave_the_others_open():
    async def asks(exchange):
        await asyncio.gather(exchange.ask(form("A?", "a")), exchange.ask(form("B?", "b")))
        return {"done": True}

    rounds = Rounds(asks, **PARKS)
    first = await rounds()
    second = await asyncio.wait_for(rounds({}, first["requestState"]), 10)
    assert sorted(second["inputRequests"]) == ["a", "b"]
    state = second["requestState"]
    third = await asyncio.wait_for(rounds({"a": accept()}, state), 10)
    assert list(third["inputRequests"]) == ["b"]
    assert (await rounds({"b": accept()}, third["requestState"]))["done"] is True


async def test_a_malformed_answer_costs_nothing():
    """Not the ticket, not the run, not even the other answers; and the right ones count once."""

    async def asks(exchange):
        one, two = await asyncio.gather(exchange.ask(form("A?", "a")), exchange.ask(form("B?", "b")))
        return {"sum": one["content"]["n"] + two["content"]["n"]}

    rounds = Rounds(asks, **PARKS)
    state = (await rounds())["requestState"]
    for wrong in (7, {"action": "no"}, [], None):
        assert (await rounds({"a": accept(n=5), "b": wrong}, state))["code"] == -32602
        assert len(rounds.asker.parking) == 1
    assert (await rounds({"a": accept(n=1), "b": accept(n=2)}, state))["sum"] == 3
    assert (await rounds({"a": accept(n=1), "b": accept(n=2)}, state))["message"] == STATE_REFUSED


@virtual_time
async def test_malformed_answers_do_not_keep_a_run_alive():
    async def asks(exchange):
        await exchange.ask(form("A?", "a"))

    rounds = Rounds(asks, seconds=60, **PARKS)
    state = (await rounds())["requestState"]
    for _ in range(2):
        await asyncio.sleep(29)
        assert (await rounds({"a": 7}, state))["code"] == -32602
    await asyncio.sleep(3)
    assert len(rounds.asker.parking) == 0
    assert (await rounds({"a": 7}, state))["message"] == STATE_REFUSED


async def test_cancelling_a_round_ends_the_run():
    ended, event = [], asyncio.Event()

    async def waits(exchange):
        try:
            await event.wait()
        finally:
            ended.append(1)

    task = asyncio.ensure_future(Rounds(waits, **PARKS)())
    await turns()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await turns()
    assert ended == [1]


async def test_a_run_that_fails_fails_its_round():
    async def fails(exchange):
        await exchange.ask(form("A?", "a"))
        raise RuntimeError("inside")

    rounds = Rounds(fails, **PARKS)
    state = (await rounds())["requestState"]
    told = await rounds(GIVEN, state)
    assert told["code"] == -32603 and "inside" not in told["message"]


async def test_between_rounds_it_is_not_heard():
    told, spoken = [], asyncio.Event()

    async def speaks(exchange):
        answer = asyncio.ensure_future(exchange.ask(form("A?", "a")))
        await spoken.wait()
        await exchange.notify("notifications/example/said", {"data": "between"})
        await answer
        await exchange.notify("notifications/example/said", {"data": "after"})
        return {}

    rounds = Rounds(speaks, **PARKS)
    asked = await rounds()
    spoken.set()
    await turns()
    await rounds(GIVEN, asked["requestState"])
    told += [params["data"] for _, params in rounds.outlet.told]
    assert told == ["after"]


async def test_it_is_not_heard_between_later_rounds_either():
    spoken = asyncio.Event()

    async def speaks(exchange):
        await exchange.ask(form("A?", "a"))
        answer = asyncio.ensure_future(exchange.ask(form("B?", "b")))
        await spoken.wait()
        await exchange.notify("notifications/example/said", {"data": "between"})
        return await answer

    rounds = Rounds(speaks, **PARKS)
    asked = await rounds(GIVEN, (await rounds())["requestState"])
    spoken.set()
    await turns()
    assert (await rounds(GIVEN, asked["requestState"]))["content"]["n"] == 1
    assert rounds.outlet.told == []


async def test_every_round_has_progress_of_its_own_and_loses_none():
    """What was held back goes out before the answer; what an earlier round was told does not count in a later one."""

    async def works(exchange):
        for step in (8, 9):
            await exchange.notify("notifications/progress", {"progressToken": 1, "progress": step})
        await exchange.ask(form("A?", "a"))
        for step in range(1, 301):  # more than are let through at once
            await exchange.notify("notifications/progress", {"progressToken": 2, "progress": step})
        return {}

    rounds = Rounds(works, **PARKS)
    asked = await rounds()
    assert [params["progress"] for _, params in rounds.outlet.told] == [8, 9]
    rounds.outlet.told.clear()
    await rounds(GIVEN, asked["requestState"])
    heard = [params["progress"] for _, params in rounds.outlet.told]
    assert (heard[0], heard[-1]) == (1, 300) and len(heard) < 300


async def test_what_is_asked_after_an_answer_travels_with_what_was_asked_before_it():
    go = asyncio.Event()

    async def asks(exchange):
        first = asyncio.ensure_future(exchange.ask(form("A?", "a")))
        await go.wait()
        other = asyncio.ensure_future(exchange.ask(form("B?", "b")))
        await first
        await asyncio.gather(other, exchange.ask(form("C?", "c")))
        return {"done": True}

    rounds = Rounds(asks, **PARKS)
    asked = await rounds()
    go.set()
    await turns(20)
    asked = await rounds({"a": GIVEN["a"]}, asked["requestState"])
    assert set(asked["inputRequests"]) == {"b", "c"}
    assert (await rounds(GIVEN, asked["requestState"]))["done"] is True


async def test_a_question_asked_while_it_was_parked_is_in_the_next_round():
    go = asyncio.Event()

    async def asks(exchange):
        first = asyncio.ensure_future(exchange.ask(form("A?", "a")))
        await go.wait()
        await exchange.ask(form("B?", "b"))
        await first
        return {"done": True}

    rounds = Rounds(asks, **PARKS)
    first = await rounds()
    go.set()
    await turns(20)
    second = await rounds({}, first["requestState"])
    assert sorted(second["inputRequests"]) == ["a", "b"]
    assert (await rounds(GIVEN, second["requestState"]))["done"] is True


async def test_a_question_that_was_taken_back_is_not_put():
    async def asks(exchange):
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0):
                await exchange.ask(form("A?", "a"))
        return {"n": (await exchange.ask(form("B?", "b")))["content"]["n"]}

    rounds = Rounds(asks, **PARKS)
    asked = await rounds()
    assert list(asked["inputRequests"]) == ["b"]
    assert (await rounds(GIVEN, asked["requestState"]))["n"] == 1


def ends_while_parked(*, fails):
    """A run that asks, and ends for another reason than an answer; and what lets it."""
    go = asyncio.Event()

    async def ends(exchange):
        asking = asyncio.ensure_future(exchange.ask(form("A?", "a")))
        await go.wait()
        asking.cancel()
        if fails:
            raise RuntimeError("inside")
        return {"ended": True}

    return Rounds(ends, **PARKS), go


async def test_a_run_that_ended_while_it_was_parked_is_told_in_the_next_round():
    rounds, go = ends_while_parked(fails=False)
    asked = await rounds()
    go.set()
    await turns(20)
    assert (await asyncio.wait_for(rounds({}, asked["requestState"]), 10))["ended"] is True


async def test_a_run_that_failed_while_it_was_parked_leaves_a_word_for_whoever_looks(caplog):
    rounds, go = ends_while_parked(fails=True)
    with caplog.at_level(logging.DEBUG, "interlock.server"):
        await rounds()
        go.set()
        await turns(20)
    assert "a parked run failed: RuntimeError" in caplog.text
    rounds.asker.parking.close()


async def test_who_is_served_is_who_came_last():
    """What this client can do, as it said with the round that is open."""

    async def asks(exchange):
        await exchange.ask(form("A?", "a"))
        return {"samples": exchange.peer.can("sampling")}

    for can, samples in ((ClientCapabilities(elicitation={}), False), (CAN, True)):
        rounds = Rounds(asks, **PARKS)
        asked = await rounds()
        assert (await rounds(GIVEN, asked["requestState"], can=can))["samples"] is samples


async def test_a_client_that_cannot_answer_is_not_asked():
    async def asks(exchange):
        await exchange.ask(form("A?", "a"))

    rounds = Rounds(asks, **PARKS)
    told = await rounds(can=ClientCapabilities(roots={}))
    assert (told["code"], told["data"]) == (-32021, {"requiredCapabilities": {"elicitation": {}}})
    assert len(rounds.asker.parking) == 0


@pytest.mark.requirement("MRTR-007")
async def test_what_stays_open_is_asked_only_of_who_still_says_that_it_can_be_asked():
    async def asks(exchange):
        return {"said": [each["action"] for each in await asyncio.gather(*(exchange.ask(form(k, k)) for k in "ab"))]}

    rounds = Rounds(asks, **PARKS)
    state = (await rounds())["requestState"]
    told = await rounds({"a": accept()}, state, can=ClientCapabilities(roots={}))
    assert (told["code"], told["data"]) == (-32021, {"requiredCapabilities": {"elicitation": {}}})
    both = {"a": accept(), "b": {"action": "decline"}}  # the ticket was not used up by that
    assert (await rounds(both, state, can=ClientCapabilities()))["said"] == ["accept", "decline"]


@pytest.mark.parametrize("later", [0, 20])
async def test_a_task_that_outlives_its_run_waits_for_no_answer(later):
    """Whether it asked before the run was over, or does so afterwards."""
    left = []

    async def leaves_a_task(exchange):
        async def asks():
            await turns(later)
            await exchange.ask(form("A?", "a"))

        left.append(asyncio.ensure_future(asks()))
        await turns(2)
        return {"done": True}

    assert (await Rounds(leaves_a_task, **PARKS)())["done"] is True
    await asyncio.wait(left, timeout=10)
    assert left[0].cancelled()


@pytest.mark.parametrize("answer", [7, {"action": "accept", "content": {"n": 10**400}}, {"action": "no"}])
async def test_whatever_is_wrong_with_an_answer_leaves_the_run_as_it_is(answer):
    ended = []

    def check(members):
        raise OverflowError("too large")

    async def asks(exchange):
        try:
            await exchange.ask(form("A?", "a", check=check))
        finally:
            ended.append(1)

    rounds = Rounds(asks, **PARKS)
    state = (await rounds())["requestState"]
    assert (await rounds({"a": answer}, state))["code"] in (-32602, -32603)
    await turns()
    assert ended == [] and len(rounds.asker.parking) == 1
    rounds.asker.parking.close()
    await turns()
    assert ended == [1]


async def test_one_of_two_who_ask_the_same_may_give_up():
    """Each of them is asked, as a client that is called back would be."""

    async def asks(exchange):
        one = asyncio.ensure_future(exchange.ask(form("A?", "a")))
        two = asyncio.ensure_future(exchange.ask(form("A?", "a")))
        await turns(2)
        one.cancel()
        return {"n": (await two)["content"]["n"]}

    for rules in (PARKS, {}):
        rounds = Rounds(asks, **rules)
        asked = await rounds()
        assert list(asked["inputRequests"]) == ["a#2"]
        assert (await rounds({"a#2": accept(n=1)}, asked["requestState"]))["n"] == 1


@pytest.mark.parametrize("rules", [PARKS, {}])
async def test_who_asks_the_same_until_an_answer_will_do_is_not_given_the_first_one_for_ever(rules):
    async def asks(exchange):
        found = []
        while sum(found) < 6:
            found.append((await exchange.ask(form("More?", "a")))["content"]["n"])
        return {"found": found}

    given = {"a": accept(n=1), "a#2": accept(n=2), "a#3": accept(n=3)}
    assert (await Rounds(asks, **rules).all_of(given))["found"] == [1, 2, 3]
    rounds = Rounds(asks, **rules)
    asked = await rounds({"a": accept(n=1)})  # an answer without a state, too, is that of the first one
    assert list(asked["inputRequests"]) == ["a#2"]
    rounds.asker.parking.close()
    await turns()


@pytest.mark.parametrize("rules", [PARKS, {}])
async def test_a_question_that_could_not_be_put_takes_no_key(rules):
    async def asks(exchange):
        try:
            await exchange.ask(Question("elicitation/create", {"mode": "url"}, ("elicitation.url",), "a"))
        except CannotAsk:
            return {"n": (await exchange.ask(form("A?", "a")))["content"]["n"]}

    assert (await Rounds(asks, **rules).all_of({"a": accept(n=4)}))["n"] == 4


@pytest.mark.parametrize("rules", [PARKS, {}])
async def test_an_answer_that_does_not_fit_counts_once(rules):
    """Who asks again then is not given it for ever."""

    async def asks(exchange):
        while True:
            try:
                return {"n": (await exchange.ask(form("A?", "a")))["content"]["n"]}
            except InvalidParams:
                continue

    rounds = Rounds(asks, **rules)
    asked = await rounds({"a": {"action": "maybe"}})
    assert list(asked["inputRequests"]) == ["a"]
    assert (await rounds({"a": accept(n=3)}, asked["requestState"]))["n"] == 3
