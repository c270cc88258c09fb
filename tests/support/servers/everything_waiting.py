"""examples/everything.py and two tools more: one that ends only when it is cancelled, one that knows whether it was."""

import asyncio

import everything  # the one in this folder

from interlock import Context

server = everything.server
stopped: dict[str, asyncio.Event] = {}


@server.tool
async def hold(name: str, ctx: Context) -> str:
    """Work until it is cancelled."""
    stopped[name] = asyncio.Event()
    try:
        await ctx.progress(1)
        await asyncio.Event().wait()
    finally:
        stopped[name].set()
    return "never"


@server.tool
async def was_stopped(name: str) -> str:
    """Answer once `hold` of that name is over."""
    async with asyncio.timeout(20):
        await stopped[name].wait()
    return "stopped"
