"""A harmless server of ours: answers, takes its time, fills a buffer, and tells what goes on inside of it."""

import asyncio
import gc

from interlock import Context, Server
from interlock.transport.jsonrpc.executor import Runs

server = Server("plain", version="1")
seen = {"started": 0, "ended": 0}


@server.tool
async def add(a: int, b: int) -> str:
    """The sum."""
    return str(a + b)


@server.tool
async def echo(text: str, times: int = 1) -> str:
    """The same text, a few times."""
    return text * min(max(times, 0), 3)


@server.tool
async def nap(turns: int = 0, seconds: float = 0.0) -> str:
    """Wait so many turns of the loop and so many seconds; cancelled or not, its end is counted."""
    seen["started"] += 1
    try:
        for _ in range(turns):
            await asyncio.sleep(0)
        if seconds:
            await asyncio.sleep(seconds)
    finally:
        seen["ended"] += 1
    return "rested"


@server.tool
async def fill(size: int) -> str:
    """A long answer."""
    return "x" * size


@server.tool
async def chatter(lines: int, size: int, ctx: Context) -> str:
    """Many notifications during one call, of a kind that is not rate-limited."""
    for number in range(lines):
        await ctx.exchange.notify("notifications/lab", {"number": number, "text": "x" * size})
    return "said"


@server.tool
async def inside() -> dict[str, int]:
    """Without this call: requests that run, handlers that have not ended, tasks."""
    running = sum(len(each.by_id) for each in gc.get_objects() if isinstance(each, Runs))
    return {
        "running": running - 1,
        "unended": seen["started"] - seen["ended"],
        "tasks": len(asyncio.all_tasks()) - 1,
    }
