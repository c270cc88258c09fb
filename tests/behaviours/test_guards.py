"""The guards that the specification demands of servers, as a client meets them: time, number, rate, output, threads."""

from contextlib import asynccontextmanager

import pytest

from interlock import Rate, RateLimits, Server
from interlock.transport.http.server.app import HttpApp
from interlock.wire.exchange import Principal
from support.asgi import call_tool, envelope, message, post
from support.modern_peer import connected
from support.talking import Clock
from support.wire_peer import ALL, CARRIERS, HANDSHAKE, MODERN, fresh, server_under_test

EVERYWHERE = [*((carrier, revision) for carrier in CARRIERS for revision in ALL), ("http", MODERN[0])]
everywhere = pytest.mark.parametrize(("carrier", "revision"), EVERYWHERE)
COMPLETE = {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "name", "value": ""}}


class OnWire:
    def __init__(self, peer):
        self.peer = peer

    def begin(self, tool):
        """The id of a call that nobody waits for yet."""
        frame = self.peer.frame("tools/call", {"name": tool, "arguments": {}})
        self.peer.send(frame)
        return frame["id"]

    async def end(self, id):
        for frame in self.peer.heard:
            if frame.get("id") == id:
                return frame["result"]
        return (await self.peer.response(id))["result"]

    async def call(self, tool):
        return await self.end(self.begin(tool))


class OverHttp:
    def __init__(self, app):
        self.app = app

    def begin(self, tool):
        return post(self.app, call_tool(tool, {}))

    async def end(self, talk):
        return (await talk.answer()).json["result"]

    async def call(self, tool):
        return await self.end(self.begin(tool))


@asynccontextmanager
async def guarded(carrier, revision):
    if carrier == "http":
        yield OverHttp(HttpApp(fresh("support.servers.guarded").server))
        return
    async with server_under_test(carrier, revision, server="guarded") as peer:
        yield OnWire(peer)


def text(result):
    return result["content"][0]["text"]


# --- time ---


@everywhere
@pytest.mark.parametrize("tool", ["slow", "slow_in_thread"])
async def test_a_tool_over_its_time_is_stopped_and_the_model_is_told(carrier, revision, tool):
    async with guarded(carrier, revision) as client:
        result = await client.call(tool)
        assert result["isError"] is True
        assert text(result) == f"The tool {tool} was stopped: it took longer than 0.05 s"
        assert text(await client.call("dirty")) == "clean"


