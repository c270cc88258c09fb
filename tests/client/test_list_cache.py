"""client/list_cache.py: all pages, once, and only as long as they are true."""

import asyncio

import pytest

from interlock.client import list_cache
from interlock.client.list_cache import PROMPTS, RESOURCES, TEMPLATES, TOOLS, Lists
from interlock.wire.errors import BadResult, EndlessList, InvalidParams, MethodNotFound
from support.virtual_time import virtual_time


def tool(name):
    return {"name": name, "inputSchema": {"type": "object"}}


class Source:
    """Pages by cursor, and who asked for which."""

    def __init__(self, pages=None, **hints):
        self.pages = pages or {None: (["a"], None)}
        self.hints = hints
        self.asked = []
        self.gate = None

    async def __call__(self, params):
        cursor = params.get("cursor")
        self.asked.append(cursor)
        if self.gate is not None:
            await self.gate.wait()
        names, following = self.pages[cursor]
        page = {"tools": [tool(name) for name in names], **self.hints}
        return page | ({} if following is None else {"nextCursor": following})


def names(found):
    return [each.name for each in found]


async def test_a_list_is_all_its_pages():
    source = Source({None: (["a"], ""), "": (["b", "c"], "z"), "z": ([], None)})
    assert names(await Lists().all(TOOLS, source)) == ["a", "b", "c"]
    assert source.asked == [None, "", "z"]


async def test_templates_that_a_server_does_not_know_are_none():
    """A server with resources need not have templates: there is no capability that would say so."""

    async def refuse(params):
        raise MethodNotFound("no such method")

    assert await Lists().all(TEMPLATES, refuse) == []
    for listing in (TOOLS, RESOURCES, PROMPTS):
        with pytest.raises(MethodNotFound):
            await Lists().all(listing, refuse)


async def test_a_later_page_of_templates_that_is_refused_is_an_error():
    async def refuse_second(params):
        if params:
            raise MethodNotFound("no such method")
        return {"resourceTemplates": [], "nextCursor": "x"}

    with pytest.raises(MethodNotFound):
        await Lists().all(TEMPLATES, refuse_second)


@pytest.mark.parametrize(
    ("pages", "told"),
    [
        ({None: (["a"], "x"), "x": (["b"], "x")}, "repeats the cursor 'x'"),
        ({None: ([], "x"), "x": ([], "y"), "y": ([], "x")}, "repeats"),
        ({None: ([], "c" * 65_537)}, "cursor of 65537"),
    ],
)
async def test_cursors_that_lead_nowhere_are_stopped(pages, told):
    with pytest.raises(EndlessList, match=told):
        await Lists().all(TOOLS, Source(pages))


async def test_what_a_server_says_in_a_cursor_is_shown_harmlessly():
    with pytest.raises(EndlessList) as caught:
        await Lists().all(TOOLS, Source({None: ([], "\x1b[2J"), "\x1b[2J": ([], "\x1b[2J")}))
    assert "\x1b" not in str(caught.value)


async def test_pages_and_items_are_bounded(monkeypatch):
    monkeypatch.setattr(list_cache, "MOST_PAGES", 5)
    monkeypatch.setattr(list_cache, "MOST_ITEMS", 12)

    async def endless(params):
        return {"tools": [tool("t")] * sizes[0], "nextCursor": str(int(params.get("cursor", "0")) + 1)}

    sizes = [1, 4]
    for told in ("5 pages", "12 items"):
        with pytest.raises(EndlessList, match=told):
            await Lists().all(TOOLS, endless)
        sizes.pop(0)


async def test_what_is_in_all_pages_together_is_bounded(monkeypatch):
    monkeypatch.setattr(list_cache, "MOST_PARTS", 200)

    async def wordy(params):
        number = int(params.get("cursor", "0"))
        page = {"tools": [{**tool("t"), "description": "x" * 640 * 5}]}
        return page | ({"nextCursor": str(number + 1)} if number < pages else {})

    for pages, fits in ((1, True), (10, False)):
        if fits:
            assert len(await Lists().all(TOOLS, wordy)) == pages + 1
            continue
        with pytest.raises(EndlessList, match="200 values"):
            await Lists().all(TOOLS, wordy)


async def test_a_list_of_the_wrong_shape_is_no_list():
    async def wrong(params):
        return {"tools": [{"name": 7}]}

    with pytest.raises(BadResult, match="tools/list"):
        await Lists().all(TOOLS, wrong)


