"""client/methods.py: what each verb says and reads, and what a client keeps between them."""

import asyncio

import pytest

from interlock import Client, Context, Patience, Server
from interlock.client.subscriptions import Change
from interlock.protocol.client.base import NotOffered
from interlock.protocol.client.probe import Verdicts
from interlock.transport.jsonrpc.serve import serve_channel
from interlock.transport.memory import memory_pair
from interlock.wire.errors import CallTimeout, LocalError
from support.doubles import turns
from support.http_handshake import handshake
from support.http_peer import HttpPeer, http
from support.http_peer import result as http_result
from support.http_peer import server as server_script
from support.http_session_talk import ok
from support.virtual_time import virtual_time

REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
ERAS = ["2025-11-25", "2026-07-28"]
in_each_era = pytest.mark.parametrize("revision", ERAS)
in_each_revision = pytest.mark.parametrize("revision", REVISIONS)


def library(asked=None, **options):
    """A server with one of everything; `asked` collects what it is asked for."""
    server = Server("library", **options)

    @server.tool
    async def count() -> int:
        return 7

    @server.tool
    async def say(ctx: Context, level: str = "info") -> str:
        await ctx.log(level, {"said": level}, logger="talk")
        return "said"

    @server.resource("book://{shelf}/{+path}")
    def book(shelf: str, path: str) -> str:
        return f"{shelf}: {path}"

    @server.prompt
    def advise(genre: str, author: str) -> str:
        return f"{genre} by {author}"

    @server.completion(prompt="advise", argument="author")
    def authors(value: str, known: dict[str, str]) -> list[str]:
        return [f"{value}{known.get('genre', '?')}"]

    async def watched(exchange):
        if asked is not None:
            asked.append(exchange.method)
        return await server(exchange)

    server.watched = watched
    return server


def client_of(target, **options):
    return Client(target, verdicts=Verdicts(), **options)


# --- tools ---


def giving(result, schema):
    """A handler whose only tool gives this."""

    async def handler(exchange):
        if exchange.method == "server/discover":
            return {"supportedVersions": REVISIONS, "capabilities": {"tools": {"listChanged": True}}}
        if exchange.method == "tools/list":
            return {"tools": [{"name": "t", "inputSchema": {"type": "object"}, "outputSchema": schema}]}
        return result

    return handler


WRONG = {"content": [{"type": "text", "text": "x"}], "structuredContent": {"a": "no number"}}
SCHEMA = {"type": "object", "properties": {"a": {"type": "number"}}}


@in_each_era
async def test_what_does_not_fit_is_reported_and_nothing_of_it_is_lost(revision):
    async with client_of(giving(WRONG, SCHEMA), revision=revision) as client:
        assert (await client.call_tool("t")).mismatch is None, "of a tool that was never listed nothing is known"
        await client.list_tools()
        found = await client.call_tool("t")
    assert "/a" in found.mismatch
    assert (found.text, found.structured, found.is_error) == ("x", {"a": "no number"}, False)


async def test_a_failed_tool_owes_nobody_a_structure():
    async with client_of(giving({"content": [], "isError": True}, SCHEMA)) as client:
        await client.list_tools()
        assert (await client.call_tool("t")).mismatch is None


async def test_what_should_have_a_structure_and_has_none_is_reported():
    async with client_of(giving({"content": []}, SCHEMA)) as client:
        await client.list_tools()
        assert "no structured content" in (await client.call_tool("t")).mismatch


async def test_where_there_is_no_structured_output_none_is_missed():
    async with client_of(giving({"content": []}, SCHEMA), revision="2025-03-26") as client:
        await client.list_tools()
        assert (await client.call_tool("t")).mismatch is None


@in_each_era
async def test_a_list_that_changed_takes_its_schemas_along(revision):
    server = library()
    async with client_of(server, revision=revision, on_change=lambda change: None) as client:
        await client.list_tools()
        assert client._outputs.known
        assert (await client.call_tool("count")).mismatch is None
        await turns(20)  # until it listens
        server.remove_tool("say")
        await turns(20)
        assert not client._outputs.known


# --- lists ---


