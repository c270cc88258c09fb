"""client/client.py: opening, calling and closing from any task, in any order, and from other threads."""

import asyncio
import contextlib
import gc
import json
import logging
import threading
import warnings

import pytest

from interlock import Client, Context, Keepalive, Patience, Server
from interlock.client import list_cache
from interlock.protocol.client.probe import Verdicts
from interlock.transport.jsonrpc.serve import serve_channel
from interlock.transport.memory import memory_pair
from interlock.wire.errors import (
    BadResult,
    CallTimeout,
    ConnectionClosed,
    ConnectionEnded,
    ConnectionLost,
    InvalidParams,
    LocalError,
    NotOpen,
    RemoteError,
    SpawnFailed,
)
from interlock.wire.exchange import Question
from support.doubles import Channel, turns
from support.http_peer import HttpPeer, http
from support.http_peer import events as http_events
from support.http_peer import notice as http_notice
from support.http_peer import server as server_script
from support.virtual_time import virtual_time

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]


def full():
    server = Server("s", version="2", instructions="I", page_size=2)

    @server.tool
    async def echo(text: str = "x", ctx: Context = None) -> str:
        await ctx.progress(1, 2, "half")
        return text

    @server.tool
    async def forever() -> str:
        await asyncio.Event().wait()

    @server.tool
    async def where(ctx: Context) -> str:
        return str(await ctx.exchange.ask(Question("roots/list", {})))

    for number in range(3):
        server.resource(f"note://{number}")(lambda: "text")
    server.prompt(name="greet")(lambda name="you": f"hello {name}")
    return server


def client_of(target=None, **options):
    return Client(full() if target is None else target, verdicts=Verdicts(), **options)


# --- verbs ---


@pytest.mark.parametrize("revision", REVISIONS)
async def test_every_verb_in_every_revision(revision):
    progress = []
    async with client_of(revision=revision) as client:
        assert client.revision == revision
        assert (client.server_info.name, client.instructions) == ("s", "I")
        assert client.capabilities.can("tools")
        found = await client.call_tool("echo", {"text": "y"}, on_progress=lambda *told: progress.append(told))
        assert (found.text, found.is_error) == ("y", False)
        assert [tool.name for tool in await client.list_tools()] == ["echo", "forever", "where"]
        assert len(await client.list_resources()) == 3
        assert await client.list_resource_templates() == []
        assert [prompt.name for prompt in await client.list_prompts()] == ["greet"]
        assert (await client.read_resource("note://0"))[0].text == "text"
        assert (await client.get_prompt("greet", {"name": "Ada"})).messages[0].content.text == "hello Ada"
        assert (await client.get_prompt("greet")).messages[0].content.text == "hello you"
        await client.ping()
    message = None if revision == "2024-11-05" else "half"
    assert progress == [(1, 2, message)]


async def test_a_refusal_is_raised_and_a_failing_tool_is_a_result():
    async with client_of() as client:
        with pytest.raises(InvalidParams, match="Unknown tool"):
            await client.call_tool("nope")
        assert (await client.call_tool("echo", {"text": 7})).is_error


async def test_any_request_and_notification_by_name():
    server, heard = full(), []

    @server.method("example/double")
    async def double(number: int) -> dict:
        return {"doubled": number * 2}

    @server.notification("notifications/example/ring")
    async def ring(tone: str = "") -> None:
        heard.append(tone)

    async with client_of(server) as client:
        assert (await client.request("example/double", {"number": 4}))["doubled"] == 8
        await client.notify("notifications/example/ring", {"tone": "a"})
        await client.ping()
    assert heard == ["a"]


async def test_meta_of_the_caller_travels_and_reserved_keys_do_not():
    async with client_of() as client:
        await client.call_tool("echo", meta={"com.example/x": 1, "traceparent": TRACE})
        for key in ("io.modelcontextprotocol/x", "progressToken", "a b"):
            with pytest.raises(LocalError):
                await client.call_tool("echo", meta={key: 1})