# --- kept as long as it is true ---


@virtual_time
@pytest.mark.parametrize(
    ("hints", "unsaid", "seconds"),
    [
        ({"ttlMs": 5000}, 0.0, 5.0),
        ({"ttlMs": 1.5}, 0.0, 0.0015),
        ({"ttlMs": 0}, 300.0, 0),
        ({"ttlMs": -1}, 300.0, 0),
        ({}, 0.0, 0),
        ({}, 300.0, 300.0),
        ({"ttlMs": "7"}, 0.0, 0),
        ({"ttlMs": True}, 0.0, 0),
        ({"ttlMs": 10**12}, 0.0, list_cache.LONGEST_KEPT),
        ({"ttlMs": 10**400}, 0.0, list_cache.LONGEST_KEPT),
        ({"ttlMs": -(10**400)}, 300.0, 0),
    ],
    ids=str,
)
async def test_for_how_long(hints, unsaid, seconds):
    source, found = Source(**hints), Lists()
    await found.all(TOOLS, source, unsaid=unsaid)
    if seconds:
        await asyncio.sleep(seconds * 0.9)
        await found.all(TOOLS, source, unsaid=unsaid)
        assert len(source.asked) == 1, "still fresh"
    await asyncio.sleep(seconds * 0.2)
    await found.all(TOOLS, source, unsaid=unsaid)
    assert len(source.asked) == 2, "stale"


@virtual_time
async def test_each_page_has_its_own_clock():
    async def paged(params):
        asked.append(params)
        await asyncio.sleep(4)
        if params:
            return {"tools": [], "ttlMs": 60_000}
        return {"tools": [], "ttlMs": 10_000, "nextCursor": "b"}

    asked, found = [], Lists()
    await found.all(TOOLS, paged)  # the first page came 4 s before the second
    await asyncio.sleep(5)
    await found.all(TOOLS, paged)
    assert len(asked) == 2
    await asyncio.sleep(2)
    await found.all(TOOLS, paged)
    assert len(asked) == 4


async def test_a_refresh_asks_whatever_is_kept():
    source, found = Source(ttlMs=60_000), Lists()
    await found.all(TOOLS, source)
    source.pages = {None: (["b"], None)}
    assert names(await found.all(TOOLS, source)) == ["a"]
    assert names(await found.all(TOOLS, source, alone=True)) == ["b"]
    assert names(await found.all(TOOLS, source)) == ["b"], "what came fresh is kept"


async def test_whoever_changes_his_list_changes_nobody_elses():
    source, found = Source(ttlMs=60_000), Lists()
    (await found.all(TOOLS, source)).clear()
    assert names(await found.all(TOOLS, source)) == ["a"]


@pytest.mark.parametrize(("scope", "asked"), [("private", 2), ("public", 1), (None, 2), ("PUBLIC", 2)])
async def test_only_what_is_public_is_shared_between_principals(scope, asked):
    source, found = Source(ttlMs=60_000, cacheScope=scope), Lists()
    await found.all(TOOLS, source, principal="ada")
    await found.all(TOOLS, source, principal="bob")
    await found.all(TOOLS, source, principal="ada")
    assert len(source.asked) == asked


async def test_one_private_page_makes_the_list_private():
    async def mixed(params):
        asked.append(params)
        page = {"tools": [], "ttlMs": 60_000, "cacheScope": "private" if params else "public"}
        return page | ({} if params else {"nextCursor": "b"})

    asked, found = [], Lists()
    await found.all(TOOLS, mixed, principal="ada")
    await found.all(TOOLS, mixed, principal="bob")
    assert len(asked) == 4


async def test_what_is_kept_is_bounded():
    source, found = Source(ttlMs=60_000), Lists()
    for number in range(list_cache.MOST_KEPT + 1):
        await found.all(TOOLS, source, principal=number)
    await found.all(TOOLS, source, principal=1)
    assert len(source.asked) == list_cache.MOST_KEPT + 1
    await found.all(TOOLS, source, principal=0)
    assert len(source.asked) == list_cache.MOST_KEPT + 2, "the oldest was forgotten"


# --- changes ---


