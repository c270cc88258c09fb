"""protocol/input/replay.py: a run that asks is run again, and nobody can tell."""

import asyncio
import contextlib
import functools
import gc
import logging

import pytest

from interlock.protocol.input.replay import Replay
from interlock.protocol.input.rounds import Questions, Round
from interlock.server.context import BlockingContext
from interlock.transport.event_loop import counting
from interlock.wire.types.capabilities import ClientCapabilities
from support.doubles import turns
from support.rounds import Rounds, accept, form

GIVEN = {key: accept(n=number) for number, key in enumerate(["a", "b", "c", "d"])}


@pytest.fixture(params=["any loop", "the loop of run"], autouse=True)
def _on_both_loops(request, monkeypatch):
    """Where tasks and timeouts are counted a run that is alone ends at once; nobody can tell."""
    if request.param != "any loop":
        monkeypatch.setattr(asyncio, "new_event_loop", counting(asyncio.SelectorEventLoop))


async def test_questions_in_a_row_take_a_round_each():
    seen = []

    async def asks(exchange):
        seen.append("run")
        first = await exchange.ask(form("A?", "a"))
        second = await exchange.ask(form("B?", "b"))
        return {"sum": first["content"]["n"] + second["content"]["n"]}

    assert (await Rounds(asks).all_of(GIVEN))["sum"] == 1
    assert len(seen) == 3


async def test_the_result_is_dropped_when_a_run_swallows_its_end():
    async def swallows(exchange):
        with contextlib.suppress(asyncio.CancelledError):
            await exchange.ask(form("A?", "a"))
            return {"answered": True}
        return {"answered": False}

    rounds = Rounds(swallows)
    assert (await rounds())["resultType"] == "input_required"
    assert (await rounds.all_of(GIVEN))["answered"] is True


async def test_a_run_that_swallows_its_end_does_not_wait_for_an_answer_of_this_round():
    async def swallows(exchange):
        other = asyncio.ensure_future(exchange.ask(form("A?", "a")))
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return await other

    assert list((await asyncio.wait_for(Rounds(swallows)(), 10))["inputRequests"]) == ["a"]


async def test_a_run_that_fails_on_its_way_out_asks_all_the_same(caplog):
    async def fails(exchange):
        try:
            await exchange.ask(form("A?", "a"))
        finally:
            raise RuntimeError("cleaning up")

    with caplog.at_level(logging.INFO):
        assert list((await Rounds(fails)())["inputRequests"]) == ["a"]
    assert not caplog.records


async def test_a_question_whose_time_is_over_is_not_asked():
    async def waits_for_nothing(exchange):
        try:
            async with asyncio.timeout(0):
                return await exchange.ask(form("A?", "a"))
        except TimeoutError:
            return {"late": True}

    assert (await Rounds(waits_for_nothing)())["late"] is True


async def test_a_question_beside_a_failure_is_not_asked():
    """The run itself asks, and a task of it fails in the same turn."""

    async def asks(exchange):
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(fails_after(0))
                await exchange.ask(form("A?", "a"))
        except ExceptionGroup as group:
            assert asyncio.current_task().cancelling() == 0
            return {"failed": [str(error) for error in group.exceptions], **await exchange.ask(form("B?", "b"))}

    rounds = Rounds(asks)
    first = await rounds()
    assert list(first["inputRequests"]) == ["b"]
    assert (await rounds({"b": accept()}, first["requestState"]))["failed"] == ["beside"]


@pytest.mark.parametrize("after", range(12))
async def test_what_others_of_the_run_ask_is_asked_in_whatever_turn_one_gave_up(after):
    async def asks(exchange):
        other = asyncio.ensure_future(exchange.ask(form("B?", "b")))
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(fails_after(after))
                await exchange.ask(form("A?", "a"))
        except ExceptionGroup:
            return await other

    first = await asyncio.wait_for(Rounds(asks)(), 10)
    assert "b" in first["inputRequests"]


