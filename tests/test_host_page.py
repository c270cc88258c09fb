"""docs/host.md: its code runs, and does what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from interlock.host import events, host
from interlock.host.catalogue import listing, refresher
from interlock.host.servers import logs, managed_server, manager

PAGE = Path(__file__).resolve().parents[1] / "docs" / "host.md"


@pytest.fixture
def page():
    found: dict = {"__name__": "page"}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S):
        exec(compile(block, str(PAGE), "exec", dont_inherit=True), found)
    return found


async def test_a_call_is_asked_about(page):
    text, asked = await page["ask_a_server"]()
    assert text == "one note about tea"
    assert asked[0].startswith('the server "notes" offers 1 thing')
    assert asked[1:] == ['call the tool "find" of the server "notes" with']


async def test_names(page):
    found = await page["names"]()
    assert found["shop__send"] == ("shop", "send") and found["mail__send"] == ("mail", "send")
    digested = {name: identity for name, identity in found.items() if re.fullmatch(r"shop__[Pp]ay-[a-z2-7]{12}", name)}
    assert set(digested.values()) == {("shop", "Pay"), ("shop", "pay")}


async def test_a_turn(page):
    name, tokens, text = await page["a_turn"]()
    assert name == "notes__find" and 0 < tokens < 4_000 and text == "one note about tea"


async def test_coming_and_going(page):
    assert await page["come_and_go"]() == ("one note about tea", [], [])


def test_the_numbers_are_those_of_the_code():
    page, bounds = PAGE.read_text(encoding="utf-8"), listing.Bounds()
    said = [
        f"at most {bounds.tools:,} tools, prompts and templates and {bounds.resources:,} resources",
        f"| servers of a host | {host.MOST_SERVERS:,} |",
        f"| removed servers whose approved definitions are kept | {manager.MOST_GONE:,} |",
        f"Of removed servers this is kept for the last {manager.MOST_GONE:,}.",
        f"| attempts to start | {managed_server._ATTEMPTS}, after {managed_server._FIRST_PAUSE:g} s and 4 s |",
        f"each keeps its place for {managed_server._TURN_SECONDS:g} s at most",
        f"| events that one follower has not taken | {events.MOST_WAITING:,} |",
        f"| followers | {events.MOST_FOLLOWERS} |",
        f"| {logs._MOST} in a second |",
        f"every {refresher.LONGEST_PAUSE:g} s at last",
    ]
    text = " ".join(page.split())
    assert [each for each in said if " ".join(each.split()) not in text] == []