@pytest.mark.parametrize(
    ("kind", "stale"),
    [
        ("tools", {"tools/list"}),
        ("prompts", {"prompts/list"}),
        ("resources", {"resources/list", "resources/templates/list"}),
    ],
)
async def test_a_change_ends_the_lists_it_is_about(kind, stale):
    found, asked = Lists(), []

    async def walk(listing):
        async def ask(params):
            asked.append(listing.method)
            return {listing.member: [], "ttlMs": 60_000}

        await found.all(listing, ask)

    for listing in (TOOLS, PROMPTS, RESOURCES, TEMPLATES):
        await walk(listing)
    asked.clear()
    found.changed(kind)
    for listing in (TOOLS, PROMPTS, RESOURCES, TEMPLATES):
        await walk(listing)
    assert set(asked) == stale


async def test_a_change_while_it_is_walked_keeps_nothing_of_it():
    source, found, took = Source(ttlMs=60_000), Lists(), []
    source.gate = asyncio.Event()
    first = asyncio.ensure_future(found.all(TOOLS, source, took=took.append))
    await asyncio.sleep(0)
    found.changed("tools")
    second = asyncio.ensure_future(found.all(TOOLS, source, took=took.append))
    await asyncio.sleep(0)
    assert len(source.asked) == 2, "the walk that began before is not waited for"
    source.gate.set()
    await asyncio.gather(first, second)
    assert len(took) == 1
    await found.all(TOOLS, source)
    assert len(source.asked) == 2, "the second one is kept"


async def test_another_connection_ends_everything():
    source, found = Source(ttlMs=60_000, cacheScope="public"), Lists()
    await found.all(TOOLS, source)
    found.forget()
    await found.all(TOOLS, source)
    assert len(source.asked) == 2


async def test_a_cursor_that_is_refused_begins_the_list_anew_once():
    answers = [
        {"tools": [tool("old")], "nextCursor": "x"},
        InvalidParams("unknown cursor"),
        {"tools": [tool("a")], "nextCursor": "y"},
        {"tools": [tool("b")]},
    ]

    async def restarted(params):
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert names(await Lists().all(TOOLS, restarted)) == ["a", "b"]

    async def stubborn(params):
        if params:
            raise InvalidParams("unknown cursor")
        return {"tools": [tool("a")], "nextCursor": "x"}

    with pytest.raises(InvalidParams):
        await Lists().all(TOOLS, stubborn)

    async def refusing(params):
        calls.append(params)
        raise InvalidParams("no")

    calls = []
    with pytest.raises(InvalidParams):
        await Lists().all(TOOLS, refusing)
    assert len(calls) == 1


# --- one walk for all ---


async def test_many_who_ask_at_once_share_one_walk():
    source, found = Source(), Lists()
    source.gate = asyncio.Event()
    walks = [asyncio.ensure_future(found.all(TOOLS, source)) for _ in range(5)]
    await asyncio.sleep(0)
    source.gate.set()
    assert [names(each) for each in await asyncio.gather(*walks)] == [["a"]] * 5
    assert len(source.asked) == 1, "though nothing of it is kept"
    await found.all(TOOLS, source)
    assert len(source.asked) == 2


async def test_when_the_one_who_walks_gives_up_the_next_one_walks():
    source, found = Source(), Lists()
    source.gate = asyncio.Event()
    first, *others = [asyncio.ensure_future(found.all(TOOLS, source)) for _ in range(3)]
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait([first])
    assert first.cancelled()
    source.gate.set()
    assert [names(each) for each in await asyncio.gather(*others)] == [["a"], ["a"]]
    assert len(source.asked) == 2


async def test_one_who_waits_may_give_up_alone():
    source, found = Source(), Lists()
    source.gate = asyncio.Event()
    first, second = (asyncio.ensure_future(found.all(TOOLS, source)) for _ in range(2))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.wait([second])
    source.gate.set()
    assert names(await first) == ["a"]


async def test_a_failure_is_told_to_all_and_kept_for_nobody():
    gate = asyncio.Event()

    async def failing(params):
        await gate.wait()
        raise BadResult("broken")

    found = Lists()
    walks = [asyncio.ensure_future(found.all(TOOLS, failing)) for _ in range(3)]
    await asyncio.sleep(0)
    gate.set()
    await asyncio.wait(walks)
    assert {str(walk.exception()) for walk in walks} == {"broken"}
    assert names(await found.all(TOOLS, Source())) == ["a"]