async def fails_after(turns):
    for _ in range(turns):
        await asyncio.sleep(0)
    raise ValueError("beside")


async def test_a_question_nobody_waits_for_is_not_asked():
    async def forgets(exchange):
        task = asyncio.ensure_future(exchange.ask(form("A?", "a")))
        await asyncio.sleep(0)
        task.cancel()
        return {"done": True}

    assert (await Rounds(forgets)())["done"] is True


async def test_an_act_is_done_once_over_all_rounds():
    acts = []

    async def acts_once(exchange):
        await exchange.ask(form("A?", "a"))
        done = exchange.begin_once("pay")
        if done is None:
            acts.append(1)
            done = b'"paid"'
            exchange.end_once("pay", done)
        await exchange.ask(form("B?", "b"))
        return {"done": done.decode()}

    assert (await Rounds(acts_once).all_of(GIVEN))["done"] == '"paid"'
    assert acts == [1]


async def test_an_act_beside_a_question_is_finished_before_the_round_ends():
    acts, slow = [], asyncio.Event()

    async def both(exchange):
        async def act():
            if exchange.begin_once("pay") is None:
                acts.append("begun")
                await slow.wait()
                acts.append("done")
                exchange.end_once("pay", b"1")

        async with asyncio.TaskGroup() as group:
            group.create_task(act())
            group.create_task(exchange.ask(form("A?", "a")))
        return {"ok": True}

    rounds = Rounds(both)
    first = asyncio.ensure_future(rounds())
    await turns(10)
    assert acts == ["begun"] and not first.done()
    slow.set()
    asked = await first
    assert acts == ["begun", "done"]
    assert (await rounds(GIVEN, asked["requestState"]))["ok"] is True
    assert acts == ["begun", "done"]


async def test_an_act_that_asks_fails_where_it_would_wait_for_ever(caplog):
    async def asks(exchange):
        async def act():
            return (await exchange.ask(form("A?", "a")))["action"]

        return {"said": (await exchange.once("pay", act)).decode()}

    rounds = Rounds(asks)
    assert (await asyncio.wait_for(rounds(), 10))["code"] == -32603
    assert "ask before it" in caplog.text
    assert (await rounds(GIVEN))["said"] == '"accept"'  # what is answered already is no question


async def test_an_act_in_a_thread_that_asks_fails_too(caplog):
    async def asks(exchange):
        blocking = BlockingContext(exchange, asyncio.get_running_loop())
        act = functools.partial(blocking.once, "pay", lambda: blocking.elicit("A?", int, key="a"))
        return {"said": await asyncio.to_thread(act)}

    assert (await asyncio.wait_for(Rounds(asks)(), 10))["code"] == -32603
    assert "ask before it" in caplog.text


async def test_what_an_act_left_behind_can_ask_beside_another_act():
    async def asks(exchange):
        left = []
        await exchange.once("begin", lambda: left.append(asyncio.create_task(exchange.ask(form("A?", "a")))))
        await exchange.once("pay", lambda: asyncio.sleep(0, 1))
        return await left[0]

    assert list((await asyncio.wait_for(Rounds(asks)(), 10))["inputRequests"]) == ["a"]


async def test_an_act_that_failed_counts_as_not_done():
    tried = []

    async def fails_first(exchange):
        if exchange.begin_once("pay") is None:
            tried.append(1)
            exchange.end_once("pay", None if len(tried) == 1 else b"1")
        await exchange.ask(form("A?", "a"))
        return {}

    await Rounds(fails_first).all_of(GIVEN)
    assert len(tried) == 2


async def test_a_question_that_has_changed_is_asked_again():
    wording = ["Which one?"]

    async def asks(exchange):
        return {"said": (await exchange.ask(form(wording[0], "a")))["content"]}

    rounds = Rounds(asks)
    state = (await rounds())["requestState"]
    wording[0] = "Delete everything?"
    again = await rounds(GIVEN, state)
    assert again["inputRequests"]["a"]["params"]["message"] == "Delete everything?"


