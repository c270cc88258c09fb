"""client/subscriptions.py: changes as they happen, in every revision, also behind a connection that was lost."""

import asyncio

import pytest

from interlock import Client, Server
from interlock.client import subscriptions
from interlock.client.subscriptions import Change, Hub, Listening, Wanted
from interlock.protocol.client.base import NotOffered
from interlock.protocol.client.probe import Verdicts
from interlock.transport.jsonrpc.serve import serve_channel
from interlock.transport.memory import memory_pair
from interlock.wire.errors import ConnectionClosed, ConnectionLost, LocalError, MethodNotFound, PeerClosed
from support.doubles import turns
from support.http_socket import served
from support.mortal import Mortal
from support.virtual_time import virtual_time

REVISIONS = ["2024-11-05", "2025-11-25", "2026-07-28"]
in_each_revision = pytest.mark.parametrize("revision", REVISIONS)


def notes():
    server = Server("s")

    @server.tool
    async def one() -> str:
        return "1"

    @server.tool
    async def two() -> str:
        return "2"

    for name in "abc":
        server.resource(f"note://{name}")(lambda: "text")
    server.prompt(name="greet")(lambda: "hi")
    return server


class Lines:
    """A server that can be reached again and again, and cut off."""

    def __init__(self, server=None):
        self.server = server or notes()
        self.ends = []
        self.refused = 0

    def __call__(self):
        if self.refused:
            self.refused -= 1
            raise ConnectionLost("nobody there")
        near, far = memory_pair()
        self.ends.append(far)
        far.attach(serve_channel(self.server, far))
        return near


def client_of(target, **options):
    return Client(target, verdicts=Verdicts(), **options)


async def taken(changes, count):
    async with asyncio.timeout(30):
        return [await anext(changes) for _ in range(count)]


# --- what is heard ---


@in_each_revision
async def test_lists_and_resources_that_change_are_told(revision):
    server = notes()
    async with client_of(server, revision=revision) as client:
        async with client.listen(tools=True, prompts=True, resources=True, uris=["note://a", "note://b"]) as changes:
            assert changes.honoured == changes.wanted and not changes.missing
            server.remove_tool("one")
            assert await taken(changes, 1) == [Change("tools")]
            server.resource_changed("note://a")
            server.resource_changed("note://c")  # nobody watches it
            server.resource_changed("note://b")
            assert await taken(changes, 2) == [Change("resource", "note://a"), Change("resource", "note://b")]
            server.remove_prompt("greet")
            server.remove_resource("note://c")
            assert set(await taken(changes, 2)) == {Change("prompts"), Change("resources")}
        await client.ping()


@in_each_revision
async def test_what_was_not_asked_for_is_not_told(revision):
    server = notes()
    async with client_of(server, revision=revision) as client, client.subscribe("note://a") as changes:
        server.remove_tool("one")
        server.remove_prompt("greet")
        server.resource_changed("note://a")
        assert await taken(changes, 1) == [Change("resource", "note://a")]


@in_each_revision
async def test_what_happens_twice_before_anybody_looks_is_told_once(revision):
    server = notes()
    async with client_of(server, revision=revision) as client, client.listen(tools=True, uris=["note://a"]) as changes:
        for _ in range(3):
            server.resource_changed("note://a")
            await turns(5)
        server.remove_tool("one")
        await turns(5)
        assert await taken(changes, 2) == [Change("resource", "note://a"), Change("tools")]


@in_each_revision
async def test_two_may_watch_the_same_and_one_may_go(revision):
    server = notes()
    async with client_of(server, revision=revision) as client, client.subscribe("note://a") as first:
        async with client.subscribe("note://a") as second:
            server.resource_changed("note://a")
            assert await taken(first, 1) == await taken(second, 1)
        server.resource_changed("note://a")
        assert await taken(first, 1) == [Change("resource", "note://a")]


@in_each_revision
async def test_who_iterates_without_a_context_listens_too(revision):
    server = notes()
    async with client_of(server, revision=revision) as client:
        changes = client.listen(tools=True)
        waiting = asyncio.ensure_future(anext(changes))
        await turns(20)
        server.remove_tool("one")
        assert await waiting == Change("tools")
        await changes.close()
        assert [change async for change in changes] == []


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_changes_are_told_over_http(revision):
    server, told = notes(), []
    async with served(server.asgi()) as port:
        url = f"http://127.0.0.1:{port}/mcp"
        async with client_of(url, revision=revision, on_change=told.append) as client:
            async with asyncio.timeout(20), client.listen(tools=True, uris=["note://a"]) as changes:
                server.resource_changed("note://a")
                assert await anext(changes) == Change("resource", "note://a")
                server.remove_tool("one")
                assert await anext(changes) == Change("tools")
            assert len(await client.list_tools()) == 1
    assert Change("resource", "note://a") in told


