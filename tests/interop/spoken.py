"""Which peers speak which revisions, and what the tests of our client do with all of them."""

from __future__ import annotations

import asyncio

import pytest

from interlock import Client, Refused
from interlock.client.results import CallResult
from interlock.wire.types.content import TextContent
from support.wire_peer import ALL, HANDSHAKE, MODERN

SPOKEN = [("mcp1", each) for each in HANDSHAKE] + [("mcp2", each) for each in ALL]
STATEFUL = [each for each in SPOKEN if each[1] in HANDSHAKE]
NEWEST = [("mcp1", HANDSHAKE[-1]), ("mcp2", HANDSHAKE[-1]), ("mcp2", MODERN[-1])]

every_revision = pytest.mark.parametrize(("peer", "revision"), SPOKEN)
every_handshake = pytest.mark.parametrize(("peer", "revision"), STATEFUL)
newest_of_each_era = pytest.mark.parametrize(("peer", "revision"), NEWEST)


async def outcome(client: Client, tool: str) -> CallResult:
    """The result of a tool; a refused request as the failed result that the other SDK makes of it."""
    try:
        return await client.call_tool(tool)
    except Refused as refused:
        return CallResult([TextContent(text=refused.message)], is_error=True)


async def begun(client: Client, name: str) -> asyncio.Task[CallResult]:
    """A call of the tool that never ends, as soon as it is known to run."""
    running = asyncio.Event()
    call = client.call_tool("slow", {"name": name}, on_progress=lambda *_: running.set())
    task = asyncio.create_task(call)
    async with asyncio.timeout(20):
        await running.wait()
    return task