async def test_what_the_server_asks_is_answered():
    async with client_of(revision="2025-11-25", roots=["file:///a"]) as client:
        assert "file:///a" in (await client.call_tool("where")).text


async def test_notifications_outside_of_any_call_are_told(caplog):
    server, heard = full(), []
    async with client_of(server, revision="2025-11-25", on_notification=lambda *told: heard.append(told)) as client:
        await client.ping()
        server.remove_tool("forever")
        await turns(5)
    assert heard == [("notifications/tools/list_changed", {})]


async def test_a_listener_that_fails_harms_nothing(caplog):
    def broken(method, params):
        raise RuntimeError("listener")

    server = full()
    with caplog.at_level(logging.ERROR, "interlock.client"):
        async with client_of(server, revision="2025-11-25", on_notification=broken) as client:
            await client.ping()
            server.remove_tool("forever")
            await turns(5)
            await client.ping()
    assert "listener" in caplog.text


async def test_roots_that_changed_are_announced_where_there_is_a_word_for_it():
    for revision, roots, expected in (
        ("2025-11-25", ["file:///a"], 1),
        ("2025-11-25", None, 0),
        ("2026-07-28", ["file:///a"], 0),
    ):
        server, heard = full(), []

        @server.notification("notifications/roots/list_changed")
        async def changed() -> None:
            heard.append(1)  # noqa: B023

        async with client_of(server, revision=revision, roots=roots) as client:
            await client.roots_changed()
            await client.ping()
        assert len(heard) == expected, revision


# --- deadlines ---


@virtual_time
async def test_deadlines_can_be_said_for_all_calls_and_for_one():
    for options, timeout, which in (
        ({"timeout": 3.0}, None, "idle"),
        ({"timeout": Patience(idle=None, total=4)}, None, "total"),
        ({}, 5.0, "idle"),
        ({}, Patience(idle=None, total=6), "total"),
    ):
        async with client_of(**options) as client:
            with pytest.raises(CallTimeout) as caught:
                await client.call_tool("forever", timeout=timeout)
            assert caught.value.which == which


async def test_who_gives_up_a_call_stops_it():
    stopped = asyncio.Event()
    server = Server("s")

    @server.tool
    async def slow() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async with client_of(server) as client:
        call = asyncio.ensure_future(client.call_tool("slow"))
        await turns(10)
        call.cancel()
        await asyncio.wait([call])
        await stopped.wait()
        await client.ping()


# --- lists ---


def scripted(pages, member="tools"):
    """A handler whose list comes as told: (items, next cursor) by cursor."""
    asked = []

    async def handler(exchange):
        if exchange.method == "server/discover":
            return {"supportedVersions": REVISIONS, "capabilities": {"tools": {}}}
        cursor = getattr(exchange.params, "cursor", None)
        cursor = cursor if isinstance(cursor, str) else None
        asked.append(cursor)
        items, following = pages(cursor)
        found = {member: [{"name": name, "inputSchema": {"type": "object"}} for name in items]}
        return found | ({} if following is None else {"nextCursor": following})

    return handler, asked


async def test_a_list_is_followed_to_its_end_also_through_an_empty_cursor():
    # An empty string is a cursor like any other (server/utilities/pagination).
    pages = {None: (["a"], ""), "": (["b"], "z"), "z": (["c"], None)}
    handler, asked = scripted(pages.__getitem__)
    async with client_of(handler) as client:
        assert [tool.name for tool in await client.list_tools()] == ["a", "b", "c"]
    assert asked == [None, "", "z"]


async def test_a_cursor_that_comes_back_is_an_error_of_the_server():
    handler, asked = scripted(lambda cursor: (["a"], "same"))
    async with client_of(handler) as client:
        with pytest.raises(RemoteError, match="cursor"):
            await client.list_tools()
    assert len(asked) <= 3


async def test_pages_without_end_are_an_error_of_the_server(monkeypatch):
    monkeypatch.setattr(list_cache, "MOST_PAGES", 10)
    handler, asked = scripted(lambda cursor: (["a"], str(int(cursor or "0") + 1)))
    async with client_of(handler) as client:
        with pytest.raises(RemoteError, match="pages"):
            await client.list_tools()
    assert len(asked) == 10