@pytest.mark.parametrize(
    ("revision", "options", "walks"),
    [
        ("2026-07-28", {"cache_seconds": 60}, 1),
        ("2026-07-28", {"cache_seconds": 0}, 3),
        ("2025-11-25", {}, 1),  # it tells of changes
    ],
)
async def test_a_list_is_asked_for_again_when_it_must_be(revision, options, walks):
    asked = []
    async with client_of(library(asked, **options).watched, revision=revision) as client:
        for _ in range(3):
            assert [tool.name for tool in await client.list_tools()] == ["count", "say"]
        assert asked.count("tools/list") == walks
        await client.list_tools(refresh=True)
        assert asked.count("tools/list") == walks + 1


async def test_a_server_that_tells_of_no_change_is_asked_each_time():
    asked = []

    async def handler(exchange):
        if exchange.method == "server/discover":
            return {"supportedVersions": REVISIONS, "capabilities": {"tools": {}}}
        asked.append(exchange.method)
        return {"tools": []}

    async with client_of(handler, revision="2025-11-25") as client:
        await client.list_tools()
        await client.list_tools()
    assert asked.count("tools/list") == 2


@in_each_era
async def test_a_change_ends_what_is_kept(revision):
    server, told = library(cache_seconds=3600), []
    async with client_of(server, revision=revision, on_change=told.append) as client:
        await turns(20)
        assert len(await client.list_tools()) == 2
        server.remove_tool("say")
        await turns(20)
        assert told == [Change("tools")]
        assert len(await client.list_tools()) == 1


async def test_another_connection_is_another_server():
    servers = [library(cache_seconds=3600), library(cache_seconds=3600)]
    servers[1].remove_tool("say")
    ends = []

    def make():
        near, far = memory_pair()
        far.attach(serve_channel(servers[len(ends)], far))
        ends.append(far)
        return near

    async with client_of(make) as client:
        assert len(await client.list_tools()) == 2
        await ends[0].close()
        await turns(5)
        assert len(await client.list_tools()) == 1
    await turns()


@virtual_time
async def test_the_total_deadline_is_that_of_the_whole_list():
    async def endless(exchange):
        if exchange.method == "server/discover":
            return {"supportedVersions": REVISIONS, "capabilities": {"tools": {}}}
        cursor = exchange.params.cursor
        await asyncio.sleep(3)
        return {"tools": [], "nextCursor": str(int(cursor if isinstance(cursor, str) else "0") + 1)}

    async with client_of(endless) as client:
        with pytest.raises(LocalError, match="positive"):
            await client.list_tools(timeout=0)
        with pytest.raises(CallTimeout):
            await client.list_tools(timeout=Patience(idle=2))


# --- resources and prompts ---


async def test_a_template_is_filled_and_read():
    async with client_of(library()) as client:
        [template] = await client.list_resource_templates()
        values = {"shelf": "A 3", "path": "x/y"}
        assert (await client.read_resource(template, values))[0].text == "A 3: x/y"
        assert (await client.read_resource("book://{shelf}/{+path}", values))[0].uri == "book://A%203/x/y"
        assert (await client.read_resource("book://b/c"))[0].text == "b: c"
        with pytest.raises(LocalError, match="template"):
            await client.read_resource("book://{", values)


@in_each_revision
async def test_suggestions_know_what_is_known(revision):
    async with client_of(library(), revision=revision) as client:
        found = await client.complete("author", "a", prompt="advise", known={"genre": "novel"})
        knows = revision >= "2025-06-18"
        assert found.values == (("anovel",) if knows else ("a?",))


async def test_suggestions_of_a_server_without_any():
    server = Server("s")
    server.prompt(name="p")(lambda a: a)
    async with client_of(server, revision="2024-11-05") as client:
        assert (await client.complete("a", "", prompt="p")).values == ()
    async with client_of(server) as client:
        with pytest.raises(NotOffered):
            await client.complete("a", "", prompt="p")


# --- log messages ---


@in_each_revision
async def test_log_messages_of_the_level_that_was_set(revision):
    logged = []
    async with client_of(library(), revision=revision, on_log=lambda *told: logged.append(told)) as client:
        await client.set_log_level("warning")
        for level in ("info", "error"):
            await client.call_tool("say", {"level": level})
        await client.ping()
    assert logged == [("error", {"said": "error"}, "talk")]


@in_each_era
async def test_the_level_holds_for_every_connection(revision):
    server, ends, logged = library(), [], []

    def make():
        near, far = memory_pair()
        far.attach(serve_channel(server, far))
        ends.append(far)
        return near

    options = {"log_level": "debug", "on_log": lambda level, *_: logged.append(level)}
    async with client_of(make, revision=revision, **options) as client:
        await client.call_tool("say", {"level": "debug"})
        await ends[0].close()
        await turns(5)
        await client.call_tool("say", {"level": "debug"})
        await client.ping()
    assert (len(ends), logged) == (2, ["debug", "debug"])
    await turns()


