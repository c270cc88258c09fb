"""transport/jsonrpc/executor.py: every run replies once, and no request ever feels that another one came before it."""

import asyncio
import gc
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from weakref import WeakKeyDictionary, ref

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from interlock.transport.jsonrpc.executor import Runs
from interlock.wire.exchange import Exchange, Peer
from support.doubles import turns
from support.properties import many
from support.virtual_time import VirtualLoop, virtual_time

WHO = ContextVar("who", default="nobody")


class Replies:
    """Runs, and what each replied."""

    def __init__(self, limit=1000):
        self.runs = Runs(asyncio.get_running_loop(), limit)
        self.by_id = {}
        self.order = []

    def start(self, id, work, exchange=None, cancellable=True):
        return self.runs.start(id, (work, exchange), self.reply, cancellable)

    def reply(self, id, answer):
        self.order.append(id)
        self.by_id.setdefault(id, []).append(answer)

    def nothing_left(self):
        """Besides the spare task, which waits for the next request until the end."""
        return not self.runs.by_id and self.runs._shifts <= {self.runs.spare}


async def gives(value=b"x"):
    return value


async def waits(event):
    await event.wait()
    return b"waited"


async def over(found):
    """The end of the connection."""
    found.runs.end()
    await found.runs.settle(10)
    assert not found.runs.by_id and not found.runs._shifts


# --- replies ---


async def test_an_answer_is_replied_once():
    found = Replies()
    found.start(1, gives(b"a"))
    assert found.by_id == {1: [b"a"]}  # at once: it never waited
    await turns()
    assert found.by_id == {1: [b"a"]}
    assert found.nothing_left()
    await over(found)


async def test_one_that_waits_is_replied_when_it_ends():
    found, event = Replies(), asyncio.Event()
    found.start(1, waits(event))
    assert list(found.runs.by_id) == [1] and found.by_id == {}
    await turns()
    event.set()
    assert found.by_id == {}
    await turns()
    assert found.by_id == {1: [b"waited"]}
    assert found.nothing_left()
    await over(found)


async def test_what_comes_while_a_request_begins_gets_a_task_of_its_own():
    # A carrier in this process delivers a handler's own message before the handler has gone on.
    found, tasks = Replies(), []

    async def inner():
        tasks.append(asyncio.current_task())
        return b"inner"

    async def outer():
        tasks.append(asyncio.current_task())
        found.start(2, inner())
        assert asyncio.current_task() is tasks[0]
        return b"outer"

    found.start(1, outer())
    assert found.by_id == {2: [b"inner"], 1: [b"outer"]}
    assert tasks[0] is not tasks[1]
    await over(found)


async def test_requests_begun_inside_each_other_do_not_fill_the_stack():
    found = Replies()

    async def nested(number):
        if number < 2000:
            found.start(number + 1, nested(number + 1))
        return b"%d" % number

    found.start(0, nested(0))
    await turns(1000)
    assert all(found.by_id[number] == [b"%d" % number] for number in range(2001))
    await over(found)


async def test_the_task_of_whoever_started_it_is_itself_again():
    found, event = Replies(), asyncio.Event()
    me = asyncio.current_task()
    found.start(1, gives())
    assert asyncio.current_task() is me
    found.start(2, waits(event))
    assert asyncio.current_task() is me
    event.set()
    await over(found)


async def test_answers_come_in_order_when_nobody_waits():
    found = Replies()
    for number in range(50):
        found.start(number, gives(b"%d" % number))
    assert found.order == list(range(50))
    await over(found)


async def test_one_that_waits_holds_up_no_other():
    found, event = Replies(), asyncio.Event()
    found.start(1, waits(event))
    for number in range(2, 20):
        found.start(number, gives())
    await turns(4)
    assert 1 not in found.by_id
    assert all(found.by_id[number] == [b"x"] for number in range(2, 20))
    event.set()
    await turns()
    assert found.by_id[1] == [b"waited"]
    assert found.nothing_left()
    await over(found)