async def test_a_list_of_the_wrong_shape_is_an_error_of_the_server():
    handler, _ = scripted(lambda cursor: (["a"], None), member="tolls")
    async with client_of(handler) as client:
        with pytest.raises(BadResult, match="tools/list"):
            await client.list_tools()


# --- open and close, in any order ---


async def test_a_client_that_is_not_open_says_so():
    client = client_of()
    for verb in (client.list_tools(), client.notify("notifications/x"), client.ping(), client.roots_changed()):
        with pytest.raises(NotOpen):
            await verb
    for fact in ("revision", "server_info", "capabilities", "instructions"):
        with pytest.raises(NotOpen):
            getattr(client, fact)
    await client.close()


async def test_closing_is_final_and_idempotent():
    client = client_of()
    await client.open()
    await client.close()
    await client.close()
    with pytest.raises(NotOpen):
        await client.open()
    with pytest.raises((NotOpen, ConnectionEnded)):
        await client.list_tools()


async def test_one_that_was_never_opened_can_be_closed():
    client = client_of()
    await client.close()
    with pytest.raises(NotOpen):
        await client.open()


async def test_opening_twice_at_once_opens_once():
    dialled = []

    def make():
        near, far = memory_pair()
        dialled.append(far)
        far.attach(serve_channel(full(), far))
        return near

    client = client_of(make)
    await asyncio.gather(client.open(), client.open(), client.open())
    await client.open()
    assert len(dialled) == 1
    await client.close()
    await turns()


async def test_a_call_may_be_made_while_it_opens():
    client = client_of()
    opening = asyncio.ensure_future(client.open())
    await asyncio.sleep(0)
    assert next(tool.name for tool in await client.list_tools()) == "echo"
    await opening
    await client.close()


class Silent(Channel):
    """A server that never answers."""


async def test_closing_while_it_opens_ends_the_opening():
    client = client_of(Silent())
    opening = asyncio.ensure_future(client.open())
    await turns()
    await client.close()
    await asyncio.wait([opening])
    assert isinstance(opening.exception(), ConnectionClosed | NotOpen)


async def test_one_who_gives_up_opening_harms_no_other():
    gate = asyncio.Event()
    server = full()

    async def slow(exchange):
        await gate.wait()
        return await server(exchange)

    client = client_of(slow)
    first, second = asyncio.ensure_future(client.open()), asyncio.ensure_future(client.open())
    await turns()
    first.cancel()
    await turns()
    gate.set()
    await second
    assert first.cancelled()
    assert client.revision == "2026-07-28"
    await client.close()


async def test_when_everybody_gave_up_the_opening_ends():
    channel = Silent()
    client = client_of(channel)
    opening = asyncio.ensure_future(client.open())
    await turns()
    opening.cancel()
    await asyncio.wait([opening])
    assert opening.cancelled()
    await turns()
    assert channel.closed >= 1
    await client.close()


@virtual_time
async def test_opening_has_a_deadline():
    client = client_of(Silent(), connect_timeout=7, probe_timeout=100)
    start = asyncio.get_running_loop().time()
    with pytest.raises(CallTimeout):
        await client.open()
    assert asyncio.get_running_loop().time() - start == 7
    await client.close()


@virtual_time
async def test_a_second_start_has_its_own_time():
    started = []

    class Restarted(Channel):
        """Ends 7 s after the probe; started again, it answers `initialize` after 7 s."""

        def send(self, message):
            said, loop = json.loads(message), asyncio.get_running_loop()
            if said["method"] == "server/discover":
                loop.call_later(7, self.receiver.ended, ConnectionLost("gone"))
            elif said["method"] == "initialize":
                info = {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {},
                    "serverInfo": {"name": "s", "version": "1"},
                }
                answer = json.dumps({"jsonrpc": "2.0", "id": said["id"], "result": info}).encode()
                loop.call_later(7, self.receiver.received, answer)

    client = client_of(lambda: started.append(Restarted()) or started[-1], connect_timeout=10, probe_timeout=9)
    await client.open()
    assert client.revision == "2025-11-25" and len(started) == 2
    await client.close()


