"""A server of ours with small bounds, started through `serve_stdio`. Its argument: how many bytes may stay unread."""

import asyncio
import sys

from interlock import Server
from interlock.transport.stdio.server import serve_stdio, take_stdio
from interlock.wire.limits import Limits

server = Server("narrow", version="1")


@server.tool
async def fill(size: int) -> str:
    """A long answer."""
    return "x" * size


if __name__ == "__main__":
    bound = int(sys.argv[1])
    asyncio.run(serve_stdio(server, take_stdio(), limits=Limits(outbound_bytes=bound, pressure_bytes=bound // 4)))