async def test_many_that_wait_are_all_begun():
    found, event = Replies(), asyncio.Event()
    for number in range(100):
        found.start(number, waits(event))
    await turns(300)
    assert len(found.runs.by_id) == 100
    event.set()
    await turns()
    assert all(replies == [b"waited"] for replies in found.by_id.values())
    assert found.nothing_left()
    await over(found)


# --- cancelling ---


async def test_a_cancelled_run_replies_nothing_and_is_forgotten():
    found, stopped = Replies(), []

    async def forever():
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append(1)

    found.start(1, forever())
    await turns()
    assert found.runs.cancel(1)
    assert 1 not in found.runs.by_id
    await turns()
    assert stopped == [1]
    assert found.by_id == {1: [None]}
    assert found.nothing_left()
    await over(found)


async def test_a_run_that_swallows_its_cancellation_replies_nothing_all_the_same():
    found = Replies()

    async def stubborn():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass
        return b"too late"

    found.start(1, stubborn())
    await turns()
    found.runs.cancel(1)
    await turns()
    assert found.by_id == {1: [None]}
    await over(found)


async def test_one_cancelled_before_it_began_never_begins():
    found, begun = Replies(), []

    async def nested(number):
        begun.append(number)
        if number < 8:  # so deep inside each other that the last one has to wait for its turn
            found.start(number + 1, nested(number + 1))
        return b"x"

    found.start(0, nested(0))
    assert begun == list(range(8)) and list(found.runs.by_id) == [8]
    found.runs.cancel(8)
    await turns()
    assert begun == list(range(8))
    assert found.by_id == {**{number: [b"x"] for number in range(8)}, 8: [None]}
    assert found.nothing_left()
    await over(found)


async def test_one_cancelled_before_its_task_had_a_turn_is_told_where_it_waits():
    found, told = Replies(), []

    async def begins(waiting):
        try:
            await waiting
        except asyncio.CancelledError:
            told.append(waiting)
            raise

    future, sleep = asyncio.get_running_loop().create_future(), asyncio.sleep(0)
    child = asyncio.ensure_future(asyncio.Event().wait())
    done = asyncio.get_running_loop().create_future()
    for number, waiting in enumerate([future, sleep, child, done]):
        found.start(number, begins(waiting))
    done.set_result(None)
    for number in range(4):
        found.runs.cancel(number)
    await turns()
    assert {*map(id, told)} == {*map(id, [future, sleep, child, done])} and len(told) == 4
    assert future.cancelled() and child.cancelled()  # what a cancelled task waits for is cancelled too
    assert found.by_id == {number: [None] for number in range(4)}
    assert found.nothing_left()
    await over(found)


async def test_nobody_is_cancelled_twice_or_after_the_end():
    found = Replies()
    assert not found.runs.cancel(1)
    found.start(1, gives())
    await turns()
    assert not found.runs.cancel(1)
    found.start(2, waits(asyncio.Event()))
    assert found.runs.cancel(2)
    assert not found.runs.cancel(2)
    await turns()
    await over(found)


async def test_the_exchange_of_a_cancelled_run_falls_silent_at_once():
    # After the cancellation nothing may be said for the id, though the run needs a moment to end.
    found = Replies()
    exchange = Exchange("tools/call", {}, peer=Peer())
    found.start(1, waits(asyncio.Event()), exchange)
    await turns()
    found.runs.cancel(1)
    assert not exchange.live
    await turns()
    await over(found)


async def test_an_id_can_be_used_again_while_its_old_run_still_ends():
    found, slow = Replies(), asyncio.Event()

    async def slow_to_end():
        try:
            await asyncio.Event().wait()
        finally:
            await slow.wait()

    found.start(1, slow_to_end())
    await turns()
    found.runs.cancel(1)
    second = []
    event = asyncio.Event()
    found.runs.start(1, (waits(event), None), lambda id, answer: second.append(answer))
    await turns()
    slow.set()
    await turns()
    assert 1 in found.runs.by_id  # the old run must not take the new one's entry away
    event.set()
    await turns()
    assert (found.by_id[1], second) == ([None], [b"waited"])
    assert found.nothing_left()
    await over(found)