async def test_answers_of_earlier_rounds_are_not_asked_for_again():
    async def asks(exchange):
        for key in "abc":
            await exchange.ask(form(f"{key}?", key))
        return {"done": True}

    rounds = Rounds(asks)
    first = await rounds()
    second = await rounds({"a": accept()}, first["requestState"])
    third = await rounds({"b": accept()}, second["requestState"])
    assert list(third["inputRequests"]) == ["c"]
    assert (await rounds({"c": accept()}, third["requestState"]))["done"] is True


async def test_an_answer_is_judged_in_the_round_it_comes_in():
    judged = []

    async def asks(exchange):
        for key in "abc":
            await exchange.ask(form(f"{key}?", key, check=lambda answer, key=key: judged.append(key)))
        return {"done": True}

    assert (await Rounds(asks).all_of(GIVEN))["done"] is True
    assert judged == ["a", "b", "c"]


@pytest.mark.parametrize("known", [True, False], ids=["asked before", "never asked"])
async def test_only_who_can_be_asked_is_asked(known):
    async def asks(exchange):
        return {"said": (await exchange.ask(form("A?", "a")))["action"]}

    rounds = Rounds(asks)
    state = (await rounds())["requestState"] if known else None
    told = await rounds(GIVEN, state, can=ClientCapabilities())  # it answers, and no longer says that it can
    assert told.get("said") == ("accept" if known else None)
    assert known or "did not declare elicitation" in told["message"]


@pytest.mark.requirement("MRTR-007")
async def test_who_leaves_a_question_open_and_no_longer_says_that_it_can_be_asked_is_not_asked_again():
    async def asks(exchange):
        return {"said": (await exchange.ask(form("A?", "a")))["action"]}

    rounds = Rounds(asks)
    state = (await rounds())["requestState"]
    told = await rounds({}, state, can=ClientCapabilities(roots={}))
    assert (told["code"], told["data"]) == (-32021, {"requiredCapabilities": {"elicitation": {}}})
    assert (await rounds({"a": accept()}, state))["said"] == "accept"


