"""Our client talks over HTTP to servers written with other SDKs: the same verbs as over stdio, in every revision."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interlock import Client
from interlock.protocol.client.probe import Verdicts
from interop.spoken import every_handshake, every_revision
from interop.test_our_client import VISITS, visit_and_give_up
from interop.told import served
from support.wire_peer import HANDSHAKE, MODERN

OLDER = HANDSHAKE[:3]  # what servers over HTTP+SSE were written for


@pytest.fixture
def dial(http_server: Any, peer: str) -> Any:
    def connect(form: str, revision: str | None, **options: Any) -> Client:
        return Client(http_server(peer, form), revision=revision, verdicts=Verdicts(), **options)

    return connect


@pytest.mark.parametrize(("peer", "revision"), [("mcp1", HANDSHAKE[-1]), ("mcp2", MODERN[-1])])
async def test_the_newest_common_revision_is_found(dial, peer, revision):
    async with dial("streamable", None) as client:
        assert client.revision == revision
        assert (await client.call_tool("echo", {"text": "hi"})).text == "hi"


@pytest.mark.parametrize("form", ["streamable", "json"])
@every_revision
async def test_every_verb(dial, peer, revision, form):
    async with dial(form, revision) as client:
        assert client.revision == revision
        for visit in VISITS:
            if form != "json" or visit is not visit_and_give_up:  # it waits for progress, which needs a stream
                await visit(client)


@every_handshake
async def test_a_server_that_keeps_no_sessions(dial, peer, revision):
    async with dial("stateless", revision) as client:
        assert client.revision == revision
        for visit in VISITS:
            if visit is not visit_and_give_up:  # there is nobody who would know the call
                await visit(client)


@pytest.mark.parametrize("revision", OLDER)
@pytest.mark.parametrize("peer", ["mcp1", "mcp2"])
async def test_every_verb_over_the_first_transport(dial, peer, revision):
    async with dial("sse", revision) as client:
        assert client.revision == revision
        for visit in VISITS:
            await visit(client)


@pytest.mark.parametrize("form", ["streamable", "sse"])
@every_handshake
async def test_questions_progress_and_news(dial, peer, revision, form):
    heard: list[str] = []
    options = {
        "elicit": lambda params: {"action": "accept", "content": {"seat": "4A"}},
        "sample": lambda params: {"role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "m1"},
        "roots": ["file:///home"],
        "on_notification": lambda method, params: heard.append(method),
    }
    async with dial(form, revision, **options) as client:
        steps: list[float] = []
        done = await client.call_tool("steps", {"count": 3}, on_progress=lambda step, *_: steps.append(step))
        assert (done.text, steps) == ("done", [1, 2, 3])
        assert (await client.call_tool("ask_model")).text.startswith("m1 hi")
        assert (await client.call_tool("ask_roots")).text.startswith("file:///home")
        if revision in HANDSHAKE[2:]:
            assert (await client.call_tool("ask_seat")).text == "accept 4A"
        assert (await client.call_tool("ping_client")).text == "pong"
        await client.call_tool("grow")
        async with asyncio.timeout(20):
            while "notifications/tools/list_changed" not in heard:
                await asyncio.sleep(0.01)


# --- TypeScript: streams that are resumed, sessions that are forgotten ------------------------------


@pytest.mark.parametrize("revision", [None, *HANDSHAKE[1:]])
async def test_sessions_and_resumed_streams_of_the_typescript_sdk(typescript, tmp_path, revision):
    heard: list[str] = []
    said = tmp_path / "said"
    with served(typescript("ts2_session_server.mjs", "over_http.mjs"), said) as address:
        options = {"on_notification": lambda method, params: heard.append(params.get("data"))}
        async with Client(address, revision=revision, verdicts=Verdicts(), **options) as client:
            assert client.revision == (revision or HANDSHAKE[-1])
            texts = [str(number) * 1000 for number in range(20)]
            results = await asyncio.gather(*(client.call_tool("echo", {"said": each}) for each in texts))
            assert [result.text for result in results] == texts
            assert (await client.call_tool("let_go")).text == "after all"
            assert heard == ["meanwhile"]
            assert (await client.call_tool("forget")).text == "soon"
            await asyncio.sleep(0.2)
            assert (await client.call_tool("echo", {"said": "on"})).text == "on"  # in a new session
        async with asyncio.timeout(20):
            while "closed" not in said.read_text():
                await asyncio.sleep(0.01)
    assert said.read_text().count("closed") == 1  # the one that was forgotten is not closed again
