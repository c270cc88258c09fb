"""Our client and the servers of five SDKs over HTTP: every verb, and all that a server says and asks by itself.

In older revisions the Python SDKs are met by test_our_http_client.py.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interlock import Change, Client
from interlock.protocol.client.probe import Verdicts
from interop.test_our_client import VISITS, visit_and_give_up
from interop.test_what_servers_say import (
    ALL_LEVELS,
    LOG_LEVEL,
    User,
    visit_for_changes,
    visit_for_elicitation,
    visit_for_logs,
    visit_for_progress,
    visit_for_sampling_and_roots,
    visit_for_updates,
    words_of,
)
from interop.told import breaking
from support.wire_peer import HANDSHAKE, MODERN

WITH_SESSIONS = [(peer, "streamable") for peer in ("mcp1", "mcp2", "ts1", "ts2", "fastmcp")]
WITHOUT_STREAMS = [(peer, form) for peer in ("ts1", "ts2") for form in ("json", "stateless")]
FIRST_TRANSPORT = [(peer, "sse") for peer in ("mcp1", "ts1", "fastmcp")]
STATELESS = [("mcp2", "streamable"), ("ts2", "stateless"), ("fastmcp", "streamable")]
LISTENING = STATELESS[:2]  # FastMCP serves no listen stream, and cannot ask without a session


def others(ways: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """All but the official Python SDKs, whose servers have had every verb in every revision elsewhere."""
    return [way for way in ways if not way[0].startswith("mcp")]


class Page(User):
    """Opens addresses too."""

    def options(self) -> dict[str, Any]:
        return {**super().options(), "elicit_url": self.open_page}

    def open_page(self, params: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(params)
        return {"action": "accept"}


@pytest.fixture
def dial(http_server, peer, form):
    def connect(revision: str | None = None, **options: Any) -> Client:
        return Client(http_server(peer, form), revision=revision, verdicts=Verdicts(), **options)

    return connect


@pytest.mark.parametrize(("peer", "form"), others([*WITH_SESSIONS, *FIRST_TRANSPORT]))
async def test_every_verb_in_a_session(dial, peer, form):
    async with dial(None if form == "sse" else HANDSHAKE[-1]) as client:  # the first transport is found by itself
        assert client.revision == HANDSHAKE[-1]
        for visit in VISITS:
            await visit(client)


@pytest.mark.parametrize(("peer", "form"), WITHOUT_STREAMS)
async def test_every_verb_without_streams_or_sessions(dial, peer):
    async with dial(HANDSHAKE[-1]) as client:
        assert client.revision == HANDSHAKE[-1]
        for visit in VISITS:
            if visit is not visit_and_give_up:  # it waits for progress, and for somebody who would know the call
                await visit(client)


@pytest.mark.parametrize(("peer", "form"), others(STATELESS))
async def test_every_verb_of_the_stateless_revision(dial, peer):
    async with dial() as client:
        assert client.revision == MODERN[-1]
        for visit in VISITS:
            await visit(client)


# --- what is said and asked in a session ------------------------------------------------------------


@pytest.mark.parametrize(("peer", "form"), [*WITH_SESSIONS, *FIRST_TRANSPORT])
async def test_what_the_server_says_by_itself(dial, peer):
    told: list[Any] = []
    async with dial(HANDSHAKE[-1], on_notification=lambda *said: told.append(said)) as client:
        await visit_for_progress(client)
        await visit_for_logs(client, told, levels=ALL_LEVELS if peer.startswith("mcp") else ("error",))
        await visit_for_changes(client, told)
        await visit_for_updates(client, told)


@pytest.mark.parametrize(("peer", "form"), [*WITH_SESSIONS, *FIRST_TRANSPORT])
async def test_what_the_server_asks(dial, peer):
    user = Page()
    async with dial(HANDSHAKE[-1], **user.options()) as client:
        await visit_for_sampling_and_roots(client, user)
        await visit_for_elicitation(client, user)
        user.asked.clear()
        assert (await client.call_tool("ask_url")).text == "accept"
        [page] = user.asked
        assert (page["mode"], page["url"]) == ("url", "https://example.com/sign-in")


@pytest.mark.parametrize(("peer", "form"), WITH_SESSIONS)
async def test_a_stream_that_the_server_lets_go_of_is_resumed(dial, peer):
    """The log message is said while nobody listens, and kept for who comes back."""
    told: list[Any] = []
    async with dial(HANDSHAKE[-1], on_notification=lambda *said: told.append(said)) as client:
        results = await asyncio.gather(*(client.call_tool("let_go") for _ in range(3)))
        assert [result.text for result in results] == ["after all"] * 3
    assert [words_of(params) for _, params in told] == ["meanwhile"] * 3  # each once


@pytest.mark.parametrize(("peer", "form"), WITH_SESSIONS)
async def test_a_stream_that_breaks_is_resumed(http_server, peer, form, tmp_path):
    said = tmp_path / "said"
    with breaking(http_server(peer, form), "step 1", said) as address:
        async with Client(address, revision=HANDSHAKE[-1], verdicts=Verdicts()) as client:
            steps: list[float] = []
            done = await client.call_tool("steps", {"count": 4}, on_progress=lambda step, *_: steps.append(step))
            assert (done.text, steps) == ("done", [1, 2, 3, 4])
    assert said.read_text().split()[1:3] == ["cut", "resumed"]


# --- and without one --------------------------------------------------------------------------------


@pytest.mark.parametrize(("peer", "form"), STATELESS)
async def test_a_stateless_request_asks_for_its_own_logs(dial, peer):
    told: list[Any] = []
    async with dial(on_notification=lambda method, params: told.append(params["level"])) as client:
        await client.call_tool("shout")
        assert told == []  # nobody asked
        await client.request("tools/call", {"name": "shout", "_meta": {LOG_LEVEL: "warning"}})
        assert told == ["warning", "error"]
        await client.set_log_level("error")
        await client.call_tool("shout")
        assert told == ["warning", "error", "error"]


@pytest.mark.parametrize(("peer", "form"), LISTENING)
async def test_changes_are_told_on_a_listen_stream(dial, peer):
    async with dial() as client, client.listen(tools=True, uris=["note://one"]) as changes:
        told = aiter(changes)
        await client.call_tool("touch", {"uri": "note://other"})
        await client.call_tool("touch", {"uri": "note://one"})
        assert await anext(told) == Change("resource", "note://one")
        await client.call_tool("grow")
        assert await anext(told) == Change("tools")


@pytest.mark.parametrize(("peer", "form"), LISTENING)
async def test_a_stateless_server_asks_in_rounds(dial, peer):
    user = Page()
    async with dial(**user.options()) as client:
        assert (await client.call_tool("ask_model")).text == "m1 hi endTurn"
        assert (await client.call_tool("ask_roots")).text == "file:///a=A file:///b=None"
        await visit_for_elicitation(client, user)
