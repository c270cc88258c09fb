"""Hints for caches: what our server says on its lists, and a client that takes no answer for another one."""

from __future__ import annotations

import pytest

from interlock import Client, Context, Server
from interlock.wire.errors import LocalError
from support.modern_peer import modern
from support.talking import reply, start, talking
from support.wire_peer import ALL, CARRIERS, server_under_test

NEWEST = ALL[-1]
LISTS = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")
QUESTION = {
    "method": "elicitation/create",
    "params": {"message": "?", "requestedSchema": {"type": "object", "properties": {}}},
}

over_carriers = pytest.mark.parametrize("carrier", CARRIERS)


# --- the server ---------------------------------------------------------------------------------------------


@modern
@pytest.mark.requirement("CACHE-001", "CACHE-002", "CACHE-003", "CACHE-026")
async def test_what_may_be_kept_says_how_long_and_for_whom(carrier, revision):
    """For one user alone, unless the author says otherwise."""
    async with server_under_test(carrier, revision, server="changing") as peer:
        for method in ("server/discover", *LISTS, "resources/read"):
            result = await peer.result(method, {"uri": "note://one"} if method == "resources/read" else {})
            assert type(result["ttlMs"]) is int and result["ttlMs"] >= 0, method
            assert result["cacheScope"] == "private", method


@pytest.mark.requirement("CACHE-002", "CACHE-003")
@pytest.mark.parametrize(
    "hints",
    [{"cache_seconds": -1}, {"cache_seconds": float("nan")}, {"cache_scope": "shared"}, {"cache_scope": ""}],
)
def test_hints_that_nobody_could_follow_are_refused_at_once(hints):
    with pytest.raises(LocalError, match="cache_"):
        Server("s", **hints)


@modern
@pytest.mark.requirement("CACHE-004")
async def test_a_question_is_nothing_to_keep(carrier, revision):
    async with server_under_test(carrier, revision, server="asking") as peer:
        peer.capabilities = {"elicitation": {}}
        result = await peer.result("resources/read", {"uri": "asking://who"})
        assert result["resultType"] == "input_required"
        assert not result.keys() & {"ttlMs", "cacheScope"}


@pytest.mark.requirement("CACHE-023")
@pytest.mark.parametrize("scope", ["public", "private"])
async def test_all_pages_of_a_list_say_the_same(scope):
    server = Server("s", page_size=2, cache_scope=scope, cache_seconds=7)
    for number in range(5):

        @server.tool(name=f"t{number}")
        async def tool(ctx: Context) -> None: ...

    said, cursor = [], {}
    async with Client(server, revision=NEWEST) as client:
        while cursor is not None:
            page = await client.request("tools/list", cursor)
            said.append((page["ttlMs"], page["cacheScope"]))
            cursor = {"cursor": page["nextCursor"]} if "nextCursor" in page else None
    assert said == [(7000, scope)] * 3


# --- the client ---------------------------------------------------------------------------------------------


@pytest.mark.requirement("CACHE-005", "CACHE-007", "CACHE-009", "CACHE-010", "CACHE-011")
@pytest.mark.parametrize("hints", [{"ttlMs": 0}, {}, {"ttlMs": -5}, {"ttlMs": None}], ids=str)
@over_carriers
async def test_what_is_stale_is_fetched_again_and_no_answer_stands_for_another(carrier, hints):
    async with talking(carrier, NEWEST) as (client, peer):
        for uri, said in (("note://a", "a1"), ("note://b", "b1"), ("note://a", "a2")):
            call = start(client.read_resource(uri))
            request = await peer.expect("resources/read")
            assert request["params"]["uri"] == uri
            contents = {"contents": [{"uri": uri, "text": said}], "cacheScope": "public", **hints}
            reply(peer, request, contents, judged=False)
            assert (await call)[0].text == said


@pytest.mark.requirement("CACHE-006")
@over_carriers
async def test_what_was_read_with_answers_is_asked_for_anew(carrier):
    """The second time there is no answer and no state in it, and the server decides again."""
    async with talking(carrier, NEWEST, elicit=lambda _: {"action": "accept", "content": {}}) as (client, peer):
        for said in ("one", "two"):
            call = start(client.read_resource("note://a"))
            first = await peer.expect("resources/read")
            assert not first["params"].keys() & {"inputResponses", "requestState"}
            reply(peer, first, {"resultType": "input_required", "inputRequests": {"q": QUESTION}, "requestState": "s"})
            contents = {"contents": [{"uri": "note://a", "text": said}], "ttlMs": 60_000, "cacheScope": "public"}
            reply(peer, await peer.expect("resources/read"), contents)
            assert (await call)[0].text == said


@pytest.mark.requirement("CACHE-021")
@over_carriers
async def test_a_list_is_always_walked_from_its_beginning(carrier):
    page = {"tools": [], "ttlMs": 60_000, "cacheScope": "private"}
    async with talking(carrier, NEWEST) as (client, peer):
        for _ in range(2):
            call = start(client.list_tools(refresh=True))
            first = await peer.expect("tools/list")
            assert "cursor" not in first["params"]
            reply(peer, first, {**page, "nextCursor": "b"})
            second = await peer.expect("tools/list")
            assert second["params"]["cursor"] == "b"
            reply(peer, second, page)
            assert await call == []
