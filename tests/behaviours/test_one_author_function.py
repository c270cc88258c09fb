"""One author function answers one caller in all five revisions, in memory and as a process."""

import sys
from pathlib import Path

import pytest

from interlock import Client
from support.servers import basic
from support.wire_peer import ALL, CARRIERS

BASIC = Path(basic.__file__)


def target(carrier):
    return basic.server if carrier == "memory" else [sys.executable, "-m", "interlock", "run", str(BASIC)]


@pytest.mark.requirement("LIFE-32", "VERSION-008", "TRANS-STDIO-01", "TRANS-STDIO-02")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", ALL)
async def test_the_same_function_answers_in_every_revision(carrier, revision):
    steps = []
    async with Client(target(carrier), revision=revision) as client:
        assert client.revision == revision
        assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"
        done = await client.call_tool("steps", {"count": 3}, on_progress=lambda *step: steps.append(step[:2]))
    assert done.text == "done"
    assert steps == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.requirement("COMPAT-010")
@pytest.mark.parametrize("carrier", CARRIERS)
async def test_without_a_wish_the_newest_revision_is_spoken(carrier):
    async with Client(target(carrier)) as client:
        assert client.revision == ALL[-1]
        assert (await client.call_tool("add", {"a": 2, "b": 2})).text == "4"
