"""server/execution/guards.py: what is not asked for is not there; what is, stands where it must."""

import asyncio

import pytest

from interlock import Client, Concurrency, Context, InterlockError, Rate, RateLimits, Server, ToolError
from interlock.server.execution.guards import Guards
from interlock.wire.errors import InvalidParams, LocalError
from interlock.wire.exchange import Peer, Principal
from interlock.wire.types.content import TextContent
from support.doubles import Spoken
from support.idle import until_idle


async def handler(exchange):
    return {}


def call(arguments, exchange): ...


def test_without_guards_everything_is_as_it_was():
    guards = Guards(rate_limits=None, stall_seconds=None)
    assert guards.filter() is None
    assert guards.http_filter() is None
    assert guards.tool(call, handler, "t", timeout=None, concurrency=None) is call


def test_the_default_limits_stand_only_before_http():
    guards = Guards()
    assert guards.filter() is None
    assert guards.http_filter()(handler) is not handler


def test_limits_for_everybody_stand_before_everything_once():
    guards = Guards(rate_limits=RateLimits(local=True))
    assert guards.filter()(handler) is not handler
    assert guards.http_filter() is None


@pytest.mark.parametrize("local", [False, True])
async def test_one_of_several_workers_allows_its_part_of_every_rate(local):
    guards = Guards(rate_limits=RateLimits(calls=Rate(0.001, 4), local=local))
    filter = guards.filter() if local else guards.http_filter()
    before = filter(handler)
    guards.spread(2)
    for limited in (before, filter(handler)):
        exchange = Spoken("tools/call", {})
        exchange.peer = Peer(principal=Principal("i", "ada"))
        told = [await limited(exchange) for _ in range(3)]
        assert [answer.get("isError") for answer in told] == [None, None, True]


def test_what_makes_no_sense_is_told_when_the_server_is_made():
    for facts in ({"timeout": 0}, {"concurrency": 0}, {"stall_seconds": 0}):
        with pytest.raises(LocalError):
            Server("s", **facts)
    with pytest.raises(LocalError):
        Server("s", rate_limits=RateLimits(calls=Rate(0, 0)))


# --- time and number ---


async def told(server, name, **arguments):
    async with Client(server) as client:
        result = await client.call_tool(name, arguments)
        return result.is_error, result.content[0].text


async def test_the_time_of_a_tool_goes_before_that_of_the_server():
    server = Server("s", timeout=0.02)

    @server.tool
    async def slow() -> str:
        await asyncio.Event().wait()
        return "never"

    @server.tool(timeout=60)
    async def patient() -> str:
        await asyncio.sleep(0.1)
        return "done"

    assert await told(server, "slow") == (True, "The tool slow was stopped: it took longer than 0.02 s")
    assert await told(server, "patient") == (False, "done")


async def test_a_server_bounds_all_its_tools_together():
    server, go = Server("s", concurrency=Concurrency(2, waiting=0)), asyncio.Event()

    @server.tool
    async def one() -> str:
        await go.wait()
        return "one"

    @server.tool
    async def other() -> str:
        await go.wait()
        return "other"

    async with Client(server) as client:
        calls = [asyncio.ensure_future(client.call_tool(name, {})) for name in ("one", "other")]
        await until_idle()
        refused = await client.call_tool("one", {})
        assert refused.is_error and "The tool one is busy" in refused.content[0].text
        assert (await client.list_tools())[0].name == "one"  # only calls are bounded
        go.set()
        assert [(await each).content[0].text for each in calls] == ["one", "other"]


async def test_a_tool_has_a_bound_of_its_own():
    server, go, running = Server("s"), asyncio.Event(), []

    @server.tool(concurrency=1)
    async def alone(number: int) -> str:
        running.append(number)
        await go.wait()
        return str(number)

    async with Client(server) as client:
        calls = [asyncio.ensure_future(client.call_tool("alone", {"number": number})) for number in range(3)]
        await until_idle()
        assert running == [0]
        go.set()
        assert [(await each).content[0].text for each in calls] == ["0", "1", "2"]


# --- what goes out ---