# --- what a server does not tell ---


def silent(exchange_answers):
    async def handler(exchange):
        if exchange.method == "server/discover":
            return {"supportedVersions": REVISIONS, "capabilities": {"tools": {}, "resources": {}}}
        return await exchange_answers(exchange)

    return handler


@in_each_revision
async def test_a_server_that_tells_nothing_of_it_is_said_so(revision):
    async def answers(exchange):
        await exchange.notify("notifications/subscriptions/acknowledged", {"notifications": {}})
        await asyncio.Event().wait()

    async with client_of(silent(answers), revision=revision) as client:
        with pytest.raises(NotOffered, match="tools, resource updates"):
            async with client.listen(tools=True, uris=["note://a"]):
                pass


async def test_what_is_not_honoured_can_be_seen():
    async def answers(exchange):
        told = {"toolsListChanged": True, "resourceSubscriptions": ["note://a", 7], "promptsListChanged": "yes"}
        told |= {"resourcesListChanged": True, "resourceSubscriptions": ["note://a", "note://never asked for"]}
        await exchange.notify("notifications/subscriptions/acknowledged", {"notifications": told})
        await exchange.notify("notifications/prompts/list_changed", {})
        await exchange.notify("notifications/resources/list_changed", {})
        await exchange.notify("notifications/tools/list_changed", {})
        await asyncio.Event().wait()

    wanted = {"tools": True, "prompts": True, "uris": ["note://a", "note://b"]}
    async with client_of(silent(answers)) as client, client.listen(**wanted) as changes:
        assert changes.missing == Wanted(prompts=True, uris=frozenset({"note://b"}))
        assert await taken(changes, 1) == [Change("tools")], "what was not acknowledged is not taken for true"


async def test_a_server_without_such_streams_is_said_so():
    async def answers(exchange):
        raise MethodNotFound("Method not found")

    async with client_of(silent(answers)) as client:
        with pytest.raises(NotOffered, match="no subscriptions/listen"):
            async with client.listen(tools=True):
                pass


async def test_a_server_may_end_it():
    async def answers(exchange):
        await exchange.notify("notifications/subscriptions/acknowledged", {"notifications": {"toolsListChanged": True}})
        return {}

    async with client_of(silent(answers)) as client, client.listen(tools=True) as changes:
        assert [change async for change in changes] == []


@pytest.mark.parametrize("wanted", [{}, {"uris": ["x" * 9000]}, {"uris": [f"a:{n}" for n in range(10_001)]}])
async def test_what_cannot_be_listened_for_is_not_sent(wanted):
    with pytest.raises(LocalError, match="listen"):
        client_of(notes()).listen(**wanted)


# --- connections that are lost ---


@in_each_revision
async def test_a_lost_connection_is_listened_on_again_and_what_was_missed_is_told(revision, monkeypatch):
    monkeypatch.setattr(subscriptions, "FIRST_PAUSE", 0.001)
    lines = Lines()
    async with client_of(lines, revision=revision) as client, client.listen(tools=True, uris=["note://a"]) as changes:
        await lines.ends[0].close()
        assert set(await taken(changes, 2)) == {Change("tools"), Change("resource", "note://a")}
        lines.server.resource_changed("note://a")
        assert await taken(changes, 1) == [Change("resource", "note://a")]
    assert len(lines.ends) == 2
    await turns()


@virtual_time
async def test_a_server_that_does_not_come_back_is_given_up():
    lines = Lines()
    async with client_of(lines) as client, client.listen(tools=True) as changes:
        lines.refused = 1000
        await lines.ends[0].close()
        with pytest.raises(PeerClosed):
            await anext(changes)
        assert 1000 - lines.refused == subscriptions.MOST_TRIES
        with pytest.raises(PeerClosed):
            await anext(changes)
    await turns()


@virtual_time
async def test_a_server_that_comes_back_each_time_is_listened_to_for_ever():
    lines = Lines()
    async with client_of(lines) as client, client.listen(tools=True) as changes:
        for _ in range(2 * subscriptions.MOST_TRIES):
            await lines.ends[-1].close()
            assert await anext(changes) == Change("tools")
    await turns()


async def test_what_cannot_be_dialled_again_is_lost_as_it_was(monkeypatch):
    monkeypatch.setattr(subscriptions, "FIRST_PAUSE", 0.001)
    lines = Lines()
    async with client_of(lines()) as client, client.listen(tools=True) as changes:
        await lines.ends[0].close()
        with pytest.raises(PeerClosed):
            await asyncio.wait_for(anext(changes), 10)
    await turns()


async def test_a_connection_that_cannot_be_listened_on_at_first_is_an_error_at_once():
    lines = Lines()
    async with client_of(lines) as client:
        await lines.ends[0].close()
        lines.refused = 1
        with pytest.raises(ConnectionLost, match="nobody there"):
            async with client.listen(tools=True):
                pass
    await turns()


