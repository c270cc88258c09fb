"""A client that listens for changes: what it asks for, what it believes, and what it says again."""

from __future__ import annotations

import asyncio

import pytest

from interlock.client.subscriptions import Change, Wanted
from support.talking import greet, methods, reply, start, talking, turns
from support.wire_peer import ALL, CARRIERS, WAIT, client_under_test

NEWEST = ALL[-1]
over_carriers = pytest.mark.parametrize("carrier", CARRIERS)
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
META = "io.modelcontextprotocol/"


def stamped(request, **params):
    return {**params, "_meta": {f"{META}subscriptionId": request["id"]}}


async def acknowledge(peer, **honoured):
    request = await peer.expect("subscriptions/listen")
    peer.notify(ACKNOWLEDGED, stamped(request, notifications=honoured))
    return request


@pytest.mark.requirement("SUBS-001")
@over_carriers
async def test_a_listen_names_what_it_is_for_and_says_everything(carrier):
    async with talking(carrier, NEWEST) as (client, peer):
        changes = client.listen(tools=True, uris=["note://b", "note://a"])
        entering = start(changes.__aenter__())
        request = await acknowledge(peer, toolsListChanged=True, resourceSubscriptions=["note://a", "note://b"])
        await entering
        wanted = {"toolsListChanged": True, "resourceSubscriptions": ["note://a", "note://b"]}
        assert request["params"]["notifications"] == wanted
        said = request["params"]["_meta"]
        assert said[f"{META}protocolVersion"] == NEWEST
        assert {f"{META}clientCapabilities", f"{META}clientInfo"} <= said.keys()
        await changes.close()
        told = await peer.expect("notifications/cancelled")
        assert told["params"]["requestId"] == request["id"]


@pytest.mark.requirement("SUBS-007")
async def test_what_the_server_does_not_acknowledge_is_seen_and_not_believed():
    async with talking("memory", NEWEST) as (client, peer):
        changes = client.listen(tools=True, prompts=True, uris=["note://a", "note://b"])
        entering = start(changes.__aenter__())
        request = await acknowledge(peer, toolsListChanged=True, resourceSubscriptions=["note://a"])
        await entering
        assert changes.missing == Wanted(prompts=True, uris=frozenset({"note://b"}))
        peer.notify("notifications/prompts/list_changed", stamped(request))
        peer.notify("notifications/resources/updated", stamped(request, uri="note://b"))
        peer.notify("notifications/resources/updated", stamped(request, uri="note://a"))
        assert await anext(changes) == Change("resource", "note://a")
        await changes.close()


@pytest.mark.requirement("SUBS-009")
async def test_several_streams_are_kept_apart():
    async with talking("memory", NEWEST) as (client, peer):
        first, second = client.subscribe("note://a"), client.subscribe("note://a", "note://b")
        entering = start(first.__aenter__())
        one = await acknowledge(peer, resourceSubscriptions=["note://a"])
        await entering
        entering = start(second.__aenter__())
        other = await acknowledge(peer, resourceSubscriptions=["note://a", "note://b"])
        await entering
        peer.notify("notifications/resources/updated", stamped(other, uri="note://a"))
        peer.notify("notifications/resources/updated", stamped(one, uri="note://a"))
        peer.notify("notifications/resources/updated", stamped(other, uri="note://b"))
        assert await anext(first) == await anext(second) == Change("resource", "note://a")
        assert await anext(second) == Change("resource", "note://b")
        await first.close()
        await second.close()


@pytest.mark.requirement("SUBS-013", "STDIO-017", "SUBS-012")
@pytest.mark.parametrize("revision", [ALL[0], ALL[-2], NEWEST])
@over_carriers
async def test_after_a_reconnect_everything_is_listened_for_again(carrier, revision):
    gone = asyncio.Event()
    said = []

    async def script(peer):
        await greet(peer)
        request = await peer.receive()
        said.append((request["method"], request["params"].get("notifications") or request["params"]["uri"]))
        if revision == NEWEST:
            peer.notify(ACKNOWLEDGED, stamped(request, notifications=request["params"]["notifications"]))
        else:
            reply(peer, request, {})
        if len(said) == 1:
            await gone.wait()
            await peer.channel.close()
        else:
            await asyncio.Event().wait()

    async with client_under_test(carrier, revision, script, keepalive=None, revision=revision) as (client, _):
        await client.open()
        async with asyncio.timeout(WAIT), client.subscribe("note://a") as changes:
            gone.set()
            assert await anext(changes) == Change("resource", "note://a"), "what may have been missed is told"
    assert len(said) == 2 and said[0] == said[1]


@pytest.mark.parametrize("revision", ALL)
async def test_log_level_and_roots_are_told_in_the_words_of_the_revision(revision):
    async with talking("memory", revision, roots=["file:///a"]) as (client, peer):
        setting = start(client.set_log_level("warning"))
        if revision == NEWEST:
            await setting
            call = start(client.call_tool("t"))
            request = await peer.expect("tools/call")
            assert request["params"]["_meta"][f"{META}logLevel"] == "warning"
            reply(peer, request, {"content": []})
            await call
        else:
            request = await peer.expect("logging/setLevel")
            assert request["params"]["level"] == "warning"
            reply(peer, request, {})
            await setting
        await client.roots_changed()
        await turns()
        assert ("notifications/roots/list_changed" in methods(peer)) is (revision != NEWEST)