async def test_all_are_cancelled():
    found, event = Replies(), asyncio.Event()
    found.start(1, waits(event))
    await turns()
    found.start(2, waits(event))
    found.runs.end()
    await turns()
    assert found.by_id == {1: [None], 2: [None]}
    assert found.nothing_left()
    await over(found)


async def test_who_comes_behind_a_cancellation_begins_behind_its_effect():
    found, order = Replies(), []

    async def stops():
        try:
            await asyncio.Event().wait()
        finally:
            order.append("stopped")

    async def looks():
        order.append("looked")
        return b"x"

    found.start(1, stops())
    await turns()
    found.runs.cancel(1)
    found.start(2, looks())
    assert order == []
    await turns()
    assert order == ["stopped", "looked"]
    assert found.by_id == {1: [None], 2: [b"x"]}
    await over(found)


async def test_who_takes_back_its_own_cancellation_leaves_nothing_of_it_to_the_next_one():
    found = Replies()

    async def takes_back():
        found.runs.cancel(1)
        asyncio.current_task().uncancel()
        return b"too late"

    found.start(1, takes_back())
    found.start(2, gives())
    await turns()
    assert found.by_id == {1: [None], 2: [b"x"]}
    await over(found)


# --- what is kept ---


class Watched:
    """Stands for an answer, and for who takes one: bytes and functions do not tell when they go."""

    def __call__(self, id, answer): ...


@pytest.mark.parametrize("waiting", [False, True], ids=["at once", "after a wait"])
@pytest.mark.parametrize("kept", [False, True], ids=["nobody keeps the task", "its handler keeps it"])
async def test_an_answer_is_let_go_once_it_was_given(waiting, kept):
    """A large one, or a secret in one, is not kept until the next request comes."""
    runs, event, tasks, lives = Runs(asyncio.get_running_loop(), 10), asyncio.Event(), [], []

    def watched():
        made = Watched()
        lives.append(ref(made))
        return made

    async def says():
        if kept:
            tasks.append(asyncio.current_task())
        if waiting:
            await event.wait()
        return watched()

    runs.start(1, (says(), None), watched())
    event.set()
    await turns()
    assert [live() for live in lives] == [None, None]
    runs.end()
    await runs.settle(10)


async def test_what_a_run_waited_for_first_is_not_kept_until_it_ends():
    found, event, lives = Replies(), asyncio.Event(), []
    first = asyncio.get_running_loop().create_future()

    async def goes_on(future):
        await future
        del future
        return await waits(event)

    made = Watched()
    lives.append(ref(made))
    found.start(1, goes_on(first))
    first.set_result(made)
    del made, first
    await turns()
    assert lives[0]() is None and list(found.runs.by_id) == [1]
    event.set()
    await turns()
    assert found.by_id == {1: [b"waited"]}
    await over(found)


# --- what nobody is answered for ---


async def test_what_is_only_heard_begins_at_once_too():
    found, order = Replies(), []

    async def hears(name):
        order.append(name)

    assert found.runs.hear(hears("one"))
    found.start(1, gives())
    assert order == ["one"] and found.by_id == {1: [b"x"]}
    assert found.nothing_left()
    await over(found)


async def test_what_is_only_heard_is_not_waited_for_and_ends_with_the_rest():
    found, ended = Replies(), []

    async def listens():
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(1)

    found.runs.hear(listens())
    await turns()
    await asyncio.wait_for(found.runs.settle(1000), 60)
    assert ended == [] and not found.runs.by_id
    await over(found)
    assert ended == [1]


