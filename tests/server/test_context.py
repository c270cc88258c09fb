"""server/context.py: what a handler may say, and what is left unsaid."""

import asyncio
import threading

import pytest

from interlock.client.client import Client
from interlock.server.context import BlockingContext, Context
from interlock.server.server import Server
from interlock.web.asgi.message import Headers
from interlock.wire.errors import ConnectionClosed, LocalError
from interlock.wire.exchange import LOCAL, Peer
from interlock.wire.meta import RequestMeta
from interlock.wire.types.capabilities import ClientCapabilities
from interlock.wire.types.common import LOG_LEVELS, Implementation
from support.doubles import Spoken

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def exchange(level=None, **meta):
    peer = Peer(Implementation(name="c", version="1"), ClientCapabilities(roots={}), log_level=level)
    return Spoken("tools/call", {}, peer, meta=RequestMeta(**meta))


def test_the_context_tells_of_its_request():
    ctx = Context(exchange(traceparent=TRACE))
    assert (ctx.client.name, ctx.client.version) == ("c", "1") and ctx.client.can("roots")
    assert ctx.principal is LOCAL and ctx.headers == {} and ctx.deadline is None
    assert ctx.trace == {"traceparent": TRACE}
    assert not ctx.cancelled
    ctx.exchange.live = False
    assert ctx.cancelled


async def test_progress_goes_only_to_who_asked_for_it():
    silent = exchange()
    await Context(silent).progress(1)
    assert silent.told == []
    for token in (7, "t", 0, ""):
        asked = exchange(progress_token=token)
        await Context(asked).progress(1)
        assert asked.told == [("notifications/progress", {"progressToken": token, "progress": 1})]


async def test_progress_says_what_it_was_given():
    asked = exchange(progress_token=7)
    await Context(asked).progress(0.5, 2, "half")
    await Context(asked).progress(1, 0, "")
    assert [params for _, params in asked.told] == [
        {"progressToken": 7, "progress": 0.5, "total": 2, "message": "half"},
        {"progressToken": 7, "progress": 1, "total": 0, "message": ""},
    ]


@pytest.mark.parametrize("floor", LOG_LEVELS)
async def test_a_message_is_sent_at_or_above_the_level_of_the_client(floor):
    listening = exchange(floor)
    for level in LOG_LEVELS:
        await Context(listening).log(level, {"at": level})
    sent = [params["level"] for _, params in listening.told]
    assert sent == list(LOG_LEVELS[LOG_LEVELS.index(floor) :])


async def test_a_client_that_set_no_level_hears_nothing():
    silent = exchange()
    await Context(silent).log("emergency", "fire")
    assert silent.told == []


async def test_data_is_any_value_and_the_logger_has_a_name():
    listening = exchange("debug")
    await Context(listening).log("info", None)
    await Context(listening).log("info", [1], "disk")
    assert [params for _, params in listening.told] == [
        {"level": "info", "data": None},
        {"level": "info", "data": [1], "logger": "disk"},
    ]


@pytest.mark.parametrize("level", ["warn", "INFO", ""])
async def test_a_level_that_is_none_is_a_mistake_of_the_author(level):
    with pytest.raises(LocalError, match="debug"):
        await Context(exchange()).log(level, 1)


async def test_a_handler_in_a_thread_waits_instead_of_awaiting():
    told = exchange("debug", progress_token=7)
    ctx = BlockingContext(told, asyncio.get_running_loop())

    def works():
        ctx.progress(1, 2)
        ctx.log("info", "x")
        return len(told.told)

    assert await asyncio.to_thread(works) == 2
    assert threading.current_thread() is threading.main_thread()


async def test_what_goes_wrong_is_raised_in_the_thread():
    ctx = BlockingContext(exchange(), asyncio.get_running_loop())

    def works():
        with pytest.raises(LocalError):
            ctx.log("loud", 1)
        return "caught"

    assert await asyncio.to_thread(works) == "caught"


# --- asking ---


class Answering(Spoken):
    """An exchange whose other side answers everything as told."""

    def __init__(self, **answers):
        super().__init__("tools/call", {}, Peer())
        self.answers = answers
        self.asked = []

    async def ask(self, question):
        self.asked.append(question)
        return self.answers[question.method.partition("/")[0]]


ACCEPTED = {"action": "accept", "content": {"value": 7}}
SAID = {"role": "assistant", "content": {"type": "text", "text": "Paris"}, "model": "m"}
ANSWERS = {"elicitation": ACCEPTED, "sampling": SAID, "roots": {"roots": [{"uri": "file:///a"}]}}


async def test_what_is_asked_and_what_comes_back():
    told = Answering(**ANSWERS)
    ctx = Context(told)
    assert await ctx.elicit("How many?", int, key="n") == 7
    assert await ctx.elicit_url("Go", "https://example.com/") is None
    said = await ctx.sample("Capital?", max_tokens=5, temperature=0.5)
    assert (said.text, [root.uri for root in await ctx.roots()]) == ("Paris", ["file:///a"])
    assert [question.method for question in told.asked] == [
        "elicitation/create",
        "elicitation/create",
        "sampling/createMessage",
        "roots/list",
    ]
    assert told.asked[2].params["temperature"] == 0.5 and told.asked[0].key == "n"


async def test_a_thread_asks_without_await():
    told = Answering(**ANSWERS)
    ctx = BlockingContext(told, asyncio.get_running_loop())

    def works():
        ctx.elicit_url("Go", "https://example.com/")
        found = (ctx.elicit("How many?", int), ctx.sample("Capital?").text, len(ctx.roots()))
        return found, ctx.once("act", lambda: 5), ctx.once("act", lambda: 6), ctx.release_stream()

    assert await asyncio.to_thread(works) == ((7, "Paris", 1), 5, 5, False)