async def test_a_run_that_was_ended_to_ask_is_freed_at_once():
    async def asks(exchange):
        await exchange.ask(form("A?", "a"))
        await exchange.ask(form("B?", "b"))
        return {"done": True}

    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        assert (await Rounds(asks).all_of(GIVEN))["done"] is True
        gc.collect()
        circles = [each for each in gc.garbage if isinstance(each, Replay | Questions | Round)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert circles == []


async def test_who_cancels_the_run_has_the_last_word():
    slow = asyncio.Event()

    async def slow_to_end(exchange):
        try:
            await exchange.ask(form("A?", "a"))
        finally:
            await slow.wait()

    task = asyncio.ensure_future(Rounds(slow_to_end)())
    await turns(20)  # the round is over, the run is on its way out
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_the_task_is_itself_again_afterwards():
    async def asks(exchange):
        await exchange.ask(form("A?", "a"))

    async def serves():
        await Rounds(asks)()
        async with asyncio.timeout(5):
            await asyncio.sleep(0)
        return asyncio.current_task().cancelling()

    assert await asyncio.ensure_future(serves()) == 0


async def test_an_answer_never_counts_for_another_question():
    amount = [10]

    async def pays(exchange):
        first = amount[0]
        sure = await exchange.ask(form(f"Pay {first}?", "confirm"))
        await exchange.ask(form("Seat?", "seat"))
        return {"paid": first if sure["action"] == "accept" else 0}

    rounds = Rounds(pays)
    first = await rounds()
    second = await rounds({"confirm": accept()}, first["requestState"])
    amount[0] = 9999
    third = await rounds({"seat": accept()}, second["requestState"])
    assert third["inputRequests"]["confirm"]["params"]["message"] == "Pay 9999?"
    no = {"confirm": {"action": "decline"}, "seat": accept()}
    last = await rounds(no, third["requestState"])
    while last.get("resultType") == "input_required":
        last = await rounds(no, last["requestState"])
    assert last["paid"] == 0


async def test_one_key_is_for_one_question_also_in_a_row():
    async def confuses(exchange):
        await exchange.ask(form("One?", "k"))
        await exchange.ask(form("Two?", "k"))

    rounds = Rounds(confuses)
    asked = await rounds()
    assert (await rounds({"k": accept()}, asked["requestState"]))["code"] == -32603


async def test_an_answer_is_kept_while_its_question_is_not_asked():
    """A function may skip in one run what it asks in the next; it is not asked for it twice."""
    runs = []

    async def skips(exchange):
        runs.append(len(runs))
        found = [] if runs[-1] == 2 else [await exchange.ask(form("A?", "a"))]
        found += [await exchange.ask(form("B?", "b")), await exchange.ask(form("C?", "c"))]
        return {"sum": sum(answer["content"]["n"] for answer in found)}

    rounds = Rounds(skips)
    asked = await rounds()
    for key in ("a", "b", "c"):
        assert list(asked["inputRequests"]) == [key]
        asked = await rounds({key: GIVEN[key]}, asked["requestState"])
    assert asked["sum"] == 3


@pytest.mark.parametrize("alone", [False, True])
async def test_a_run_that_was_cancelled_once_and_goes_on_can_ask(alone):
    """Some leave that behind in their task: a TaskGroup whose failure was caught (3.11), or who takes it for theirs."""
    if alone:
        asyncio.get_running_loop().uses = 0  # as on a loop that does not look at the time with every turn

    async def asks(exchange):
        task = asyncio.current_task()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0)
        answer = await exchange.ask(form("A?", "a"))
        task.uncancel()
        return answer

    rounds = Rounds(asks)
    asked = await asyncio.ensure_future(rounds())
    assert list(asked["inputRequests"]) == ["a"]
    assert (await rounds(GIVEN, asked["requestState"]))["content"]["n"] == 0


@pytest.mark.parametrize("later", range(4))
async def test_a_task_that_asks_some_turns_later_is_waited_for(later):
    async def asks(exchange):
        async def second():
            await turns(later)
            return await exchange.ask(form("B?", "b"))

        return {"n": len(await asyncio.gather(exchange.ask(form("A?", "a")), second()))}

    assert set((await Rounds(asks)())["inputRequests"]) == {"a", "b"}


async def test_a_grace_waits_for_the_tasks_of_a_run_that_asks_itself():
    async def asks(exchange):
        async def second():
            await turns(8)
            return await exchange.ask(form("B?", "b"))

        other = asyncio.create_task(second())
        await exchange.ask(form("A?", "a"))
        await other

    assert set((await Rounds(asks, grace=0.3)())["inputRequests"]) == {"a", "b"}


async def test_an_act_that_comes_too_late_is_not_done():
    late, acts = [], []

    async def leaves_a_task(exchange):
        async def acts_later():
            await turns(10)
            await exchange.once("pay", lambda: acts.append(1))

        late.append(asyncio.ensure_future(acts_later()))
        return {"done": True}

    assert (await Rounds(leaves_a_task)())["done"] is True
    await asyncio.wait(late, timeout=10)
    assert late[0].cancelled() and acts == []


async def test_a_question_that_comes_too_late_harms_nobody():
    late = []

    async def leaves_a_task(exchange):
        async def asks_later():
            await turns(10)
            await exchange.ask(form("Late?", "late"))

        late.append(asyncio.ensure_future(asks_later()))
        return {"done": True}

    async def serves():
        assert (await Rounds(leaves_a_task)())["done"] is True
        await turns(40)  # the task that served it goes on with something else
        return "unharmed"

    assert await asyncio.ensure_future(serves()) == "unharmed"
    assert late[0].cancelled()