async def test_what_is_only_heard_is_bounded_and_takes_no_room_from_requests():
    found, event = Replies(limit=2), asyncio.Event()
    assert found.runs.hear(event.wait()) and found.runs.hear(event.wait())
    refused = event.wait()
    assert not found.runs.hear(refused)
    refused.close()
    assert found.start(1, waits(event)) and found.start(2, waits(event))
    event.set()
    await turns()
    assert found.by_id == {1: [b"waited"], 2: [b"waited"]}
    assert found.runs.hear(event.wait())
    await over(found)


async def test_a_failure_of_what_is_only_heard_harms_nobody(caplog):
    found = Replies()

    async def fails():
        raise ValueError("boom")

    found.runs.hear(fails())
    assert "boom" in caplog.text
    found.start(1, gives())
    assert found.by_id == {1: [b"x"]}
    await over(found)


# --- settling ---


@virtual_time
async def test_settling_waits_for_the_end_of_all():
    found = Replies()
    for number in range(3):
        found.start(number, sleeps(number))
    await found.runs.settle(10)
    assert found.nothing_left()
    assert asyncio.get_running_loop().time() == 1002
    await over(found)


async def sleeps(seconds):
    await asyncio.sleep(seconds)
    return b"slept"


@virtual_time
async def test_settling_gives_up_in_time():
    found, event = Replies(), asyncio.Event()
    found.start(1, waits(event))
    await found.runs.settle(5)
    assert len(found.runs.by_id) == 1
    assert asyncio.get_running_loop().time() == pytest.approx(1005)
    found.runs.end()
    await found.runs.settle(5)
    assert found.nothing_left()
    await over(found)


async def test_settling_nothing_is_done_at_once():
    await Replies().runs.settle(1000)


# --- one request never feels another ---


async def test_a_context_variable_does_not_leak_into_the_next_request():
    found, seen = Replies(), []

    async def sets(name):
        seen.append(WHO.get())
        WHO.set(name)
        return b"x"

    for number in range(20):
        found.start(number, sets(f"user {number}"))
    await turns(60)
    assert seen == ["nobody"] * 20
    assert WHO.get() == "nobody"
    await over(found)


async def test_nor_does_one_that_was_only_set_anew_to_an_equal_value():
    # Two empty lists are equal, and yet one request must not write into the other's.
    seen = []

    async def collects(number):
        seen.append(WHO.get())
        mine = []
        WHO.set(mine)
        return b"x"

    def start_all():
        base = []
        WHO.set(base)
        found = Replies()  # what its requests find is the context it was made in
        for number in range(3):
            found.start(number, collects(number))
        return base, found

    base, found = copy_context().run(start_all)
    await turns(10)
    assert all(value is base for value in seen)
    await over(found)


async def test_nor_does_one_that_is_set_after_waiting():
    found, seen = Replies(), []

    async def sets(name):
        seen.append(WHO.get())
        await asyncio.sleep(0)
        WHO.set(name)
        await asyncio.sleep(0)
        seen.append(WHO.get())
        return b"x"

    for number in range(5):
        found.start(number, sets(number))
    await turns(40)
    assert sorted(map(str, seen)) == sorted(["nobody"] * 5 + list("01234"))
    await over(found)


async def test_nor_one_whose_values_cannot_be_compared():
    class Odd:
        def __eq__(self, other):
            raise ValueError("the truth of this is ambiguous")  # as arrays do

        __hash__ = None

    seen = []

    async def sets():
        seen.append(WHO.get())
        WHO.set(Odd())
        return b"x"

    def start_all():
        WHO.set(base)
        found = Replies()
        for number in range(3):
            found.start(number, sets())
        return found

    base = Odd()
    found = copy_context().run(start_all)
    await turns(10)
    assert [value is base for value in seen] == [True] * 3
    assert all(replies == [b"x"] for replies in found.by_id.values())
    gc.collect()  # a worker that died of it would tell the loop now, which fails the test
    await over(found)


