"""docs/client.md: its code runs, and does what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from interlock import Client, Patience
from interlock.client import completion_cache, event_callbacks, list_cache, output_validation, subscriptions
from interlock.protocol.client.probe import Verdicts
from interlock.wire import errors
from interlock.wire.json import schema, schema_cost

PAGE = Path(__file__).resolve().parents[1] / "docs" / "client.md"
REVISIONS = ["2025-11-25", "2026-07-28"]


@pytest.fixture
def page():
    found: dict = {"__name__": "page"}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S):
        exec(compile(block, str(PAGE), "exec", dont_inherit=True), found)
    return found


async def test_opening_and_callbacks(page):
    assert await page["open_and_look"]() == "library speaks 2026-07-28"
    assert await page["be_asked"]() == ["for 2 weeks", [], []]


@pytest.mark.parametrize("revision", REVISIONS)
async def test_the_verbs(page, revision):
    async with Client(page["server"], revision=revision, verdicts=Verdicts(), timeout=Patience(idle=20)) as client:
        tools, structured, *rest = await page["use_tools"](client)
        assert structured == (7 if revision == REVISIONS[-1] else {"result": 7})
        assert (tools, *rest) == (3, "7", False, None, [1, 2, 3])
        text, uri, prompt, *names = await page["use_resources"](client)
        assert (text, uri) == ("Emma stands on A", "book://B%202/Moby%20Dick")
        assert prompt == "Recommend a novel by Austen." and names == ["Austen", "Asimov"]
        assert await page["wait_for_news"](client) == ["resource", "news://today", False]


async def test_failing(page):
    told = await page["fail"]()
    assert "could not start '/nowhere/server'" in told and "hint: " in told


def test_the_numbers_are_those_of_the_code():
    said = PAGE.read_text(encoding="utf-8")
    bounds = said[said.index("## Bounds") :]
    for number in (
        list_cache.MOST_PAGES,
        list_cache.MOST_ITEMS,
        list_cache.MOST_KEPT,
        list_cache.MOST_PARTS,
        output_validation.MOST_SCHEMA_PARTS,
        output_validation.MOST_WORK,
        output_validation.DEAR_PATTERN,
        schema_cost.DEEPEST,
        schema_cost.MOST_STEPS,
        schema.MOST_BACKTRACKING,
        schema.MOST_LISTED,
        subscriptions.MOST_WAITING,
        completion_cache.MOST_KEPT,
        event_callbacks._MOST,
    ):
        assert f"{number:,}" in bounds, number
    assert f"{list_cache.LONGEST_CURSOR // 1024} Ki" in bounds
    assert f"{subscriptions.MOST_TRIES} times" in said and f"{completion_cache.QUIET * 1000:g} ms" in said


def test_every_error_of_the_page_is_one_of_the_tree():
    table = PAGE.read_text(encoding="utf-8").partition("## Errors")[2].partition("```")[0]
    named = set(re.findall(r"^\| (.*?) \|", table, re.M))
    classes = {name for cell in named for name in re.findall(r"`(\w+)`", cell)}
    assert len(classes) > 10
    assert all(issubclass(getattr(errors, name), errors.InterlockError) for name in classes)
