"""server/tools/generators.py: tools that are generators."""

import asyncio
import functools
import threading
from collections.abc import AsyncIterator, Iterator

import msgspec
import pytest

from interlock import Server
from interlock.server.context import BlockingContext, Context
from interlock.server.execution.thread_pool import Threads
from interlock.server.tools.generators import LONGEST_MESSAGE, MOST_PARTIAL_BYTES, is_stream
from interlock.server.tools.results import ToolResult
from interlock.server.tools.tool import RegisteredTool
from interlock.testing import MemoryClient
from interlock.wire.errors import LocalError, ToolError
from interlock.wire.meta import PARTIAL, RequestMeta
from interlock.wire.types.tools import CallToolParams
from support.doubles import Spoken


class Struct(msgspec.Struct):
    a: int


def spoken(token=None, partial=None, **arguments):
    meta = RequestMeta(**({"progress_token": token} if token else {}), **({"partial": partial} if partial else {}))
    params = CallToolParams(name="t", arguments=msgspec.Raw(msgspec.json.encode(arguments)))
    return Spoken("tools/call", params, meta=meta)


def tool(function, **facts):
    return RegisteredTool(function, threads=Threads(2), **facts)


async def called(function, exchange):
    result = await tool(function, name="t").call(exchange)
    return result, [params for _, params in exchange.told]


def plain(value):
    return msgspec.json.decode(msgspec.json.encode(value))


async def counting(to: int):
    for number in range(1, to + 1):
        yield f"{number} of {to}"


def counting_in_thread(to: int):
    for number in range(1, to + 1):
        yield f"{number} of {to}"


both = pytest.mark.parametrize("function", [counting, counting_in_thread])


@both
async def test_values_on_the_way_are_progress_and_the_last_is_the_result(function):
    result, told = await called(function, spoken("t1", to=3))
    assert result == {"content": [{"type": "text", "text": "3 of 3"}]}
    assert told == [{"progressToken": "t1", "progress": n, "message": f"{n} of 3"} for n in (1, 2, 3)]


@both
async def test_who_does_not_want_progress_gets_the_result_alone(function):
    result, told = await called(function, spoken(to=3))
    assert result["content"][0]["text"] == "3 of 3" and told == []


@both
async def test_nothing_yielded_is_an_empty_result(function):
    assert await called(function, spoken("t", to=0)) == ({"content": []}, [])


@both
async def test_values_themselves_go_only_to_who_asked_for_them(function):
    _, told = await called(function, spoken("t", True, to=1))
    assert plain(told) == [{"progressToken": "t", "progress": 1, "message": "1 of 1", "_meta": {PARTIAL: "1 of 1"}}]
    _, told = await called(function, spoken("t", "yes", to=1))
    assert "_meta" not in told[0]


async def test_data_on_the_way_has_no_message():
    async def steps() -> AsyncIterator[Struct]:
        yield Struct(1)
        yield Struct(2)

    registered = tool(steps, name="t")
    assert registered.noun.output_schema["properties"] == {"a": {"type": "integer"}}
    exchange = spoken("t", True)
    result = await registered.call(exchange)
    assert bytes(result["structuredContent"]) == b'{"a":2}'
    assert plain(exchange.told[0][1]) == {"progressToken": "t", "progress": 1, "_meta": {PARTIAL: {"a": 1}}}
    assert "_meta" not in spoken("t").told


async def test_a_plain_generator_may_return_its_result():
    def steps():
        yield "half"
        return Struct(1)

    result, told = await called(steps, spoken("t"))
    assert bytes(result["structuredContent"]) == b'{"a":1}' and [each["message"] for each in told] == ["half"]


@pytest.mark.parametrize("thread", ["pool", "own", "loop"])
async def test_a_plain_generator_runs_where_its_tool_says(thread):
    where = []

    def steps():
        where.append(threading.current_thread() is threading.main_thread())
        yield "half"
        return "done"

    exchange = spoken("t")
    result = await tool(steps, name="t", thread=thread).call(exchange)
    assert result["content"][0]["text"] == "done" and [told["message"] for _, told in exchange.told] == ["half"]
    assert where == [thread == "loop"]


async def test_an_async_generator_has_no_thread():
    with pytest.raises(LocalError, match="runs on the loop"):
        tool(counting, thread="pool")


