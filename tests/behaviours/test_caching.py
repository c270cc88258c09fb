"""Hints for caches: what our server says on its lists, and a client that takes no answer for another one."""

from __future__ import annotations

import pytest

from interlock import Client, Context, Server
from interlock.wire.errors import LocalError
from support.asgi import call_tool, message, post
from support.auth_tokens import protection, token
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


def guarded(scope):
    """Everything is for ada alone, and erasing needs a right of its own, whatever caches are told."""
    server = Server("s", auth=protection(scopes=("read",)), cache_scope=scope, cache_seconds=3600)
    server.visible(lambda principal, item: item.name == "erase" or principal.subject == "ada")

    @server.tool
    async def look() -> str:
        return "secret"

    @server.tool(scopes=("write",))
    async def erase() -> str:
        return "secret"

    @server.prompt
    async def hint() -> str:
        return "secret"

    @server.resource("note://one", name="one")
    async def one() -> str:
        return "secret"

    @server.resource("page://{number}", name="page")
    async def page(number: int) -> str:
        return "secret"

    return server.asgi()


@pytest.mark.requirement("CACHE-024", "CACHE-025")
@pytest.mark.parametrize("scope", ["public", "private"])
async def test_who_has_the_list_of_another_user_can_use_nothing_of_it(scope):
    """Such a list may come out of a cache on the way: each use is judged by its own token."""
    app = guarded(scope)
    uses = [
        call_tool("look"),
        call_tool("erase"),
        message("prompts/get", name="hint"),
        message("resources/read", uri="note://one"),
        message("resources/read", uri="page://1"),
    ]

    async def used(frame, **claims):
        bearer = {"authorization": f"Bearer {token(exp=4e9, **claims)}"}
        return await post(app, frame, bearer).answer()

    listed = [await used(message(method)) for method in ("tools/list", "prompts/list", "resources/list")]
    assert all(talk.status == 200 and talk.json["result"]["ttlMs"] == 3_600_000 for talk in listed)
    for frame in uses:
        whole = await used(frame, scope="read write")
        assert whole.status == 200 and b"secret" in whole.body, frame
        other = await used(frame, sub="bob")
        assert b"secret" not in other.body and ("error" in other.json or other.status == 403), frame
    assert (await used(call_tool("erase"))).status == 403, "ada sees it, and her token does not allow it"
    assert (await post(app, uses[0]).answer()).status == 401
    app.stop()
    await app.settle(0)


@pytest.mark.requirement("CACHE-024", "CACHE-025")
async def test_a_list_that_everybody_may_keep_gives_nobody_a_right():
    server = Server("s", auth=protection(scopes=("read",)), cache_scope="public")

    @server.tool(scopes=("write",))
    async def erase() -> str:
        return "secret"

    app = server.asgi()

    async def used(frame, scope):
        return await post(app, frame, {"authorization": f"Bearer {token(exp=4e9, scope=scope)}"}).answer()

    listed = (await used(message("tools/list"), "read")).json["result"]
    assert listed["cacheScope"] == "public" and [tool["name"] for tool in listed["tools"]] == ["erase"]
    assert (await used(call_tool("erase"), "read")).status == 403
    assert b"secret" in (await used(call_tool("erase"), "read write")).body
    app.stop()
    await app.settle(0)


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
