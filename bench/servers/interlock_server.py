"""The bench server on Interlock. `pid` and `sleep` serve the measure that kills it in mid-call."""

import asyncio
import os

from interlock import Rate, RateLimits, Server

FAST = RateLimits(calls=Rate(1e9, 10**9))  # counted as always, and never reached: all load has one address
server = Server("bench", version="1.0", rate_limits=FAST)


@server.tool
async def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


@server.tool
async def pid() -> str:
    """The id of the process that runs this server."""
    return str(os.getpid())


@server.tool
async def sleep(seconds: float) -> str:
    """Answer after this many seconds."""
    await asyncio.sleep(seconds)
    return "awake"


if __name__ == "__main__":
    server.run()