@everywhere
async def test_a_thread_over_its_time_hears_of_it(carrier, revision):
    async with guarded(carrier, revision) as client:
        assert (await client.call("slow_in_thread"))["isError"] is True
        assert text(await client.call("thread_was_told")) == "told"


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_the_time_a_user_takes_is_not_the_tools(revision):
    server = fresh("support.servers.guarded").server
    async with connected(server, revision, opened=False) as peer:
        await peer.open({"roots": {}})
        clock = Clock()
        frame = peer.frame("tools/call", {"name": "asks", "arguments": {}})
        peer.send(frame)
        question = await peer.expect("roots/list")
        await clock.advance(40)  # the tool has thirty seconds
        peer.send({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": [{"uri": "file:///a"}]}})
        result = (await peer.response(frame["id"]))["result"]
        assert text(result) == "['file:///a']", result


# --- number ---


@everywhere
async def test_one_call_too_many_at_once_is_refused_and_the_others_end_well(carrier, revision):
    async with guarded(carrier, revision) as client:
        first, second = client.begin("busy"), client.begin("busy")
        refused = await client.call("busy")
        assert refused["isError"] is True
        assert text(refused) == "The tool busy is busy: 1 calls are running and 1 are waiting. Try again later"
        await client.call("release")
        assert [text(await client.end(each)) for each in (first, second)] == ["done", "done"]


# --- output ---


@everywhere
async def test_every_result_of_a_tool_passes_the_sanitizer(carrier, revision):
    async with guarded(carrier, revision) as client:
        assert text(await client.call("dirty")) == "clean"


# --- threads ---


@everywhere
async def test_a_plain_function_runs_where_its_author_wants_it(carrier, revision):
    async with guarded(carrier, revision) as client:
        assert text(await client.call("own_thread")) == "interlock-handler-own"
        assert text(await client.call("in_the_pool")).startswith("interlock-handler-")
        assert text(await client.call("on_the_loop")) == "True"


# --- rate ---


def limited(**facts):
    server = Server("limited", **facts)

    @server.tool
    async def hi() -> str:
        return "hi"

    @server.prompt
    async def greet(name: str) -> str:
        return name

    @server.completion(prompt="greet", argument="name")
    async def names(typed: str) -> list[str]:
        return ["ada"]

    return server


async def is_refused(app, **scope):
    result = (await post(app, call_tool("hi", {}), **scope).answer()).json["result"]
    return result.get("isError", False)


async def test_calls_over_http_are_limited_by_default():
    app = HttpApp(limited())
    passed = 0
    while passed < 5000 and not await is_refused(app):
        passed += 1
    assert 500 <= passed < 5000  # a whole burst passes, and not much more
    frame = message("tools/list")
    assert "result" in (await post(app, frame).answer()).json  # nothing but calls is limited by them


async def test_a_refused_call_says_when_to_come_again():
    app = HttpApp(limited(rate_limits=RateLimits(calls=Rate(0.1, 2))))
    assert [await is_refused(app) for _ in range(4)] == [False, False, True, True]
    talk = await post(app, call_tool("hi", {})).answer()
    assert talk.status == 200
    told = text(talk.json["result"])
    assert "0.1 calls per second and 2 at once" in told and "Try again in 10 s" in told and "rate_limits=" in told


async def test_a_refused_completion_is_an_error_with_the_time_to_wait():
    app = HttpApp(limited(rate_limits=RateLimits(completions=Rate(0.1, 1))))
    frame = message("completion/complete", 1, envelope(), **COMPLETE)
    first, second = [(await post(app, frame).answer()) for _ in range(2)]
    assert first.json["result"]["completion"]["values"] == ["ada"]
    assert second.error["code"] == -32603
    assert second.error["data"] == {"retryAfterSeconds": 10}


async def test_one_caller_does_not_use_up_what_is_anothers():
    app = HttpApp(limited(rate_limits=RateLimits(calls=Rate(0.001, 1))))
    for address in ("10.0.0.1", "10.0.0.2"):
        found = [await is_refused(app, client=(address, port)) for port in (1, 2)]
        assert found == [False, True]


async def test_who_has_a_name_is_known_by_it_wherever_he_comes_from():
    def who(headers):
        return Principal("https://issuer", headers["authorization"])

    app = HttpApp(limited(rate_limits=RateLimits(calls=Rate(0.001, 1))), authenticate=who)

    async def refused(name, address):
        talk = await post(app, call_tool("hi", {}), {"authorization": name}, client=(address, 1)).answer()
        return talk.json["result"].get("isError", False)

    assert [await refused("ada", "10.0.0.1"), await refused("ada", "10.0.0.2")] == [False, True]
    assert not await refused("bob", "10.0.0.1")


async def test_limits_can_be_switched_off():
    app = HttpApp(limited(rate_limits=None))
    assert not any([await is_refused(app) for _ in range(600)])


@pytest.mark.parametrize("revision", ALL)
async def test_whoever_owns_the_process_is_not_limited_unless_the_author_says_so(revision):
    call = {"name": "hi", "arguments": {}}
    async with connected(limited(), revision) as peer:
        found = [await peer.result("tools/call", call) for _ in range(600)]
        assert not any(result.get("isError") for result in found)
    strict = RateLimits(calls=Rate(0.001, 2), local=True)
    async with connected(limited(rate_limits=strict), revision) as peer:
        found = [(await peer.result("tools/call", call)).get("isError", False) for _ in range(3)]
        assert found == [False, False, True]


@pytest.mark.requirement("COMPL-17")
@pytest.mark.parametrize("revision", ALL)
async def test_completions_are_limited_wherever_the_author_wants_it(revision):
    limits = RateLimits(completions=Rate(0.001, 3), local=True)
    async with connected(limited(rate_limits=limits), revision) as peer:
        found = [await peer.request("completion/complete", COMPLETE) for _ in range(10)]
        assert ["result" in answer for answer in found] == [True] * 3 + [False] * 7
        assert {answer["error"]["code"] for answer in found[3:]} == {-32603}


def suggesting():
    """Nothing is said of limits; one name is for those alone who may see its prompt."""
    server = Server("suggesting", visible=lambda principal, item: item.name != "private")

    @server.prompt(complete={"city": ["Neuwied", "Linz", "Wels", "Wien"]})
    async def travel(city: str) -> str:
        return city

    @server.prompt(complete={"city": ["Secret"]})
    async def private(city: str) -> str:
        return city

    return server


async def completed(app, prompt="travel", argument="city", value="w"):
    asked = {"ref": {"type": "ref/prompt", "name": prompt}, "argument": {"name": argument, "value": value}}
    return (await post(app, message("completion/complete", 1, envelope(), **asked)).answer()).json


@pytest.mark.requirement("COMPL-005", "COMPL-007")
async def test_completions_are_ranked_validated_kept_from_others_and_limited_by_default():
    app = HttpApp(suggesting())
    assert (await completed(app))["result"]["completion"]["values"] == ["Wels", "Wien", "Neuwied"]
    wrong = [
        await completed(app, prompt="private"),
        await completed(app, prompt="absent"),
        await completed(app, argument="land"),
        await completed(app, value="w" * 10_000),
        await completed(app, value=5),
    ]
    assert [answer["error"]["code"] for answer in wrong] == [-32602] * 5
    assert wrong[0]["error"]["message"].replace("private", "absent") == wrong[1]["error"]["message"]
    flood = [await completed(app) for _ in range(400)]
    refused = [answer["error"]["code"] for answer in flood if "error" in answer]
    assert refused and set(refused) == {-32603}
