"""Our client talks to servers written with other SDKs, in every revision that they have: its verbs, and the end."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from interlock import Client, Refused
from interlock.wire.errors import CallTimeout, InvalidParams, MethodNotFound, NoCommonRevision, PeerClosed
from interlock.wire.types.content import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    ResourceContents,
    ResourceLink,
    TextContent,
)
from interop.spoken import begun, every_revision, newest_of_each_era, outcome
from support.wire_peer import HANDSHAKE, MODERN

PNG = "iVBORw=="  # base64 of the four bytes that the peers return as a picture


# --- who is there -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("peer", "revision"),
    [("mcp1", HANDSHAKE[-1]), ("mcp2", MODERN[-1])],
)
async def test_the_newest_common_revision_is_found(dial, peer, revision):
    async with dial(None) as client:
        assert client.revision == revision
        assert (await client.call_tool("echo", {"text": "hi"})).text == "hi"


@pytest.mark.parametrize(
    ("peer", "revision"),
    [("mcp1", HANDSHAKE[-1]), ("mcp2", MODERN[-1])],
)
async def test_a_slow_start_is_no_proof_of_age(dial, peer, revision):
    """`initialize` follows the probe at once, on the same pipe; both are answered, and the newest era wins."""
    async with dial(None, probe_timeout=0.01) as client:
        assert client.revision == revision
        assert (await client.call_tool("echo", {"text": "hi"})).text == "hi"


@pytest.mark.parametrize("peer", ["mcp1"])
async def test_a_server_that_is_too_old_is_no_mystery(dial):
    with pytest.raises(NoCommonRevision, match=MODERN[-1]):
        await dial(MODERN[-1]).open()


# --- every verb: one visit after the other on one connection, because starting a peer is what takes time -----------


async def visit_the_introduction(client: Client) -> None:
    assert client.server_info.name == "peer"
    assert client.instructions == "Ask nicely."
    for capability in ("tools", "resources", "prompts", "logging", "completions"):
        assert client.capabilities.can(capability), capability
    await client.ping()


async def visit_the_lists(client: Client) -> None:
    tools = {tool.name: tool for tool in await client.list_tools()}
    assert {"echo", "weather", "blocks", "slow"} <= tools.keys()
    assert tools["echo"].title == "Echo"
    assert tools["echo"].annotations.read_only_hint is True
    assert tools["echo"].input_schema["properties"]["text"]["type"] == "string"
    assert set(tools["weather"].output_schema["properties"]) == {"city", "degrees"}
    resources = {each.uri: each for each in await client.list_resources()}
    assert set(resources) == {"note://one", "note://bytes"}
    assert (resources["note://one"].title, resources["note://one"].mime_type) == ("One", "text/plain")
    [template] = await client.list_resource_templates()
    assert template.uri_template == "note://by/{name}"
    [prompt] = await client.list_prompts()
    assert [(each.name, each.required) for each in prompt.arguments] == [("name", True), ("mood", False)]


async def visit_the_pages(client: Client) -> None:
    """FastMCP has pages itself and puts five tools on one; the others have an empty page before the templates."""
    first = [await client.request(method) for method in ("tools/list", "resources/templates/list")]
    assert ["nextCursor" in page for page in first].count(True) == 1
    tools = [tool.name for tool in await client.list_tools()]
    assert len(set(tools)) == len(tools) > 10
    assert len(await client.list_resource_templates()) == 1


async def visit_the_results_of_tools(client: Client) -> None:
    hard = "hé\u2028\x85\r\n\t\0😀\\u0041"  # what a careless line reader splits or a careless decoder eats
    assert (await client.call_tool("echo", {"text": hard})).text == hard
    weather = await client.call_tool("weather", {"city": "Oslo"})
    assert weather.structured == {"city": "Oslo", "degrees": 21.5}
    assert (await client.call_tool("picture")).content == [ImageContent(data=PNG, mime_type="image/png")]
    note = ResourceContents(uri="note://one", text="the first note", mime_type="text/plain")
    assert (await client.call_tool("blocks")).content == [
        TextContent(text="hi"),
        ImageContent(data=PNG, mime_type="image/png"),
        AudioContent(data="UklGRg==", mime_type="audio/wav"),
        EmbeddedResource(resource=note),
        ResourceLink(uri="note://one", name="one"),
    ]


async def visit_the_failures_of_tools(client: Client) -> None:
    for name, told in (("fail", "out of paper"), ("echo", "text"), ("nothing", "nothing")):
        result = await outcome(client, name)
        assert result.is_error
        assert told in result.text


async def visit_the_resources(client: Client) -> None:
    text = ResourceContents(uri="note://one", text="the first note", mime_type="text/plain")
    assert await client.read_resource("note://one") == [text]
    blob = ResourceContents(uri="note://bytes", blob="AAE=", mime_type="application/octet-stream")
    assert await client.read_resource("note://bytes") == [blob]
    [found] = await client.read_resource("note://by/ada")
    assert (found.uri, found.text) == ("note://by/ada", "the note of ada")
    with pytest.raises(Refused, match="note://none"):
        await client.read_resource("note://none")


async def visit_the_prompts(client: Client) -> None:
    found = await client.get_prompt("greet", {"name": "Ada", "mood": "sad"})
    assert found.description == "A greeting."
    assert [(each.role, each.content) for each in found.messages] == [
        ("user", TextContent(text="Greet Ada, who is sad.")),
        ("assistant", TextContent(text="Hello!")),
    ]
    with pytest.raises(Refused):
        await client.get_prompt("greet")  # without the argument it needs
    with pytest.raises(Refused):
        await client.get_prompt("nothing")
    assert (await client.complete("name", "A", prompt="greet")).values == ("Ada", "Alan")


async def visit_with_many_calls_at_once(client: Client) -> None:
    texts = [str(number) * 10_000 for number in range(30)]
    results = await asyncio.gather(*(client.call_tool("echo", {"text": text}) for text in texts))
    assert [result.text for result in results] == texts


async def visit_and_give_up(client: Client) -> None:
    """Giving up, by cancelling or by a deadline of our own, stops the tool at the peer, and nothing else."""
    other = await begun(client, "other")
    call = await begun(client, "cancelled")
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert (await client.call_tool("was_stopped", {"name": "cancelled"}, timeout=20)).text == "stopped"
    with pytest.raises(CallTimeout):
        await client.call_tool("slow", {"name": "late"}, timeout=0.3)
    late = await client.call_tool("was_stopped", {"name": "late"}, timeout=20)
    assert late.text in ("stopped", "never began")  # on a machine too busy to begin it in time
    assert not other.done()
    other.cancel()
    with pytest.raises(asyncio.CancelledError):
        await other


VISITS = (
    visit_the_introduction,
    visit_the_lists,
    visit_the_pages,
    visit_the_results_of_tools,
    visit_the_failures_of_tools,
    visit_the_resources,
    visit_the_prompts,
    visit_with_many_calls_at_once,
    visit_and_give_up,
)


@every_revision
async def test_every_verb(dial, peer, revision):
    async with dial(revision) as client:
        assert client.revision == revision
        for visit in VISITS:
            await visit(client)


@newest_of_each_era
async def test_what_one_side_refuses_reaches_the_other(dial, peer, revision):
    """1.x takes an unknown method for bad params, and only 2.x lets a tool refuse the request itself."""
    async with dial(revision) as client:
        with pytest.raises((MethodNotFound, InvalidParams)) as unknown:
            await client.request("example/nothing")
        assert unknown.value.code == (-32602 if peer == "mcp1" else -32601)
        if peer == "mcp2":
            with pytest.raises(Refused, match="not today") as refused:
                await client.call_tool("refuse")
            assert (refused.value.code, refused.value.data) == (4001, {"why": "closed"})
        for question in ("ask_seat", "ask_model", "ask_roots"):
            assert (await outcome(client, question)).is_error  # this client declared no answers
        assert (await client.call_tool("echo", {"text": "on"})).text == "on"


# --- being left, and leaving ----------------------------------------------------------------------


@newest_of_each_era
async def test_a_server_that_dies_fails_the_call_and_is_started_again(dial, peer, revision):
    async with dial(revision) as client:
        with pytest.raises(PeerClosed) as left:
            await client.call_tool("leave")
        assert (left.value.sent, left.value.exit_code) == (True, 7)
        assert str(left.value).count("leaving now") == 1  # its last words, told once
        process = int((await client.call_tool("process")).text)
        assert client.revision == revision
        call = await begun(client, "killed")
        os.kill(process, signal.SIGKILL)
        with pytest.raises(PeerClosed) as killed:
            await call
        assert (killed.value.sent, killed.value.exit_code) == (True, -signal.SIGKILL)


@newest_of_each_era
async def test_closing_ends_the_process_even_while_a_tool_runs(dial, peer, revision):
    async with dial(revision) as client:
        process = int((await client.call_tool("process")).text)
        call = await begun(client, "left alone")
    with pytest.raises(ConnectionError):
        await call
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
