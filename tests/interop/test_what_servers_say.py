"""What servers of other SDKs say by themselves while our client calls them: they tell, and they ask."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from interlock import Client, Patience, Refused
from interlock.protocol.client.base import NotOffered
from interop.spoken import every_handshake, outcome
from support.wire_peer import HANDSHAKE, MODERN

BEFORE_ELICITATION = HANDSHAKE[:2]
ALL_LEVELS = ("debug", "warning", "error")
LOG_LEVEL = "io.modelcontextprotocol/logLevel"


# --- what is told meanwhile -------------------------------------------------------------------------


async def visit_for_progress(client: Client) -> None:
    """Two calls at once: each hears its own steps only."""
    told: dict[int, list[Any]] = {2: [], 3: []}
    await asyncio.gather(
        *(
            client.call_tool("steps", {"count": count}, on_progress=lambda *step, to=steps: to.append(step))
            for count, steps in told.items()
        )
    )
    assert told == {count: [(step + 1, count, f"step {step + 1}") for step in range(count)] for count in told}


async def visit_for_logs(client: Client, told: list[Any], *, levels: tuple[str, ...] = ALL_LEVELS) -> None:
    """Neither official Python SDK applies the level itself, so there all three are sent."""
    await client.set_log_level("error")
    told.clear()
    await client.call_tool("shout")
    await until(lambda: len(told) >= len(levels))
    await client.ping()  # nothing more was said
    assert {method for method, _ in told} == {"notifications/message"}
    messages = [(params["level"], params["logger"], words_of(params)) for _, params in told]
    assert messages == [(level, "peer", f"said at {level}") for level in levels]


def words_of(params: dict[str, Any]) -> str:
    """What a log message says; FastMCP wraps it."""
    data = params["data"]
    return data["msg"] if isinstance(data, dict) else data


async def visit_for_changes(client: Client, told: list[Any]) -> None:
    told.clear()
    await client.call_tool("grow")
    await heard(told, ("notifications/tools/list_changed", {}))
    assert "grown" in {tool.name for tool in await client.list_tools()}


async def visit_for_updates(client: Client, told: list[Any]) -> None:
    watched = {"uri": "note://one"}
    if not client.capabilities.can("resources.subscribe"):
        with pytest.raises(NotOffered):  # then it is not even sent
            await client.request("resources/subscribe", watched)
        return
    told.clear()
    await client.request("resources/subscribe", watched)
    await client.call_tool("touch", watched)
    await heard(told, ("notifications/resources/updated", watched))
    await client.request("resources/unsubscribe", watched)
    await client.call_tool("touch", watched)
    await client.ping()
    assert len(told) == 1
    async with client.subscribe(watched["uri"]) as changes:
        await client.call_tool("touch", watched)
        assert (await anext(aiter(changes))).uri == watched["uri"]


async def heard(told: list[Any], wanted: tuple[str, dict[str, Any]]) -> None:
    await until(lambda: wanted in told)


async def until(true: Callable[[], bool]) -> None:
    """Over HTTP what belongs to no call comes on a stream of its own, so it is waited for."""
    async with asyncio.timeout(20):
        while not true():
            await asyncio.sleep(0.01)


async def test_a_stateless_request_asks_for_its_own_logs(dial):
    told: list[Any] = []
    async with dial(MODERN[-1], on_notification=lambda method, params: told.append(params["level"])) as client:
        await visit_for_progress(client)
        await client.call_tool("shout")
        await client.ping()
        assert told == []  # nobody asked
        await client.request("tools/call", {"name": "shout", "_meta": {LOG_LEVEL: "warning"}})
        await client.ping()
        assert told == ["warning", "error"]
        with pytest.raises(NotOffered):  # an old verb: it is not even sent
            await client.request("logging/setLevel", {"level": "error"})


async def test_changes_are_told_on_a_listen_stream(dial):
    heard: asyncio.Queue[tuple[str, dict[str, Any]]] = asyncio.Queue()
    wanted = {"toolsListChanged": True, "resourceSubscriptions": ["note://one"]}
    async with dial(MODERN[-1]) as client, asyncio.timeout(20):
        listening = asyncio.create_task(
            client.request(
                "subscriptions/listen",
                {"notifications": wanted},
                on_notification=lambda method, params: heard.put_nowait((method, params)),
                timeout=Patience(idle=None, total=None),
            )
        )
        method, params = await heard.get()
        assert method == "notifications/subscriptions/acknowledged"
        assert params["notifications"] == wanted
        await client.call_tool("grow")
        told = [await heard.get(), await heard.get()]
        assert [method for method, _ in told] == [
            "notifications/tools/list_changed",
            "notifications/resources/updated",
        ]
        assert told[1][1]["uri"] == "note://one"
        listening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await listening
        assert "grown" in {tool.name for tool in await client.list_tools()}


# --- what the server asks ---------------------------------------------------------------------------


class User:
    """Answers what servers ask, and remembers it."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.seats = [{"action": "accept", "content": {"seat": "4A"}}, {"action": "decline"}]

    def options(self) -> dict[str, Any]:
        roots = [{"uri": "file:///a", "name": "A"}, "file:///b"]
        return {"elicit": self.elicit, "sample": self.sample, "roots": roots}

    async def elicit(self, params: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(params)
        return self.seats.pop(0)

    def sample(self, params: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(params)
        if len(self.asked) > 1:
            raise Refused("the user said no", code=-1)
        said = {"type": "text", "text": "hi"}
        return {"role": "assistant", "model": "m1", "content": said, "stopReason": "endTurn"}


async def visit_for_sampling_and_roots(client: Client, user: User) -> None:
    assert (await client.call_tool("ask_model")).text == "m1 hi endTurn"
    [asked] = user.asked
    assert asked["messages"] == [{"role": "user", "content": {"type": "text", "text": "Say hi"}}]
    assert (asked["maxTokens"], asked["systemPrompt"]) == (7, "Be brief")
    refused = await outcome(client, "ask_model")
    assert refused.is_error
    assert "the user said no" in refused.text
    assert (await client.call_tool("ask_roots")).text == "file:///a=A file:///b=None"
    await client.roots_changed()
    assert (await client.call_tool("ping_client")).text == "pong"


async def visit_for_elicitation(client: Client, user: User) -> None:
    user.asked.clear()
    if client.revision in BEFORE_ELICITATION:
        assert (await outcome(client, "ask_seat")).is_error
        assert user.asked == []  # it was not declared, so nobody was bothered
        return
    assert (await client.call_tool("ask_seat")).text == "accept 4A"
    assert user.asked[0]["message"] == "Which seat?"
    assert user.asked[0]["requestedSchema"]["properties"]["seat"]["type"] == "string"
    assert (await client.call_tool("ask_seat")).text == "decline -"


@every_handshake
async def test_what_the_server_says_by_itself(dial, peer, revision):
    user = User()
    told: list[Any] = []
    async with dial(revision, on_notification=lambda *said: told.append(said), **user.options()) as client:
        await visit_for_progress(client)
        await visit_for_logs(client, told)
        await visit_for_changes(client, told)
        await visit_for_updates(client, told)
        await visit_for_sampling_and_roots(client, user)
        await visit_for_elicitation(client, user)


@pytest.mark.parametrize("peer", ["mcp1", "mcp2"])
async def test_a_question_in_a_mode_that_was_not_declared_is_refused(dial):
    """`elicitation: {}` means forms only: an address is refused with -32602, nobody is asked (ELIC-36)."""
    user = User()
    async with dial(HANDSHAKE[-1], **user.options()) as client:
        assert (await outcome(client, "ask_url")).is_error
    assert user.asked == []


class Thinker:
    """Answers never, and remembers when nobody wants the answer any more."""

    def __init__(self) -> None:
        self.thinking = asyncio.Event()
        self.relieved = asyncio.Event()

    async def sample(self, params: dict[str, Any]) -> dict[str, Any]:
        self.thinking.set()
        try:
            return await asyncio.get_running_loop().create_future()
        finally:
            self.relieved.set()


async def test_a_question_that_the_server_gives_up_is_not_answered(dial):
    """Only 2.x says so when it stops waiting."""
    user = Thinker()
    async with dial(HANDSHAKE[-1], sample=user.sample) as client, asyncio.timeout(20):
        assert "timed out" in (await client.call_tool("ask_impatiently")).text
        await user.relieved.wait()


async def test_giving_up_a_call_takes_back_the_question_it_led_to(dial):
    user = Thinker()
    async with dial(HANDSHAKE[-1], sample=user.sample) as client, asyncio.timeout(20):
        call = asyncio.create_task(client.call_tool("ask_model"))
        await user.thinking.wait()
        call.cancel()
        await user.relieved.wait()


async def test_a_stateless_server_asks_in_rounds(dial):
    user = User()
    async with dial(MODERN[-1], **user.options()) as client:
        assert (await client.call_tool("ask_model")).text == "m1 hi endTurn"
        assert (await client.call_tool("ask_roots")).text == "file:///a=A file:///b=None"
        await visit_for_elicitation(client, user)