# --- the end ---


@in_each_revision
async def test_closing_the_client_ends_the_iteration(revision):
    client = client_of(notes(), revision=revision)
    await client.open()
    changes = client.listen(tools=True, uris=["note://a"])
    collected = asyncio.ensure_future(collect(changes))
    await turns(20)
    await client.close()
    assert await collected == []


async def collect(changes):
    return [change async for change in changes]


async def test_closing_the_client_while_it_begins_is_said_so():
    async def never(exchange):
        await asyncio.Event().wait()

    client = client_of(silent(never))
    await client.open()
    beginning = asyncio.ensure_future(client.listen(tools=True).__aenter__())
    await turns(20)
    await client.close()
    with pytest.raises(ConnectionClosed):
        await beginning


async def test_who_gives_up_beginning_leaves_nothing():
    stopped = asyncio.Event()

    async def never(exchange):
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async with client_of(silent(never)) as client:
        beginning = asyncio.ensure_future(client.listen(tools=True).__aenter__())
        await turns(20)
        beginning.cancel()
        await asyncio.wait([beginning])
        assert beginning.cancelled()
        await stopped.wait()


async def test_a_stream_that_is_left_is_ended_at_the_server():
    lines, told = Lines(), []
    async with client_of(lines, revision="2025-11-25", on_change=told.append) as client:
        async with client.subscribe("note://a", "note://b"):
            pass
        lines.server.resource_changed("note://a")
        await client.ping()
    assert told == [], "the server was told that nobody watches any more"
    await turns()


async def test_a_server_is_told_once_whoever_watches_and_when_nobody_does_but_not_at_the_end():
    mortal = Mortal()

    def said():
        return [(method.removeprefix("resources/"), params["uri"]) for _, method, params in mortal.heard[2:]]

    async with mortal.client() as client:
        async with client.subscribe("a:1"):
            async with client.subscribe("a:1", "a:2"):
                pass
            assert said() == [("subscribe", "a:1"), ("subscribe", "a:2"), ("unsubscribe", "a:2")]
        assert said()[3:] == [("unsubscribe", "a:1")]
        async with client.subscribe("a:1"):
            await client.close()
        assert said()[4:] == [("subscribe", "a:1")]


async def test_a_server_is_told_nothing_by_one_whose_loop_ends():
    mortal = Mortal()
    async with mortal.client() as client, client.subscribe("a:1") as changes:
        changes._task.cancel()  # as all tasks are
        await asyncio.wait([changes._task])
        assert mortal.methods()[-1] == "resources/subscribe"


async def test_it_can_be_used_from_another_loop():
    server = notes()
    async with client_of(server) as client:

        async def elsewhere():
            async with client.listen(tools=True) as changes:
                server.remove_tool("one")
                return await anext(changes)

        assert await asyncio.to_thread(asyncio.run, elsewhere()) == Change("tools")


# --- bounds and parts ---


class Began:
    """Somebody waits for it to begin."""

    def done(self):
        return False

    def set_result(self, _):
        pass


def quiet_listening(**wanted):
    found = Listening(Hub(None, None, None, None), Wanted(**wanted))
    found._began = Began()
    found.acknowledged(found.wanted)
    return found


@pytest.mark.parametrize(
    ("watched", "updated", "heard"),
    [
        ("note://a", "note://a", True),
        ("note://a", "note://a/b/c", True),
        ("note://a/", "note://a/b", True),
        ("note://a", "note://ab", False),
        ("note://a/b", "note://a", False),
        ("note://a/", "note://a", False),
        ("note://a", "note://a" + "/" * 9000, True),
        ("note://a", 7, False),
        ("note://a", None, False),
    ],
)
def test_a_part_of_what_is_watched_is_watched(watched, updated, heard):
    found = quiet_listening(uris=frozenset({watched}))
    assert (found.hear("notifications/resources/updated", {"uri": updated}) is not None) is heard


def test_updates_nobody_takes_are_bounded(monkeypatch):
    monkeypatch.setattr(subscriptions, "MOST_WAITING", 5)
    found = quiet_listening(tools=True, uris=frozenset({"note:"}))
    found.put(Change("tools"))
    for number in range(100):
        found.put(Change("resource", f"note:/{number}"))
    assert len(found._waiting) <= 6
    assert Change("tools") in found._waiting and Change("resource") in found._waiting


def test_a_filter_in_the_words_of_the_protocol():
    wanted = Wanted(tools=True, uris=frozenset({"b:", "a:"}))
    assert wanted.as_filter() == {"toolsListChanged": True, "resourceSubscriptions": ["a:", "b:"]}
    assert wanted.without(Wanted(tools=True, uris=frozenset({"a:"}))) == Wanted(uris=frozenset({"b:"}))
    assert wanted and not Wanted()