async def test_a_level_is_one_of_eight():
    async with client_of(library()) as client:
        with pytest.raises(LocalError, match="no log level"):
            await client.set_log_level("loud")


async def test_a_server_without_log_messages_takes_no_level():
    async def handler(exchange):
        if exchange.method == "server/discover":
            return {"supportedVersions": REVISIONS, "capabilities": {}}
        raise AssertionError(exchange.method)

    async with client_of(handler, revision="2025-11-25", log_level="info") as client:
        with pytest.raises(NotOffered):
            await client.set_log_level("info")


# --- headers of one call ---


def seen(peer, method):
    return [request.header("authorization") for request in peer.requests if request.method == method]


async def test_headers_of_one_call_go_with_it_alone():
    script = server_script(
        tools_call={"content": []},
        tools_list={"tools": [], "ttlMs": 60_000, "cacheScope": "private"},
        resources_read={"contents": []},
    )
    headers = {"Authorization": "Bearer ours"}
    async with HttpPeer(script) as peer, client_of(peer.url, headers=headers) as client:
        theirs = {"authorization": "Bearer theirs"}
        await client.call_tool("t", headers=theirs)
        await client.call_tool("t")
        assert seen(peer, "tools/call") == ["Bearer theirs", "Bearer ours"]
        await client.list_tools()
        await client.list_tools(headers=theirs)
        await client.list_tools()
        assert seen(peer, "tools/list") == ["Bearer ours", "Bearer theirs"], "what is private is kept for each"
        with pytest.raises(LocalError, match="headers"):
            await client.read_resource("a:b", headers={"Host": "x"})


async def test_whose_call_opens_a_connection_anew_does_not_matter_to_it():
    def forgotten_once(request, stream):
        calls.append(request.header("authorization"))
        return http(404) if len(calls) == 1 else ok(request, stream)

    calls = []
    async with HttpPeer(handshake(tools_call=forgotten_once)) as peer:
        options = {"revision": "2025-11-25", "headers": {"Authorization": "Bearer ours"}}
        async with client_of(peer.url, **options) as client:
            await client.call_tool("t", headers={"authorization": "Bearer theirs"})
    assert calls == ["Bearer theirs"] * 2
    others = [request for request in peer.requests if request.verb != "POST" or request.method != "tools/call"]
    assert sum(request.verb == "POST" and request.method == "initialize" for request in others) == 2
    assert {request.header("authorization") for request in others} == {"Bearer ours"}


async def test_what_a_callback_calls_has_none_of_them():
    question = {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": {"type": "object"}}}

    def ask(request, stream):
        answered = "inputResponses" in request.message["params"]
        asks = {"resultType": "input_required", "inputRequests": {"q": question}}
        return http_result(request, {"content": []} if answered else asks)

    script = server_script(tools_call=ask, resources_read={"contents": []})
    async with HttpPeer(script) as peer, HttpPeer(script) as other:

        async def elicit(params):
            await client.read_resource("a:b")
            async with client_of(other.url) as elsewhere:
                await elsewhere.read_resource("a:b")
            return {"action": "decline"}

        async with client_of(peer.url, elicit=elicit) as client:
            await client.call_tool("t", headers={"Authorization": "Bearer theirs"})
    assert seen(peer, "tools/call") == ["Bearer theirs"] * 2
    assert seen(peer, "resources/read") == [None]
    assert {request.header("authorization") for request in other.requests} == {None}


async def test_headers_need_a_carrier_that_has_some():
    async with client_of(library()) as client:
        with pytest.raises(LocalError, match="URL"):
            await client.call_tool("count", headers={"X": "1"})


@pytest.mark.parametrize("params", [[1], "x", 7, {"_meta": 7}, {"_meta": [1]}])
async def test_params_that_are_no_object_are_refused_before_anything_is_sent(params):
    async with Client(library()) as client:
        with pytest.raises(LocalError, match="give a mapping"):
            await client.request("tools/list", params)


@pytest.mark.parametrize("name", ["connect_timeout", "probe_timeout"])
@pytest.mark.parametrize("odd", [0, -1, float("nan"), "5", True])
def test_a_connection_is_not_waited_for_without_end(name, odd):
    with pytest.raises(LocalError, match=name):
        Client(library(), **{name: odd})
