"""The official Python SDK over HTTP+SSE: calls `steps` at the URL it is given, and prints what comes back."""

import asyncio
import sys

from mcp import ClientSession
from mcp.client.sse import sse_client


async def main(url: str) -> None:
    async with sse_client(url) as streams, ClientSession(*streams) as session:
        await session.initialize()
        print("steps:", (await session.call_tool("steps", {})).content[0].text)


asyncio.run(main(sys.argv[1]))