@virtual_time
async def test_a_timeout_of_one_request_never_touches_another():
    found = Replies()

    async def hurried():
        async with asyncio.timeout(0.5):
            return b"quick"

    async def late():
        try:
            async with asyncio.timeout(0.5):
                await asyncio.Event().wait()
        except TimeoutError:
            return b"late"

    async def longer():
        await asyncio.sleep(2)
        return b"done"

    for number in range(0, 30, 3):
        found.start(number, hurried())
        found.start(number + 1, longer())
        found.start(number + 2, late())
    await found.runs.settle(10)
    assert [found.by_id[number][0] for number in range(30)] == [b"quick", b"done", b"late"] * 10
    await over(found)


@virtual_time
async def test_a_timeout_that_is_already_over_never_touches_another():
    found = Replies()

    async def expired():
        try:
            async with asyncio.timeout(-1):
                return b"never waited"
        except TimeoutError:
            return b"expired"

    async def longer():
        await asyncio.sleep(2)
        return b"done"

    for number in range(0, 20, 2):
        found.start(number, expired())
        found.start(number + 1, longer())
    await found.runs.settle(10)
    assert all(found.by_id[number] == [b"done"] for number in range(1, 20, 2))
    await over(found)


async def test_a_request_that_cancels_its_own_task_does_not_harm_the_next():
    found = Replies()

    async def suicidal():
        asyncio.current_task().cancel()
        return b"gone"

    async def innocent():
        await asyncio.sleep(0)
        return b"alive"

    for number in range(0, 20, 2):
        found.start(number, suicidal())
        found.start(number + 1, innocent())
    await turns(60)
    assert all(found.by_id[number] == [b"alive"] for number in range(1, 20, 2))
    assert all(len(found.by_id[number]) == 1 for number in range(0, 20, 2))
    assert found.nothing_left()
    await over(found)


@virtual_time
async def test_a_task_that_is_cancelled_late_takes_no_other_request_with_it():
    # What a request leaves behind (a timer, a callback) knows its task: nobody else's work may run in it then.
    found = Replies()

    async def leaves_a_timer():
        asyncio.get_running_loop().call_later(1, asyncio.current_task().cancel)
        return b"gone"

    async def longer():
        await asyncio.sleep(2)
        return b"alive"

    for number in range(0, 10, 2):
        found.start(number, leaves_a_timer())
        found.start(number + 1, longer())
    await found.runs.settle(10)
    assert all(found.by_id[number] == [b"alive"] for number in range(1, 10, 2))
    await over(found)


async def test_a_task_group_of_one_request_never_touches_another():
    found = Replies()

    async def fails():
        raise ValueError("x")

    async def grouped():
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(fails())
                await asyncio.Event().wait()
        except* ValueError:
            pass
        return b"failed inside"

    async def longer():
        await turns(20)
        return b"alive"

    for number in range(0, 10, 2):
        found.start(number, grouped())
        found.start(number + 1, longer())
    await turns(80)
    assert [found.by_id[number] for number in range(10)] == [[b"failed inside"], [b"alive"]] * 5
    await over(found)


async def test_what_is_kept_by_the_task_is_not_found_by_the_next_request():
    found, sessions, seen = Replies(), WeakKeyDictionary(), []

    async def finds_session(name):
        seen.append(sessions.setdefault(asyncio.current_task(), name))
        return b"x"

    for number, name in enumerate(["ada", "bob", "eve"]):
        found.start(number, finds_session(name))
    assert seen == ["ada", "bob", "eve"]
    await over(found)


async def test_what_is_to_be_done_at_the_end_of_the_task_is_done_before_much_else_runs():
    """Who cleans up behind the current task means its own request, not the last one of the connection."""
    found, cleaned = Replies(), []

    async def leaves_work_for_the_end(name):
        asyncio.current_task().add_done_callback(lambda _: cleaned.append(name))
        return b"x"

    found.start(0, gives())
    await turns()  # the spare task is parked by now
    for number, name in enumerate(["ada", "bob"], 1):
        found.start(number, leaves_work_for_the_end(name))
        await turns()
        assert cleaned[-1] == name
    await over(found)