@pytest.mark.parametrize("style", ["finally", "swallowed"])
async def test_who_asks_on_its_way_out_does_not_hang(style):
    async def asks_again(exchange):
        try:
            await exchange.ask(form("A?", "a"))
        except asyncio.CancelledError:
            if style == "swallowed":
                await exchange.ask(form("B?", "b"))
            raise
        finally:
            if style == "finally":
                await exchange.ask(form("B?", "b"))

    assert list((await asyncio.wait_for(Rounds(asks_again)(), 10))["inputRequests"]) == ["a"]


async def test_an_act_is_not_begun_when_the_round_is_over():
    acts = []

    async def acts_on_its_way_out(exchange):
        try:
            await exchange.ask(form("A?", "a"))
        finally:
            if exchange.begin_once("pay") is None:
                acts.append(1)
                exchange.end_once("pay", b"1")

    rounds = Rounds(acts_on_its_way_out)
    asked = await rounds()
    assert acts == []
    await rounds(GIVEN, asked["requestState"])
    assert acts == [1]


# --- where that is counted ------------------------------------------------------------------------


def counts():
    return hasattr(asyncio.get_running_loop(), "uses")


async def test_a_run_that_made_no_task_is_ended_where_it_asks():
    passed = []

    async def asks(exchange):
        try:
            await exchange.ask(form("A?", "a"))
        finally:
            passed.append(0)

    asyncio.get_running_loop().call_soon(passed.append, 1)
    assert list((await Rounds(asks)())["inputRequests"]) == ["a"]
    assert passed == ([0] if counts() else [1, 0])


async def test_a_run_that_made_a_task_waits_for_what_that_one_asks():
    async def asks(exchange):
        other = asyncio.create_task(exchange.ask(form("B?", "b")))
        first = await exchange.ask(form("A?", "a"))
        return {"sum": first["content"]["n"] + (await other)["content"]["n"]}

    rounds = Rounds(asks)
    assert set((await rounds())["inputRequests"]) == {"a", "b"}
    assert (await rounds.all_of(GIVEN))["sum"] == 1


async def test_a_grace_is_given_to_a_run_that_is_alone_too():
    async def asks(exchange):
        asyncio.get_running_loop().call_later(0.001, late.set_result, None)
        await exchange.ask(form("A?", "a"))

    late = asyncio.get_running_loop().create_future()
    assert list((await Rounds(asks, grace=0.02)())["inputRequests"]) == ["a"]
    assert late.done()


async def test_what_stands_around_a_question_lets_its_end_through():
    async def asks(exchange):
        async with asyncio.timeout(10), asyncio.TaskGroup():
            return await exchange.ask(form("A?", "a"))

    rounds = Rounds(asks)
    assert list((await rounds())["inputRequests"]) == ["a"]
    assert asyncio.current_task().cancelling() == 0
    assert (await rounds.all_of(GIVEN))["content"]["n"] == 0


async def test_who_is_cancelled_while_it_cleans_up_behind_its_question_asks_nothing():
    cleaning = asyncio.Event()

    async def asks(exchange):
        try:
            await exchange.ask(form("A?", "a"))
        finally:
            cleaning.set()
            await asyncio.sleep(10)

    run = asyncio.ensure_future(Rounds(asks)())
    await cleaning.wait()
    await turns(2)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert run.cancelled()


async def test_whoever_was_cancelled_before_it_asks_asks_nothing():
    async def asks(exchange):
        asyncio.current_task().cancel()
        await exchange.ask(form("A?", "a"))

    run = asyncio.ensure_future(Rounds(asks)())
    with pytest.raises(asyncio.CancelledError):
        await run


async def test_a_run_that_swallowed_its_end_asks_nothing_else():
    async def asks(exchange):
        for key in ("a", "b"):
            with contextlib.suppress(asyncio.CancelledError):
                await exchange.ask(form("?", key))
        return {}

    assert list((await Rounds(asks)())["inputRequests"]) == ["a"]
