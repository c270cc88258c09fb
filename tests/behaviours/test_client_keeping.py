"""What a client keeps of what a server said, for how long, and for whom."""

from __future__ import annotations

import pytest

from interlock import Client
from interlock.protocol.client.probe import Verdicts
from interlock.wire.errors import InvalidParams
from support.http_peer import HttpPeer
from support.http_peer import server as http_server
from support.talking import Clock, methods, refuse, reply, settled, start, talking, turns
from support.wire_peer import ALL, HANDSHAKE, MODERN

NEWEST = ALL[-1]
over_all = pytest.mark.parametrize("revision", ALL)


def page(*names, **more):
    return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names], **more}


def hints(revision, seconds=60, scope="private"):
    return {"ttlMs": seconds * 1000, "cacheScope": scope} if revision in MODERN else {}


async def listed(client, peer, *pages):
    """The names a list has when the server answers with these pages."""
    call = start(client.list_tools())
    for each in pages:
        reply(peer, await peer.expect("tools/list"), each)
    return [tool.name for tool in await call]


@pytest.mark.requirement("CACHE-008", "CACHE-011", "CACHE-012")
async def test_a_list_is_fresh_for_as_long_as_the_server_says_and_then_asked_for_when_it_is_wanted():
    async with talking("memory", NEWEST) as (client, peer):
        clock = Clock()
        assert await listed(client, peer, page("a", **hints(NEWEST))) == ["a"]
        await clock.advance(59)
        assert [tool.name for tool in await client.list_tools()] == ["a"]
        await clock.advance(2)
        await settled(client, peer)
        assert methods(peer).count("tools/list") == 1, "what is stale is not fetched before anybody wants it"
        assert await listed(client, peer, page("b", **hints(NEWEST))) == ["b"]


@pytest.mark.requirement("CACHE-017")
async def test_a_notice_ends_what_is_kept_at_once():
    async with talking("memory", NEWEST) as (client, peer):
        assert await listed(client, peer, page("a", **hints(NEWEST))) == ["a"]
        changes = client.listen(tools=True)
        listening = start(changes.__aenter__())
        request = await peer.expect("subscriptions/listen")
        stamp = {"_meta": {"io.modelcontextprotocol/subscriptionId": request["id"]}}
        honoured = {"notifications": {"toolsListChanged": True}}
        peer.notify("notifications/subscriptions/acknowledged", {**honoured, **stamp})
        await listening
        assert [tool.name for tool in await client.list_tools()] == ["a"]
        peer.notify("notifications/tools/list_changed", stamp)
        await anext(changes)
        assert await listed(client, peer, page("b", **hints(NEWEST))) == ["b"]


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_notice_ends_what_is_kept_in_the_handshake_era_too(revision):
    async with talking("memory", revision) as (client, peer):
        assert await listed(client, peer, page("a")) == ["a"]
        assert [tool.name for tool in await client.list_tools()] == ["a"]
        peer.notify("notifications/tools/list_changed")
        await turns()
        assert await listed(client, peer, page("b")) == ["b"]


@pytest.mark.requirement("CACHE-016")
async def test_what_is_private_is_kept_for_one_user_alone():
    def client():
        return Client(peer.url, verdicts=Verdicts())

    script = http_server(tools_list={**page("a"), **hints(NEWEST)})
    async with HttpPeer(script) as peer, client() as one, client() as other:
        for user in ("ada", "bob", "ada"):
            await one.list_tools(headers={"Authorization": f"Bearer {user}"})
        await one.list_tools()
        await other.list_tools()
    seen = [request.header("authorization") for request in peer.requests if request.method == "tools/list"]
    assert seen == ["Bearer ada", "Bearer bob", None, None], "one each, and another client keeps its own"


@pytest.mark.requirement("CACHE-020", "CACHE-021")
async def test_a_list_of_which_one_page_expired_is_walked_anew_with_its_cursors():
    async with talking("memory", NEWEST) as (client, peer):
        clock = Clock()
        first, second = page("a", **hints(NEWEST, 60), nextCursor="c2"), page("b", **hints(NEWEST, 10))
        assert await listed(client, peer, first, second) == ["a", "b"]
        await clock.advance(11)
        assert await listed(client, peer, first, second) == ["a", "b"]
        asked = [frame for frame in peer.transcript.frames("client") if frame.get("method") == "tools/list"]
        assert [frame["params"].get("cursor") for frame in asked] == [None, "c2", None, "c2"]


@pytest.mark.requirement("CACHE-022")
@over_all
async def test_a_cursor_that_is_refused_begins_the_list_anew(revision):
    async with talking("memory", revision) as (client, peer):
        call = start(client.list_tools())
        reply(peer, await peer.expect("tools/list"), page("old", **hints(revision), nextCursor="gone"))
        refuse(peer, await peer.expect("tools/list"), -32602, "unknown cursor")
        again = await peer.expect("tools/list")
        assert "cursor" not in again["params"]
        reply(peer, again, page("new", **hints(revision)))
        assert [tool.name for tool in await call] == ["new"], "nothing of the old pages is left"


async def test_a_cursor_that_is_refused_twice_is_told():
    async with talking("memory", NEWEST) as (client, peer):
        call = start(client.list_tools())
        for _ in range(2):
            reply(peer, await peer.expect("tools/list"), page("a", **hints(NEWEST), nextCursor="gone"))
            refuse(peer, await peer.expect("tools/list"), -32602, "unknown cursor")
        with pytest.raises(InvalidParams):
            await call


@pytest.mark.requirement("PAGE-09")
@pytest.mark.parametrize("revision", HANDSHAKE[-1:])
async def test_no_cursor_outlives_its_connection(revision):
    async with talking("memory", revision) as (client, peer):
        call = start(client.list_tools())
        reply(peer, await peer.expect("tools/list"), page("a", nextCursor="c2"))
        await peer.expect("tools/list")
        await peer.channel.close()
        with pytest.raises(ConnectionError):
            await call
        call = start(client.list_tools())
        while len(peer.all) < 2:
            await turns()
        while not methods(peer) or methods(peer)[-1] != "tools/list":
            await turns()
        again = peer.transcript.frames("client")[-1]
        assert "cursor" not in again["params"]
        reply(peer, again, page("b"))
        assert [tool.name for tool in await call] == ["b"]