async def test_a_second_attempt_may_succeed_after_a_failure():
    attempts = []

    def make():
        attempts.append(1)
        if len(attempts) == 1:
            raise LocalError("not yet")
        near, far = memory_pair()
        far.attach(serve_channel(full(), far))
        return near

    client = client_of(make)
    with pytest.raises(LocalError, match="not yet"):
        await client.open()
    await client.open()
    assert client.revision == "2026-07-28"
    await client.close()
    await turns()


async def test_an_error_of_the_system_is_a_lost_connection():
    class Refusing(Channel):
        async def open(self, receiver):
            raise ConnectionRefusedError(111, "Connection refused")

    with pytest.raises(ConnectionLost, match="Connection refused"):
        await client_of(Refusing()).open()

    class Lost(Channel):
        async def open(self, receiver):
            raise ConnectionLost("said by the channel itself")

    with pytest.raises(ConnectionLost, match="channel itself"):
        await client_of(Lost()).open()


# --- a connection that is lost ---


async def test_a_lost_connection_is_opened_anew_with_the_next_call():
    ends = []

    def make():
        near, far = memory_pair()
        ends.append(far)
        far.attach(serve_channel(full(), far))
        return near

    client = client_of(make)
    await client.open()
    call = asyncio.ensure_future(client.call_tool("forever"))
    await turns(5)
    await ends[0].close()
    await asyncio.wait([call])
    assert isinstance(call.exception(), ConnectionEnded)
    assert (await client.call_tool("echo")).text == "x"
    assert len(ends) == 2
    await client.close()
    await turns()


@virtual_time
async def test_a_server_of_the_handshake_is_pinged_and_lost_when_it_is_silent():
    channel = Silent()

    def answer(message):
        frame = json.loads(message)
        if frame.get("method") == "initialize":
            result = {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "serverInfo": {"name": "s", "version": "1"},
            }
            told = json.dumps({"jsonrpc": "2.0", "id": frame["id"], "result": result}).encode()
            asyncio.get_running_loop().call_soon(channel.receiver.received, told)

    channel.on_send = answer
    client = client_of(channel, revision="2025-11-25", keepalive=Keepalive(interval=10, timeout=5, losses=1))
    await client.open()
    await asyncio.sleep(20)
    assert "ping" in [frame.get("method") for frame in channel.frames()]
    with pytest.raises(LocalError, match="used already"):  # the channel was given as one: it cannot be dialled again
        await client.ping()
    await client.close()


# --- other threads and loops ---


def in_thread(function):
    """Run it in a thread of its own and give what it gave or raised."""
    outcome = []

    def run():
        try:
            outcome.append(function())
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, outcome


async def test_calls_from_another_loop_are_handed_over():
    async with client_of() as client:

        async def elsewhere():
            tools = await client.list_tools()
            await client.notify("notifications/x")
            await client.roots_changed()
            return [tool.name for tool in tools]

        thread, outcome = in_thread(lambda: asyncio.run(elsewhere()))
        await asyncio.to_thread(thread.join)
        assert outcome == [["echo", "forever", "where"]]


async def test_a_call_from_another_loop_can_be_cancelled_there():
    begun, stopped = threading.Event(), asyncio.Event()
    server = Server("s")

    @server.tool
    async def slow() -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async with client_of(server) as client:

        async def elsewhere():
            call = asyncio.ensure_future(client.call_tool("slow"))
            await asyncio.to_thread(begun.wait, 20)
            call.cancel()
            await asyncio.wait([call])
            return call.cancelled()

        thread, outcome = in_thread(lambda: asyncio.run(elsewhere()))
        await asyncio.to_thread(thread.join)
        assert outcome == [True]
        await stopped.wait()