async def test_a_sanitizer_sees_every_result_of_a_tool_as_plain_json():
    seen = []

    def sanitize(tool, result):
        seen.append((tool, result))
        for block in result["content"]:
            block["text"] = block["text"].replace("<script>", "")
        return result

    server = Server("s", sanitize=sanitize, identify=False)

    @server.tool
    async def record() -> dict:
        return {"html": "<script>x"}

    @server.tool
    async def block() -> TextContent:
        return TextContent(text="<script>y")

    @server.tool
    async def fails() -> str:
        raise ToolError("<script>z")

    assert await told(server, "record") == (False, '{"html":"x"}')
    assert await told(server, "block") == (False, "y")
    assert await told(server, "fails") == (True, "z")
    assert [tool for tool, _ in seen] == ["record", "block", "fails"]
    assert seen[0][1]["structuredContent"] == {"html": "<script>x"}


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18"])
@pytest.mark.parametrize(
    ("rewritten", "told"),
    [
        ({"content": [{"type": "text", "text": "clean"}], "isError": True}, "clean"),
        ({"content": [{"type": "image"}, {"type": "text", "text": "clean"}]}, "clean"),
        ({"content": []}, "do not fit"),
        ({}, "do not fit"),
        ({"content": 7}, "do not fit"),
    ],
)
async def test_wrong_arguments_stay_an_error_of_the_protocol_after_a_sanitizer(revision, rewritten, told):
    server = Server("s", sanitize=lambda tool, result: rewritten)

    @server.tool
    async def add(a: int) -> str:
        return str(a)

    async with Client(server, revision=revision) as client:
        with pytest.raises(InvalidParams, match=told):
            await client.call_tool("add", {"a": "x"})


async def test_output_that_is_an_object_by_chance_is_wrapped_after_a_sanitizer_too():
    server = Server("s", sanitize=lambda tool, result: result)

    @server.tool
    async def perhaps() -> dict[str, int] | None:
        return {"a": 1}

    async with Client(server, revision="2025-06-18") as client:
        found = await client.request("tools/call", {"name": "perhaps"})
    assert found["structuredContent"] == {"result": {"a": 1}}


async def test_a_sanitizer_may_be_async_and_sees_nothing_but_tools():
    async def sanitize(tool, result):
        await asyncio.sleep(0)
        return {"content": [{"type": "text", "text": "clean"}]}

    server = Server("s", sanitize=sanitize)

    @server.tool
    async def dirty() -> str:
        return "dirty"

    @server.resource("note://one")
    async def note() -> str:
        return "as it is"

    assert await told(server, "dirty") == (False, "clean")
    async with Client(server) as client:
        assert (await client.read_resource("note://one"))[0].text == "as it is"


@pytest.mark.parametrize("sanitize", [lambda tool, result: None, lambda tool, result: 1 / 0])
async def test_what_could_not_be_sanitized_does_not_go_out(sanitize):
    server = Server("s", sanitize=sanitize)

    @server.tool
    async def dirty() -> str:
        return "dirty secret"

    async with Client(server) as client:
        with pytest.raises(InterlockError, match="reference") as refused:
            await client.call_tool("dirty", {})
        assert "dirty secret" not in str(refused.value)


# --- limits and logs ---


async def test_limits_with_local_hold_in_memory():
    server = Server("s", rate_limits=RateLimits(calls=Rate(0.001, 2), local=True))

    @server.tool
    async def hi() -> str:
        return "hi"

    async with Client(server) as client:
        found = [(await client.call_tool("hi", {})).is_error for _ in range(3)]
    assert found == [False, False, True]


async def test_a_redactor_of_the_servers_own_takes_the_place_of_the_usual_one():
    server, heard = Server("s", redact=lambda data: "[private]"), []

    @server.tool
    async def speaks(ctx: Context) -> str:
        await ctx.log("error", {"user": "ada"}, "people")
        return "said"

    def hear(method, params):
        heard.append((params["logger"], params["data"]))

    async with Client(server, revision="2025-11-25", on_notification=hear) as client:
        await client.call_tool("speaks", {})
    assert heard == [("[private]", "[private]")]


async def test_values_made_to_have_one_hash_are_refused_before_they_are_hashed():
    server = Server("s")

    @server.tool
    async def count(ids: set[int], text: str = "") -> int:
        return len(ids)

    colliding = [number * (2**61 - 1) for number in range(10, 1034)]
    async with Client(server) as client:
        refused = await client.call_tool("count", {"ids": colliding, "text": "x" * 100_000})
        assert refused.is_error and "too many integers of more than 19 digits: 1024 (limit 256" in refused.text
        assert (await client.call_tool("count", {"ids": colliding[:256]})).structured == 256