async def test_a_cancellation_taken_back_does_not_harm_the_next():
    found = Replies()

    async def changes_its_mind():
        task = asyncio.current_task()
        task.cancel()
        task.uncancel()
        return b"stayed"

    async def innocent():
        await asyncio.sleep(0)
        return b"alive"

    found.start(0, gives())
    await turns()  # the spare task is parked by now
    for number in range(1, 9, 2):
        found.start(number, changes_its_mind())
        found.start(number + 1, innocent())
    await turns(20)
    assert [found.by_id[number] for number in range(1, 9)] == [[b"stayed"], [b"alive"]] * 4
    await over(found)


async def test_what_has_ended_takes_no_room():
    found = Replies(limit=10)

    async def sets():
        WHO.set("somebody")
        return b"x"

    assert all(found.start(number, sets()) for number in range(100))
    await over(found)


@pytest.mark.skipif(not hasattr(asyncio, "eager_task_factory"), reason="Python 3.12 and newer have eager tasks")
async def test_eager_tasks_do_not_fill_the_stack_either():
    loop, found = asyncio.get_running_loop(), Replies()
    loop.set_task_factory(asyncio.eager_task_factory)

    async def nested(number):
        if number < 300:
            await asyncio.create_task(deeper(number + 1))
        return b"%d" % number

    async def deeper(number):
        found.start(number, nested(number))

    found.start(0, nested(0))
    await turns(1000)
    loop.set_task_factory(None)
    assert all(found.by_id[number] == [b"%d" % number] for number in range(301))
    await over(found)


# --- a task factory that wraps coroutines ---


async def enter(coroutine):
    """Wrap a coroutine as Sentry does, which begins a scope of its own."""
    WHO.set("the factory")
    return await coroutine


@contextmanager
def tasks_wrapped(wrap=enter, **options):
    loop = asyncio.get_running_loop()

    def factory(loop, coroutine, **named):
        return asyncio.Task(wrap(coroutine), loop=loop, **named, **options)

    loop.set_task_factory(factory)
    try:
        yield
    finally:
        loop.set_task_factory(None)


async def check_wrapped(found):
    async def sleeps():
        await asyncio.sleep(0)
        await asyncio.sleep(0.001)
        return b"slept"

    async def fails():
        await asyncio.sleep(0)
        raise ValueError

    found.start(1, gives())
    found.start(2, sleeps())
    found.start(3, fails())
    await found.runs.settle(10)
    assert (found.by_id[1], found.by_id[2]) == ([b"x"], [b"slept"])
    assert b"-32603" in found.by_id[3][0]
    assert found.nothing_left()
    await over(found)


async def test_wrapped_runs_answer_whether_they_wait_or_not():
    with tasks_wrapped():
        await check_wrapped(Replies())


@pytest.mark.skipif(not hasattr(asyncio, "eager_task_factory"), reason="Python 3.12 and newer have eager tasks")
async def test_eager_wrapped_runs_answer_whether_they_wait_or_not():
    with tasks_wrapped(eager_start=True):
        await check_wrapped(Replies())


async def test_wrapped_runs_are_inside_of_the_wrapper_from_the_start():
    async def who():
        first = WHO.get()
        await asyncio.sleep(0)
        return f"{first}, {WHO.get()}".encode()

    found = Replies()
    with tasks_wrapped():
        found.start(1, who())
    await found.runs.settle(10)
    assert found.by_id[1] == [b"the factory, the factory"]
    await over(found)


@pytest.mark.parametrize("turned", [0, 3], ids=["before its first turn", "while it waits"])
async def test_a_wrapped_run_that_is_cancelled_takes_no_room(turned):
    found = Replies(limit=10)
    with tasks_wrapped():
        for number in range(100):
            assert found.start(number, waits(asyncio.Event()))
            await turns(turned)
            assert found.runs.cancel(number)
            await turns(3)
    assert found.by_id == {number: [None] for number in range(100)}
    assert found.nothing_left()
    await over(found)


async def break_down(coroutine):
    raise OSError("no scope left")