async def test_once_is_once_under_one_key():
    ctx, acts = Context(Answering()), []

    async def act():
        acts.append(1)
        return {"n": len(acts)}

    assert [await ctx.once("a", act), await ctx.once("a", act), await ctx.once("b", lambda: (1, 2))] == [
        {"n": 1},
        {"n": 1},
        [1, 2],
    ]
    assert await ctx.once("b", act, tuple[int, int]) == (1, 2)
    assert acts == [1]


async def test_an_act_that_fails_is_not_done():
    ctx, tries = Context(Answering()), []

    def act():
        tries.append(1)
        if len(tries) == 1:
            raise ValueError("first")
        return "done"

    with pytest.raises(ValueError, match="first"):
        await ctx.once("a", act)
    assert await ctx.once("a", act) == "done"


async def test_a_thread_that_outlives_its_request_cannot_ask():
    told = Answering(**ANSWERS)
    told.live = False
    ctx = BlockingContext(told, asyncio.get_running_loop())
    with pytest.raises(ConnectionClosed):
        await asyncio.to_thread(ctx.elicit, "How many?", int)


async def test_a_stream_is_released_only_where_that_exists():
    ctx = Context(Answering())
    assert await ctx.release_stream(500) is False
    with pytest.raises(LocalError, match="milliseconds"):
        ctx.release_stream(-1)


# --- what it knows of its server and its request ---


def test_headers_are_those_of_the_request_and_read_only():
    lines = Headers([(b"x-team", b" blue "), (b"authorization", b"Bearer x")])
    ctx = Context(Spoken("tools/call", {}, Peer(lines=lines)))
    assert ctx.headers == {"x-team": "blue", "authorization": "Bearer x"}
    with pytest.raises(TypeError):
        ctx.headers["x-team"] = "red"


def test_a_deadline_is_told_where_there_is_one():
    class Timer:
        deadline = 7.5

        def pause(self): ...
        def resume(self): ...

    asked = exchange()
    assert Context(asked).deadline is None
    asked.timer = Timer()
    assert Context(asked).deadline == 7.5


def library(*functions):
    server = Server("s")

    @server.resource("book://{id}")
    async def book(id: int, ctx: Context) -> str:
        await ctx.progress(id)
        return f"book {id}"

    for function in functions:
        server.add_tool(function)
    return server


async def read_async(uri: str, ctx: Context) -> str:
    return (await ctx.read_resource(uri))[0].text


def read_blocking(uri: str, ctx: Context) -> str:
    return ctx.read_resource(uri)[0].text


@pytest.mark.parametrize("read", [read_async, read_blocking])
async def test_a_handler_reads_the_resources_beside_it(read):
    server, passed = library(read), []
    server.use(lambda handler: lambda exchange: passed.append(exchange.method) or handler(exchange))
    async with Client(server) as client:
        assert (await client.call_tool(read.__name__, {"uri": "book://7"})).text == "book 7"
        assert passed[-2:] == ["tools/call", "resources/read"]
        failed = await client.call_tool(read.__name__, {"uri": "book://x"})
        assert failed.is_error and failed.text == f"The tool {read.__name__} failed: Resource not found"


async def inside_async(path: str, ctx: Context) -> str:
    return str(await ctx.within_roots(path))


def inside_blocking(path: str, ctx: Context) -> str:
    return str(ctx.within_roots(path))


@pytest.mark.parametrize("inside", [inside_async, inside_blocking])
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_path_is_within_the_roots_of_the_client_or_not(inside, revision, tmp_path):
    roots = [{"uri": tmp_path.as_uri()}]
    async with Client(library(inside), roots=roots, revision=revision) as client:
        for path, expected in ((tmp_path / "a", "True"), (tmp_path, "True"), (tmp_path.parent, "False")):
            assert (await client.call_tool(inside.__name__, {"path": str(path)})).text == expected
        assert (await client.call_tool(inside.__name__, {"path": f"{tmp_path}-secret"})).text == "False"


async def count_async(paths: list[str], ctx: Context) -> str:
    return str([await ctx.within_roots(path) for path in paths].count(True))


def count_blocking(paths: list[str], ctx: Context) -> str:
    return str([ctx.within_roots(path) for path in paths].count(True))


@pytest.mark.parametrize("count", [count_async, count_blocking])
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_many_paths_are_one_question(count, revision, tmp_path):
    asked = []
    roots = lambda: asked.append(1) or [{"uri": tmp_path.as_uri()}]  # noqa: E731
    async with Client(library(count), roots=roots, revision=revision) as client:
        paths = [*(str(tmp_path / f"{number}") for number in range(50)), str(tmp_path.parent)]
        assert (await client.call_tool(count.__name__, {"paths": paths})).text == "50"
        assert len(asked) == 1
        await client.call_tool(count.__name__, {"paths": paths})
        assert len(asked) == 2  # another call asks anew


@pytest.mark.parametrize("name", ["app", "connection", "request"])
def test_what_no_lifespan_yields_is_said(name):
    with pytest.raises(LocalError):
        getattr(Context(exchange()), name)


async def test_an_act_asked_for_twice_at_once_is_done_once():
    ctx, acts = Context(Answering()), []

    async def act():
        await asyncio.sleep(0)
        acts.append(1)
        return {"n": len(acts)}

    assert await asyncio.gather(ctx.once("a", act), ctx.once("a", act, dict[str, int])) == [{"n": 1}] * 2
    assert acts == [1]


async def test_a_thread_does_not_begin_what_is_under_way():
    told = Answering()
    ctx = BlockingContext(told, asyncio.get_running_loop())
    told.begin_once("act")
    with pytest.raises(LocalError, match="under way"):
        await asyncio.to_thread(ctx.once, "act", lambda: 5)
