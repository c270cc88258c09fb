"""server/calling.py: async functions in the request's own task, plain ones in a thread."""

import asyncio
import threading

import pytest

from interlock.server.calling import caller_of
from interlock.server.context import BlockingContext, Context
from interlock.server.schema import read_signature
from interlock.server.threads import Threads
from support.doubles import Spoken


async def call(function, arguments=None, exchange=None):
    caller = caller_of(function, read_signature(function, Context), Threads(2))
    return await caller(arguments or {}, exchange or Spoken("tools/call", {}))


async def test_an_async_function_runs_in_the_task_of_the_request():
    async def function(a: int):
        return a, asyncio.current_task(), threading.get_ident()

    assert await call(function, {"a": 1}) == (1, asyncio.current_task(), threading.get_ident())


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