async def forget(coroutine):
    """Neither awaited nor closed."""


@pytest.mark.parametrize(("wrap", "logged"), [(break_down, "no scope left"), (forget, "did not await")])
async def test_a_wrapper_that_fails_is_an_internal_error(caplog, wrap, logged):
    found = Replies(limit=1)
    with tasks_wrapped(wrap):
        assert found.start(1, gives())
    await turns(5)
    assert b"-32603" in found.by_id[1][0]
    assert logged in caplog.text
    assert found.nothing_left()
    await over(found)


async def test_a_task_factory_that_comes_later_harms_no_run():
    found, event = Replies(), asyncio.Event()
    found.start(1, gives())
    await turns()  # the spare task is parked by now
    with tasks_wrapped():
        for number in (2, 3, 4):
            found.start(number, waits(event))
    await turns()
    event.set()
    await found.runs.settle(10)
    assert found.by_id == {1: [b"x"], 2: [b"waited"], 3: [b"waited"], 4: [b"waited"]}
    await over(found)


async def test_work_that_fails_frees_its_id_and_harms_no_other():
    found = Replies()

    async def broken():
        raise RuntimeError("a bug of an edge")

    found.start(1, broken())
    found.start(2, gives())
    await turns(6)
    assert found.by_id[2] == [b"x"]
    assert 1 not in found.runs.by_id
    assert len(found.by_id[1]) == 1
    await over(found)


async def test_work_that_ends_like_a_closed_one_harms_no_other():
    found = Replies()

    async def leaves():
        raise GeneratorExit

    found.start(1, gives())
    found.start(2, leaves())
    found.start(3, gives())
    assert found.by_id[1] == found.by_id[3] == [b"x"]
    assert b"Internal error" in found.by_id[2][0]
    await over(found)


async def test_work_that_failed_after_waiting_leaves_a_worker_for_the_next(caplog):
    found = Replies()

    async def fails():
        await asyncio.sleep(0)
        raise ValueError("boom")

    found.start(1, fails())
    await turns()
    found.start(2, gives())
    assert b"Internal error" in found.by_id[1][0] and found.by_id[2] == [b"x"]
    assert found.nothing_left()
    await over(found)


async def test_one_task_serves_all_that_never_wait():
    found, tasks = Replies(), set()

    async def looks():
        tasks.add(id(asyncio.current_task()))
        return b"x"

    for number in range(6):
        found.start(number, looks())
        await turns()  # also once it is parked
    assert len(tasks) == 1 and len(found.order) == 6
    await over(found)


async def test_a_run_that_has_waited_leaves_nothing_to_be_collected():
    found, tasks = Replies(), []

    async def passes():
        tasks.append(ref(asyncio.current_task()))
        await asyncio.sleep(0)
        return b"x"

    gc.disable()
    try:
        found.start(1, passes())
        await turns()
        assert found.by_id == {1: [b"x"]}
        assert [task() for task in tasks] == [None]
    finally:
        gc.enable()
    await over(found)


# --- any order of anything ---


