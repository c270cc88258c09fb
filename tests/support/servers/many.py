"""A server for several workers: its tools say which process they run in, speak, wait and ask."""

import asyncio
import os
import sys
import time

from interlock import Context, Server
from interlock.transport.http.server.app import SessionBounds

server = Server("many")


@server.tool
async def who() -> int:
    return os.getpid()


@server.tool
async def steps(ctx: Context, count: int, seconds: float = 0.06) -> str:
    for number in range(count):
        await ctx.progress(number)
        await asyncio.sleep(seconds)
    return "done"


@server.tool
async def block(seconds: float) -> str:
    """Stops the event loop of its process."""
    time.sleep(seconds)
    return "done"


@server.tool
async def where(ctx: Context) -> str:
    return (await ctx.roots())[0].uri


@server.tool
async def change() -> str:
    server.resource_changed("note://1")
    return "changed"


@server.resource("note://1")
async def note() -> str:
    return "note"


if __name__ == "__main__":
    timeout = float(sys.argv[2]) if len(sys.argv) > 2 else 60
    bounds = SessionBounds(lease=float(sys.argv[3]) if len(sys.argv) > 3 else 0.5)
    server.run("http", port=0, workers=2, state=sys.argv[1], sessions=bounds, heartbeat_timeout=timeout)