async def test_a_client_may_be_closed_from_another_loop():
    client = client_of()
    await client.open()
    thread, outcome = in_thread(lambda: asyncio.run(client.close()))
    await asyncio.to_thread(thread.join)
    assert outcome == [None]
    with pytest.raises(NotOpen):
        await client.open()


def test_a_client_whose_loop_is_gone_says_so():
    client = client_of()
    asyncio.run(opened_and_left(client))
    with pytest.raises(LocalError, match="closed"):
        asyncio.run(client.list_tools())


async def opened_and_left(client):
    await client.open()
    await client._edge.close()


# --- odds and ends ---


async def test_without_a_listener_notifications_go_nowhere():
    server = full()
    async with client_of(server, revision="2025-11-25") as client:
        await client.ping()
        server.remove_tool("forever")
        await turns(5)
        await client.ping()


async def test_a_program_that_cannot_be_started_is_said_so():
    with pytest.raises(SpawnFailed):
        await client_of(["/nowhere/to/be/found"]).open()


@virtual_time
async def test_the_deadline_of_a_handshake_is_that_of_opening():
    client = client_of(Silent(), revision="2025-11-25", connect_timeout=7)
    with pytest.raises(CallTimeout):
        await client.open()
    await client.close()


@pytest.mark.parametrize("instructions", [7, None, ["x"]])
async def test_instructions_of_the_wrong_kind_are_none(instructions):
    async def handler(exchange):
        return {"supportedVersions": REVISIONS, "capabilities": {}, "instructions": instructions}

    async with client_of(handler) as client:
        assert client.instructions is None


# --- over HTTP ---


TOOL = {"name": "add", "inputSchema": {"type": "object"}}


def http_server(**more):
    """A scripted endpoint with one of everything."""
    return server_script(
        **{
            "tools_list": {"tools": [TOOL]},
            "tools_call": {"content": [{"type": "text", "text": "3"}]},
            "resources_list": {"resources": [{"uri": "note://1", "name": "one"}]},
            "resources_read": {"contents": [{"uri": "note://1", "text": "hi"}]},
            "prompts_list": {"prompts": [{"name": "greet"}]},
            "prompts_get": {"messages": [{"role": "user", "content": {"type": "text", "text": "hello"}}]},
            **more,
        }
    )


@contextlib.asynccontextmanager
async def over_http(script=None, **options):
    async with HttpPeer(script or http_server()) as peer, Client(peer.url, verdicts=Verdicts(), **options) as client:
        yield client, peer


async def test_every_verb_works_over_http():
    async with over_http(headers={"X-Key": "k"}) as (client, peer):
        assert client.revision == "2026-07-28"
        assert client.server_info.name == "peer"
        assert [tool.name for tool in await client.list_tools()] == ["add"]
        assert (await client.call_tool("add", {"a": 1})).text == "3"
        assert [each.uri for each in await client.list_resources()] == ["note://1"]
        assert (await client.read_resource("note://1"))[0].text == "hi"
        assert [each.name for each in await client.list_prompts()] == ["greet"]
        assert (await client.get_prompt("greet")).messages[0].content.text == "hello"
        await client.ping()
    assert {request.header("x-key") for request in peer.requests} == {"k"}
    assert peer.methods[-1] == "server/discover"
    assert {request.verb for request in peer.requests} == {"POST"}


async def test_progress_and_log_messages_reach_their_listeners_over_http():
    steps, said, news = [], [], []

    def talk(request, stream):
        return http_events(
            request,
            http_notice("notifications/progress", progressToken=request.id, progress=1, total=2),
            http_notice("notifications/message", level="info", data="hi"),
            found={"content": []},
        )

    async with over_http(http_server(tools_call=talk), on_notification=lambda *told: news.append(told)) as (client, _):
        await client.request(
            "tools/call",
            {"name": "add"},
            on_progress=lambda *step: steps.append(step),
            on_notification=lambda *told: said.append(told),
        )
    message = ("notifications/message", {"level": "info", "data": "hi"})
    assert steps == [(1, 2, None)]
    assert said == [message]
    assert news == [], "one listener hears it, once"