class RunsMachine(RuleBasedStateMachine):
    """Starts, cancels, finishes, times out and breaks runs in any order, and looks at every reply."""

    ids = Bundle("ids")

    @initialize()
    def begin(self):
        self.loop = VirtualLoop()
        self.unhandled = []
        self.loop.set_exception_handler(lambda loop, context: self.unhandled.append(context))
        self.runs = Runs(self.loop, 1000)
        self.events = {}
        self.replies = {}
        self.cancelled = set()
        self.seen = []
        self.last = 0

    @rule(target=ids, kind=st.sampled_from(["instant", "yields", "waits", "timeout", "context", "suicidal"]))
    def start(self, kind):
        self.last += 1
        id = self.last
        self.events[id] = asyncio.Event()
        self.replies[id] = []
        # in a turn of the loop, like everything that is read
        self.loop.call_soon(self.runs.start, id, (self.work(kind, id), None), self.reply)
        self.loop.run_until_complete(asyncio.sleep(0))
        return id

    def reply(self, id, answer):
        self.replies[id].append(answer)

    async def work(self, kind, id):
        self.seen.append(WHO.get())
        if kind == "context":
            WHO.set(id)
        elif kind == "yields":
            await turns(2)
        elif kind == "waits":
            await self.events[id].wait()
        elif kind == "suicidal":
            asyncio.current_task().cancel()
        elif kind == "timeout":
            try:
                async with asyncio.timeout(1):
                    await self.events[id].wait()
            except TimeoutError:
                pass
        return b"%d" % id

    @rule(id=ids)
    def finish(self, id):
        self.events[id].set()

    @rule(id=ids)
    def cancel(self, id):
        known = id in self.runs.by_id
        assert self.runs.cancel(id) is known
        assert id not in self.runs.by_id
        if known:
            self.cancelled.add(id)

    @rule()
    def cancel_all(self):
        self.cancelled |= {id for id in self.replies if id in self.runs.by_id}
        self.runs.end()
        assert not self.runs.by_id

    @rule(count=st.integers(1, 4))
    def turn(self, count):
        self.loop.run_until_complete(turns(count))

    @rule(seconds=st.sampled_from([0.5, 2]))
    def time_passes(self, seconds):
        self.loop.run_until_complete(asyncio.sleep(seconds))

    @invariant()
    def every_run_replies_at_most_once_and_never_after_its_cancellation(self):
        for id, replies in getattr(self, "replies", {}).items():
            assert len(replies) <= 1
            if replies:
                assert replies == ([None] if id in self.cancelled else [b"%d" % id])
                assert id not in self.runs.by_id
            else:
                assert (id in self.runs.by_id) != (id in self.cancelled)

    @invariant()
    def no_context_leaked(self):
        assert set(getattr(self, "seen", [])) <= {"nobody"}

    def teardown(self):
        if not hasattr(self, "loop"):
            return
        for event in self.events.values():
            event.set()
        self.loop.run_until_complete(self.runs.settle(10))
        assert all(len(replies) == 1 for replies in self.replies.values())
        assert not self.runs.by_id
        self.runs.end()
        self.loop.run_until_complete(turns(3))
        assert not self.runs._shifts
        assert not asyncio.all_tasks(self.loop)
        assert not self.unhandled
        self.loop.close()


TestRunsInAnyOrder = RunsMachine.TestCase
TestRunsInAnyOrder.settings = many(80, stateful_step_count=30)


async def test_a_run_that_must_not_be_cancelled_is_not_and_still_ends_with_the_connection():
    found, event = Replies(), asyncio.Event()
    found.start(1, waits(event), cancellable=False)
    await turns()
    assert not found.runs.cancel(1)
    assert 1 in found.runs.by_id
    found.runs.end()
    await turns()
    assert found.by_id == {1: [None]}
    assert found.nothing_left()
    await over(found)


async def test_no_more_run_at_once_than_there_is_room_for():
    found, event = Replies(limit=2), asyncio.Event()
    assert found.start(1, waits(event)) and found.start(2, waits(event))
    refused = waits(event)
    assert not found.start(3, refused)
    refused.close()
    assert found.start(4, waits(event), cancellable=False)  # never refused
    event.set()
    await turns()
    assert found.by_id == {1: [b"waited"], 2: [b"waited"], 4: [b"waited"]}
    assert found.start(5, gives())
    await over(found)


async def test_cancelled_runs_that_never_end_are_bounded_too():
    found, released = Replies(limit=2), asyncio.Event()

    async def deaf() -> bytes:
        while not released.is_set():
            try:
                await released.wait()
            except asyncio.CancelledError:
                continue
        return b""

    for id in range(4):
        assert found.start(id, deaf())
        await turns(5)
        found.runs.cancel(id)
    refused = deaf()
    assert not found.runs.by_id and not found.start(5, refused)
    refused.close()
    released.set()
    await found.runs.settle(5)
    assert found.start(6, gives())
    await over(found)
