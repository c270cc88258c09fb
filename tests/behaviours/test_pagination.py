"""The four lists page by page: what a server gives out, and what a client does with it."""

import base64

import pytest

from support.http_talk import PLACES, speaking
from support.talking import reply, start, talking
from support.wire_peer import ALL, CARRIERS, MODERN

everywhere = pytest.mark.parametrize(("carrier", "revision"), PLACES)
carriers = pytest.mark.parametrize("carrier", CARRIERS)
revisions = pytest.mark.parametrize("revision", ALL)

LISTS = {
    "tools": ("tools/list", "tools", "name"),
    "prompts": ("prompts/list", "prompts", "name"),
    "resources": ("resources/list", "resources", "uri"),
    "templates": ("resources/templates/list", "resourceTemplates", "uriTemplate"),
}
SAID = {"tools": "{}", "prompts": "{}", "resources": "more:{}", "templates": "more:{}/{{id}}"}


async def page_of(peer, kind, cursor=None):
    method, member, key = LISTS[kind]
    page = await peer.result(method, {} if cursor is None else {"cursor": cursor})
    return [each[key] for each in page[member]], page


async def walk(peer, kind, cursor=None):
    """The names on all pages from `cursor` on, and the cursors between them."""
    found, cursors = [], []
    while True:
        names, page = await page_of(peer, kind, cursor)
        found.append(names)
        if "nextCursor" not in page:
            return found, cursors
        cursor = page["nextCursor"]
        assert cursor not in cursors  # or this would never end
        cursors.append(cursor)


async def change(peer, tool, kind, name):
    await peer.result("tools/call", {"name": tool, "arguments": {"kind": kind, "name": name}})


# --- the server ---


@everywhere
@pytest.mark.parametrize("kind", LISTS)
@pytest.mark.requirement("PAGE-10", "PAGE-11", "RES-22")
async def test_every_list_comes_in_pages(carrier, revision, kind):
    async with speaking(carrier, revision, server="library") as peer:
        pages, cursors = await walk(peer, kind)
        assert len(pages) > 1 and all(len(page) == 2 for page in pages[:-1]) and 1 <= len(pages[-1]) <= 2
        names = [name for page in pages for name in page]
        assert len(set(names)) == len(names)
        assert all(isinstance(cursor, str) and cursor for cursor in cursors)  # and absent on the last page, never null
        assert len(set(cursors)) == len(cursors)


@everywhere
@pytest.mark.requirement("PAGE-11")
async def test_a_list_without_pages_has_no_cursor(carrier, revision):
    async with speaking(carrier, revision, server="basic") as peer:
        for kind in LISTS:
            assert "nextCursor" not in (await page_of(peer, kind))[1]


@everywhere
@pytest.mark.parametrize("kind", LISTS)
@pytest.mark.requirement("PAGE-02", "PAGE-002")
async def test_a_cursor_says_the_same_again_and_survives_what_comes_and_goes(carrier, revision, kind):
    async with speaking(carrier, revision, server="library") as peer:
        for name in ("one", "two", "three"):
            await change(peer, "add", kind, name)
        before, cursors = await walk(peer, kind)
        assert await page_of(peer, kind, cursors[0]) == await page_of(peer, kind, cursors[0])
        gone = SAID[kind].format("two")
        await change(peer, "remove", kind, "two")
        await change(peer, "add", kind, "four")
        for number, cursor in enumerate(cursors):
            rest = [name for page in before[number + 1 :] for name in page if name != gone]
            after, _ = await walk(peer, kind, cursor)
            assert [name for page in after for name in page] == [*rest, SAID[kind].format("four")]


@everywhere
@pytest.mark.parametrize("kind", LISTS)
@pytest.mark.requirement("PAGE-03", "PAGE-04", "PAGE-003")
async def test_a_cursor_that_is_none_of_ours_is_refused(carrier, revision, kind):
    async with speaking(carrier, revision, server="library") as peer:
        other = "prompts" if kind == "tools" else "tools"
        foreign = (await page_of(peer, other))[1]["nextCursor"]
        ours = (await page_of(peer, kind))[1]["nextCursor"]
        made_up = base64.urlsafe_b64encode(b"tools:999999").decode()
        for cursor in ("", "bogus", "0", foreign, ours + "=", ours[:-1], ours.lower(), made_up, "é😀", "x" * 10_000):
            error = await peer.error(LISTS[kind][0], {"cursor": cursor})
            assert error["code"] == -32602 and "cursor" in error["message"], cursor[:50]
        assert await page_of(peer, kind, ours)  # and all is well


# --- the client ---

CURSORS = ["", "null", " \t ", "é😀\u2028", "a" * 3000, "eyJvZmZzZXQiOjF9", "../..", '{"a":1}', "0"]


@carriers
@revisions
@pytest.mark.requirement("PAGE-01", "PAGE-05", "PAGE-07", "PAGE-08", "PAGE-001", "PAGE-004", "PAGE-006", "PAGE-007")
async def test_a_client_takes_pages_of_any_size_and_cursors_of_any_kind(carrier, revision):
    """An empty cursor is one too; what comes back is what was given, to the byte; where none is, the list ends."""
    async with talking(carrier, revision) as (client, peer):
        listing = start(client.list_tools())
        wanted, expected = [], None
        for number, cursor in enumerate([*CURSORS, None]):
            request = await peer.expect("tools/list")
            assert request.get("params", {}).get("cursor") == expected
            names = [f"t{number}-{each}" for each in range((0, 3, 1, 7)[number % 4])]
            wanted, expected = wanted + names, cursor
            reply(peer, request, page(revision, names, cursor))
        assert [tool.name for tool in await listing] == wanted


@carriers
@revisions
@pytest.mark.requirement("PAGE-06", "PAGE-005")
async def test_a_client_takes_a_list_in_one_piece_as_well(carrier, revision):
    async with talking(carrier, revision) as (client, peer):
        listing = start(client.list_tools())
        reply(peer, await peer.expect("tools/list"), page(revision, ["a", "b"], None))
        assert [tool.name for tool in await listing] == ["a", "b"]


@carriers
@revisions
@pytest.mark.requirement("PAGE-09")
async def test_a_client_begins_anew_with_every_session(carrier, revision):
    """A walk that was broken off leaves no cursor behind, for this session or for another."""
    for _ in range(2):
        async with talking(carrier, revision) as (client, peer):
            listing = start(client.list_tools())
            first = await peer.expect("tools/list")
            assert "cursor" not in first.get("params", {})
            reply(peer, first, page(revision, ["a"], "kept?"))
            assert (await peer.expect("tools/list"))["params"]["cursor"] == "kept?"
            listing.cancel()


def page(revision, names, cursor):
    held = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]}
    hints = {"ttlMs": 0, "cacheScope": "private"} if revision in MODERN else {}
    return {**held, **hints, **({"nextCursor": cursor} if cursor is not None else {})}