async def test_a_log_message_nobody_asked_to_hear_reaches_the_listener_of_the_client_over_http():
    news = []

    def talk(request, stream):
        return http_events(
            request,
            http_notice("notifications/progress", progressToken=request.id, progress=1),
            http_notice("notifications/message", level="info", data="hi"),
            found={"content": []},
        )

    async with over_http(http_server(tools_call=talk), on_notification=lambda *told: news.append(told)) as (client, _):
        await client.request("tools/call", {"name": "add"})
    assert news == [("notifications/message", {"level": "info", "data": "hi"})]


async def test_a_timeout_and_a_cancellation_close_the_stream_over_http():
    closed = []

    async def hang(request, stream):
        await stream.gone()
        closed.append(request.id)
        stream.close()

    async with over_http(http_server(tools_call=hang)) as (client, peer):
        with pytest.raises(CallTimeout):
            await client.call_tool("add", timeout=0.05)
        waiting = asyncio.ensure_future(client.call_tool("add"))
        while peer.methods.count("tools/call") < 2:
            await asyncio.sleep(0.005)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        while len(closed) < 2:
            await asyncio.sleep(0.005)
        await client.ping()


async def test_a_server_that_comes_back_is_used_again_without_a_new_opening():
    async with over_http() as (client, peer):
        await client.list_tools()
        await peer.stop()
        with pytest.raises(ConnectionLost):
            await client.list_tools()
        await peer.start()
        await client.list_tools()
    assert peer.methods.count("server/discover") == 1


async def test_an_http_client_is_used_and_closed_from_other_threads():
    async with over_http() as (client, _):

        async def elsewhere():
            text = (await client.call_tool("add")).text
            await client.close()
            return text

        thread, outcome = in_thread(lambda: asyncio.run(elsewhere()))
        await asyncio.to_thread(thread.join)
        assert outcome == ["3"]
        with pytest.raises(NotOpen):
            await client.list_tools()


async def test_closing_ends_the_calls_that_wait_over_http():
    async def hang(request, stream):
        await stream.gone()

    async with over_http(http_server(tools_call=hang)) as (client, peer):
        waiting = asyncio.ensure_future(client.call_tool("add"))
        while "tools/call" not in peer.methods:
            await asyncio.sleep(0.005)
        await client.close()
        with pytest.raises(ConnectionClosed):
            await waiting


async def test_a_notification_over_http_is_a_post_of_its_own():
    async with over_http(http_server(notifications_x=lambda request, stream: http(202))) as (client, peer):
        await client.notify("notifications/x", {"a": 1})
        await client.roots_changed()
    assert peer.requests[-1].message == {"jsonrpc": "2.0", "method": "notifications/x", "params": {"a": 1}}
    assert peer.requests[-1].header("mcp-protocol-version") == "2026-07-28"


async def test_an_opening_that_hangs_over_http_ends_and_leaves_nothing():
    async def hang(request, stream):
        await stream.gone()

    async with HttpPeer(hang) as peer:
        client = Client(peer.url, connect_timeout=0.05, verdicts=Verdicts())
        with pytest.raises(CallTimeout):
            await client.open()
        await client.close()


async def test_nobody_at_the_url_is_said():
    async with HttpPeer(http_server()) as peer:
        url = peer.url
    client = Client(url, verdicts=Verdicts())
    with pytest.raises(ConnectionLost, match="is the server running"):
        await client.open()
    await client.close()


def test_a_client_whose_loop_is_gone_can_be_closed_over_http():
    async def used():
        async with HttpPeer(http_server()) as peer:
            client = Client(peer.url, verdicts=Verdicts())
            await client.open()
            return client

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # of sockets that went with their loop
        client = asyncio.run(used())
        asyncio.run(client.close())
        del client
        gc.collect()


def test_a_log_level_that_is_none_is_refused_at_once():
    with pytest.raises(LocalError, match="'loud' is no log level"):
        Client(["server"], log_level="loud")
