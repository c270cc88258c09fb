"""server/execution/invoke.py: async functions in the request's own task, plain ones in a thread."""

import asyncio
import functools
import threading
import unittest.mock

import pytest

from interlock.server.context import BlockingContext, Context
from interlock.server.execution.invoke import caller_of, takes_in_order
from interlock.server.execution.thread_pool import Threads
from interlock.server.schema.signature import read_signature
from interlock.wire.errors import LocalError
from support.doubles import Spoken


async def call(function, arguments=None, exchange=None):
    caller = caller_of(function, read_signature(function, Context), Threads(2))
    return await caller(arguments or {}, exchange or Spoken("tools/call", {}))


async def test_an_async_function_runs_in_the_task_of_the_request():
    async def function(a: int):
        return a, asyncio.current_task(), threading.get_ident()

    assert await call(function, {"a": 1}) == (1, asyncio.current_task(), threading.get_ident())


async def plain_order(a: int, b: int = 1): ...


def test_only_what_takes_its_arguments_in_their_order_is_called_so():
    async def by_name(a: int, *, b: int = 1): ...

    @functools.wraps(plain_order)
    async def around(**arguments):
        return await plain_order(**arguments)

    class Tools:
        async def method(self, a: int, b: int = 1): ...

    async def knowing(a: int, ctx: Context, b: int = 1): ...

    def in_thread(a: int, b: int = 1): ...

    assert takes_in_order(plain_order, ("a", "b"))
    assert not takes_in_order(plain_order, ("b", "a"))
    others = (by_name, around, Tools().method, knowing, in_thread, functools.partial(plain_order, 1))
    assert not any(takes_in_order(function, ("a", "b")) for function in others)


async def knowing_by_name(a, b, *, ctx: Context): ...


def test_a_context_by_name_is_no_argument_that_could_be_left_out():
    assert not takes_in_order(knowing_by_name, ("a", "b"))


async def test_a_plain_function_runs_elsewhere():
    def function(a: int):
        return a, threading.get_ident()

    found, thread = await call(function, {"a": 1})
    assert found == 1 and thread != threading.get_ident()


async def test_the_loop_goes_on_while_a_plain_function_works():
    gate = threading.Event()

    def function():
        return gate.wait(20)

    task = asyncio.ensure_future(call(function))
    await asyncio.sleep(0)
    gate.set()
    assert await task is True


async def test_an_object_with_an_async_call_is_an_async_function():
    class Tool:
        async def __call__(self, a: int):
            return asyncio.current_task()

    assert await call(Tool(), {"a": 1}) is asyncio.current_task()


async def test_each_gets_the_context_of_its_kind():
    async def in_task(a: int, ctx: Context):
        return type(ctx), ctx.exchange

    def in_thread(a: int, ctx: Context):
        return type(ctx), ctx.exchange

    exchange = Spoken("tools/call", {})
    assert await call(in_task, {"a": 1}, exchange) == (Context, exchange)
    assert await call(in_thread, {"a": 1}, exchange) == (BlockingContext, exchange)


async def test_without_a_parameter_for_it_there_is_no_context():
    async def in_task():
        return "task"

    def in_thread():
        return "thread"

    assert (await call(in_task), await call(in_thread)) == ("task", "thread")


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(1)])
async def test_what_it_raises_comes_through(error):
    def in_thread():
        raise error

    async def in_task():
        raise error

    for function in (in_thread, in_task):
        with pytest.raises(type(error)):
            await call(function)


# --- where a plain function runs ---


async def call_in(thread, function, exchange=None):
    caller = caller_of(function, read_signature(function, Context), Threads(2), thread)
    return await caller({}, exchange or Spoken("tools/call", {}))


async def test_the_loop_itself_runs_what_never_blocks():
    def function():
        return threading.get_ident(), asyncio.current_task()

    assert await call_in("loop", function) == (threading.get_ident(), asyncio.current_task())


async def test_a_function_on_the_loop_reads_the_context():
    def function(ctx: Context):
        return type(ctx), ctx.client

    exchange = Spoken("tools/call", {})
    assert await call_in("loop", function, exchange) == (Context, exchange.peer)


async def test_own_gives_a_new_thread_each_time_and_pool_shares_them():
    local = threading.local()

    def function():
        local.count = getattr(local, "count", 0) + 1
        return local.count

    caller = caller_of(function, read_signature(function, Context), Threads(1), "own")
    assert [await caller({}, Spoken("tools/call", {})) for _ in range(3)] == [1, 1, 1]
    caller = caller_of(function, read_signature(function, Context), Threads(1), "pool")
    assert [await caller({}, Spoken("tools/call", {})) for _ in range(3)] == [1, 2, 3]


async def test_the_context_of_a_thread_ends_with_its_call_in_every_kind_of_thread():
    def function(ctx: Context):
        return ctx

    for thread in ("own", "pool"):
        context = await call_in(thread, function)
        assert isinstance(context, BlockingContext) and context._ended


def test_a_policy_that_makes_no_sense_is_told_at_registration():
    async def in_task(): ...

    def in_thread(): ...

    for thread in ("pool", "own"):
        with pytest.raises(LocalError, match="async function runs on the loop"):
            caller_of(in_task, read_signature(in_task, Context), Threads(1), thread)
    assert caller_of(in_task, read_signature(in_task, Context), Threads(1), "loop")
    with pytest.raises(LocalError, match="'pool', 'own' or 'loop'"):
        caller_of(in_thread, read_signature(in_thread, Context), Threads(1), "main")


def logged(function):
    """A decorator as authors write them: plain, around whatever comes."""

    @functools.wraps(function)
    def around(*args, **kwargs):
        return function(*args, **kwargs)

    return around


@pytest.mark.parametrize("thread", [None, "own", "loop"])
async def test_what_a_plain_wrapper_of_an_async_function_returns_is_awaited(thread):
    async def plain(a: int):
        return a, threading.get_ident()

    async def knowing(a: int, ctx: Context):
        await ctx.progress(1)
        return a, threading.get_ident()

    for function in (logged(plain), logged(logged(knowing))):
        caller = caller_of(function, read_signature(function, Context), Threads(2), thread)
        assert await caller({"a": 1}, Spoken("tools/call", {})) == (1, threading.get_ident())


async def test_a_wrapper_that_runs_the_async_function_itself_may():
    async def slow(a: int):
        return a + 1

    @functools.wraps(slow)
    def finished(a: int):
        return asyncio.run(slow(a))

    assert await call(finished, {"a": 1}) == 2


async def test_an_object_that_claims_to_have_every_member_is_not_awaited():
    claims = unittest.mock.MagicMock()
    assert await call(lambda: claims) is claims