async def test_a_result_by_hand_is_the_last_value():
    async def steps():
        yield "half"
        yield ToolResult(content="done", meta={"com.example/a": 1})

    result, told = await called(steps, spoken("t", True))
    assert result["_meta"] == {"com.example/a": 1} and "_meta" not in told[1] and "message" not in told[1]


async def test_what_goes_out_on_the_way_is_bounded():
    async def steps():
        yield "x" * (MOST_PARTIAL_BYTES + 1)

    result, [told] = await called(steps, spoken("t", True))
    assert len(told["message"]) == LONGEST_MESSAGE and "_meta" not in told
    assert len(result["content"][0]["text"]) == MOST_PARTIAL_BYTES + 1


async def test_the_largest_value_goes_along():
    async def steps():
        yield "x" * (MOST_PARTIAL_BYTES - 2)  # and its quotes

    _, [told] = await called(steps, spoken("t", True))
    assert len(bytes(told["_meta"][PARTIAL])) == MOST_PARTIAL_BYTES


async def test_the_context_is_given_as_to_any_function():
    async def steps(ctx: Context):
        yield type(ctx).__name__

    def in_thread(ctx: Context):
        yield type(ctx).__name__

    assert tool(steps).takes_context and not tool(counting).takes_context
    assert (await called(steps, spoken()))[0]["content"][0]["text"] == "Context"
    assert (await called(in_thread, spoken()))[0]["content"][0]["text"] == BlockingContext.__name__


@pytest.mark.parametrize("style", ["async", "thread"])
async def test_a_failure_after_values_is_a_failure(style, caplog):
    ended = []

    async def steps():
        try:
            yield "half"
            raise ToolError("out of paper")
        finally:
            ended.append(True)

    def in_thread():
        try:
            yield "half"
            raise ToolError("out of paper")
        finally:
            ended.append(True)

    result, told = await called(steps if style == "async" else in_thread, spoken("t"))
    assert result == {"content": [{"type": "text", "text": "out of paper"}], "isError": True}
    assert len(told) == 1 and ended == [True]


async def test_cancelling_runs_finally_wherever_it_is():
    ended, at_yield, at_await = [], asyncio.Event(), asyncio.Event()

    class Stuck(Spoken):
        async def notify(self, method, params):
            at_yield.set()
            await asyncio.Event().wait()

    async def steps(wait: bool = False):
        try:
            if wait:
                at_await.set()
                await asyncio.Event().wait()
            yield 1
        finally:
            await asyncio.sleep(0)
            ended.append(wait)

    stuck = Stuck("tools/call", spoken().params, meta=RequestMeta(progress_token="t"))
    for exchange, where in ((stuck, at_yield), (spoken(wait=True), at_await)):
        task = asyncio.create_task(tool(steps, name="t").call(exchange))
        await where.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert ended == [False, True]


async def test_a_generator_in_a_thread_is_closed_when_nobody_waits_any_more():
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    exchange = spoken("t")

    def steps():
        try:
            while True:
                yield "again"
        finally:
            loop.call_soon_threadsafe(ended.set)

    task = asyncio.create_task(tool(steps, name="t").call(exchange))
    while not exchange.told:
        await asyncio.sleep(0)
    exchange.silence()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with asyncio.timeout(30):
        await ended.wait()


def test_generators_are_known_in_every_form():
    class Called:
        async def __call__(self):
            yield 1

    class CalledPlainly:
        def __call__(self):
            yield 1

    def annotated() -> Iterator[int]:
        return iter([1])

    for function in (counting, counting_in_thread, functools.partial(counting, to=1), Called(), CalledPlainly()):
        assert is_stream(function)
    for function in (annotated, len, Called, lambda: 1):
        assert not is_stream(function)


async def test_an_object_that_is_called_like_a_generator_works():
    class Called:
        async def __call__(self, a: int):
            yield a

    assert (await called(Called(), spoken(a=1)))[0]["content"][0]["text"] == "1"


def endless_plain():
    while True:
        yield 1


async def endless():
    while True:
        yield 1


@pytest.mark.parametrize("function", [endless, endless_plain])
@pytest.mark.parametrize("heard", [None, lambda *told: None], ids=["unheard", "heard"])
async def test_a_generator_that_never_waits_can_be_stopped(function, heard):
    server = Server("endless")
    server.add_tool(function, timeout=0.05, thread="loop")
    async with MemoryClient(server) as client:
        found = await client.call_tool(function.__name__, on_progress=heard)
    assert found.is_error and "was stopped" in found.text
