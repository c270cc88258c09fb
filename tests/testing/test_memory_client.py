"""testing/memory_client.py: a client for tests, in every revision."""

import pytest

from interlock import Client, Context, Server, ToolError
from interlock.testing import REVISIONS, MemoryClient, Script
from interlock.wire.errors import LocalError
from support.wire_peer import ALL

WITH_FORMS = [revision for revision in REVISIONS if revision >= "2025-06-18"]

server = Server("tested")


@server.tool
async def add(a: int, b: int) -> str:
    return str(a + b)


@server.tool
async def book(ctx: Context) -> str:
    row = await ctx.elicit("Which row?", int)
    return f"row {row}, {await ctx.elicit('Which meal?', str)}"


@server.tool
async def drop(ctx: Context) -> str:
    assert await ctx.elicit("Really?") is None
    return await ctx.elicit("When?", ["later", "now"])


@server.tool
def drop_waiting(ctx: Context) -> str:
    ctx.elicit("Really?")
    return ctx.elicit("When?", ["later", "now"])


@server.tool
async def can(what: str, ctx: Context) -> bool:
    return ctx.client.can(what)


@server.tool
async def think(ctx: Context) -> str:
    sampled = await ctx.sample("Capital of France?")
    return f"{sampled.text} {[root.uri for root in await ctx.roots()]}"


@server.tool
async def swallows(ctx: Context) -> str:
    try:
        await ctx.elicit("Which row?", int)
    except Exception:
        raise ToolError("nobody answered") from None
    return "answered"


def test_all_revisions_are_named():
    assert REVISIONS == ALL


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_server_in_any_revision_with_its_transcript(revision):
    async with MemoryClient(server, revision=revision) as client:
        assert isinstance(client, Client) and client.revision == revision
        assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"
        [called] = client.transcript.frames("client", "tools/call")
        assert called["params"]["name"] == "add"
        assert f'> tools/call #{called["id"]} {{"name": "add", "arguments": {{"a": 1, "b": 2}}' in str(
            client.transcript
        )


@pytest.mark.parametrize("revision", WITH_FORMS)
async def test_a_script_answers(revision):
    script = Script().accept("row", value=7).accept("meal", value="veg")
    async with MemoryClient(server, revision=revision, script=script) as client:
        assert (await client.call_tool("book")).text == "row 7, veg"
    assert script.asked == [("form", "Which row?"), ("form", "Which meal?")]


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_script_plays_the_model_and_names_the_roots(revision):
    script = Script().sample("Paris").roots("file:///home/ada")
    async with MemoryClient(server, revision=revision, script=script) as client:
        assert (await client.call_tool("think")).text == "Paris ['file:///home/ada']"


@pytest.mark.parametrize("revision", WITH_FORMS)
async def test_an_unexpected_question_fails_the_test_even_if_the_tool_swallows_it(revision):
    with pytest.raises(AssertionError) as caught:
        async with MemoryClient(server, revision=revision, script=Script()) as client:
            await client.call_tool("swallows")
    told = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
    assert "the server asked for a form with 'Which row?', and the script has no answer for that" in told
    assert "What was said:" in told and "> tools/call" in told


async def test_an_unused_answer_fails_the_test():
    with pytest.raises(AssertionError, match="about 'row' was never asked for"):
        async with MemoryClient(server, script=Script().accept("row", value=1)) as client:
            await client.call_tool("add", {"a": 1, "b": 1})


async def test_another_failure_is_kept_and_shows_what_was_said():
    with pytest.raises(ZeroDivisionError) as caught:
        async with MemoryClient(server, script=Script().accept("row", value=1)) as client:
            await client.list_tools()
            1 / 0
    unused, said = caught.value.__notes__
    assert "never asked for" in unused and "> tools/list" in said


@pytest.mark.parametrize("revision", WITH_FORMS[-2:])
async def test_all_is_declared_or_what_is_named(revision):
    async with MemoryClient(server, revision=revision, script=Script()) as client:
        for what in ("elicitation.form", "elicitation.url", "sampling", "roots"):
            assert (await client.call_tool("can", {"what": what})).text == "true"
    async with MemoryClient(server, revision=revision, script=Script(), can=("roots",)) as client:
        assert (await client.call_tool("can", {"what": "roots"})).text == "true"
        assert (await client.call_tool("can", {"what": "sampling"})).text == "false"
    with pytest.raises(LocalError, match="give a script"):
        MemoryClient(server, can=("roots",))


async def test_without_a_script_nothing_is_declared_and_options_are_a_clients():
    async with MemoryClient(server, name="me", timeout=5) as client:
        assert (await client.call_tool("can", {"what": "sampling"})).text == "false"
        [discover] = client.transcript.frames("client", "server/discover")
        assert discover["params"]["_meta"]["io.modelcontextprotocol/clientInfo"]["name"] == "me"


@pytest.mark.parametrize("tool", ["drop", "drop_waiting"])
@pytest.mark.parametrize("revision", WITH_FORMS)
async def test_a_yes_and_a_choice_can_be_asked_for(revision, tool):
    script = Script().accept("Really?").accept("When?", value="now")
    async with MemoryClient(server, revision=revision, script=script) as client:
        assert (await client.call_tool(tool)).text == "now"
    async with MemoryClient(server, revision=revision, script=Script().decline("Really?")) as client:
        assert (await client.call_tool(tool)).is_error
