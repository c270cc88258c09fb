"""wire/once.py: an act is done once for all who ask for it, whoever of them gives up."""

import asyncio
import gc
import warnings

import pytest

from interlock.wire.errors import LocalError
from interlock.wire.exchange import Exchange, Peer
from interlock.wire.once import Acts
from support.doubles import turns


def exchange():
    return Exchange("tools/call", {}, peer=Peer())


class Work:
    """An act that ends when it is told to, and what became of it."""

    def __init__(self):
        self.seen = []
        self.go = asyncio.Event()

    async def __call__(self):
        self.seen.append("begun")
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            await turns()
            self.seen.append("cleaned up")
            raise
        self.seen.append("done")
        return len(self.seen)


async def test_all_who_come_meanwhile_get_the_one_result():
    one, work = exchange(), Work()
    calls = [asyncio.ensure_future(one.once("pay", work)) for _ in range(3)]
    other = asyncio.ensure_future(one.once("other", lambda: 5))
    await turns()
    assert other.result() == b"5" and not any(call.done() for call in calls)
    work.go.set()
    assert await asyncio.gather(*calls, one.once("pay", work)) == [b"2"] * 4
    assert await one.once("pay", work) == b"2"
    assert work.seen == ["begun", "done"]


async def test_all_who_come_meanwhile_get_its_exception_and_then_it_may_be_tried_again():
    one, tries = exchange(), []

    async def fails():
        tries.append(1)
        await turns()
        raise ValueError("no paper")

    found = await asyncio.gather(*(one.once("pay", fails) for _ in range(3)), return_exceptions=True)
    assert [str(each) for each in found] == ["no paper"] * 3 and tries == [1]
    assert await one.once("pay", lambda: "paid") == b'"paid"'


@pytest.mark.parametrize("given", [object(), {1: object()}])
async def test_a_result_that_is_no_json_counts_as_not_done(given):
    one = exchange()

    async def later():
        return given

    for act in (later, lambda: given):
        with pytest.raises(TypeError):
            await one.once("pay", act)
    assert await one.once("pay", lambda: 1) == b"1"


async def test_who_gives_up_leaves_the_act_to_the_others():
    one, work = exchange(), Work()
    first = asyncio.ensure_future(one.once("pay", work))
    second = asyncio.ensure_future(one.once("pay", work))
    await turns()
    first.cancel()
    await turns()
    assert first.cancelled() and not second.done() and work.seen == ["begun"]
    work.go.set()
    assert await second == b"2"


async def test_it_is_cancelled_when_nobody_waits_and_cleaned_up_before_the_last_goes():
    one, work = exchange(), Work()
    calls = [asyncio.ensure_future(one.once("pay", work)) for _ in range(2)]
    await turns()
    for call in calls:
        call.cancel()
    await turns(2)
    assert calls[0].cancelled() and not calls[1].done()
    with pytest.raises(asyncio.CancelledError):
        await calls[1]
    assert work.seen == ["begun", "cleaned up"]


async def test_who_comes_while_it_is_given_up_begins_anew():
    one, work = exchange(), Work()
    first = asyncio.ensure_future(one.once("pay", work))
    await turns()
    first.cancel()
    await turns(1)
    assert await one.once("pay", lambda: "again") == b'"again"'
    assert work.seen == ["begun", "cleaned up"] and first.cancelled()


async def test_what_is_done_although_it_was_given_up_is_done():
    one = exchange()

    async def stubborn():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await turns()
        return "paid"

    first = asyncio.ensure_future(one.once("pay", stubborn))
    await turns()
    first.cancel()
    await turns(1)
    assert await one.once("pay", lambda: "paid again") == b'"paid"'
    assert first.cancelled()


@pytest.mark.parametrize("kind", ["coroutine", "future"])
async def test_one_that_is_cancelled_before_it_begins_leaves_nothing_behind(kind):
    one, future, seen = exchange(), asyncio.get_running_loop().create_future(), []

    async def act():
        seen.append(1)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        first = asyncio.ensure_future(one.once("pay", act if kind == "coroutine" else lambda: future))
        await asyncio.sleep(0)  # it has called the act, whose task has had no turn yet
        for task in asyncio.all_tasks() - {asyncio.current_task()}:  # as the end of a loop does
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        gc.collect()
    assert caught == [] and seen == [] and (kind == "coroutine" or future.cancelled())
    assert await one.once("pay", lambda: 1) == b"1"


async def test_an_act_that_waits_for_itself_is_told_so():
    one = exchange()

    async def nested():
        return await one.once("pay", nested)

    async def nested_deeper():
        [found] = await asyncio.gather(one.once("deep", nested_deeper))
        return found

    async def nested_in_another():
        return (await one.once("inner", lambda: 2)).decode()

    for key, act in (("pay", nested), ("deep", nested_deeper)):
        with pytest.raises(LocalError, match="inside of its own act"):
            await asyncio.wait_for(one.once(key, act), 10)
    assert await one.once("outer", nested_in_another) == b'"2"'


async def test_an_exit_inside_of_an_act_is_for_those_who_wait():
    one = exchange()

    async def leaves():
        await turns()
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        await one.once("pay", leaves)
    assert await one.once("pay", lambda: 1) == b"1"


def test_nobody_begins_what_is_under_way():
    acts = Acts()
    assert acts.begin("pay") is None and acts.begin("other") is None
    with pytest.raises(LocalError, match="under way"):
        acts.begin("pay")
    acts.end("pay", None)
    assert acts.begin("pay") is None
    acts.end("pay", b"1")
    assert acts.begin("pay") == b"1"
