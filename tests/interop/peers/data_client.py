"""A client written with an official Python SDK, 1.x or 2.x, that calls tools with output schemas; prints what it saw.

usage: data_client.py MODE PYTHON SERVER_FILE

MODE is `handshake` (either SDK's session) or `stateless` (the Client of 2.x). Both check structured content against the
schema that the server listed, and raise if it does not fit or is missing.
"""

import asyncio
import json
import sys
from contextlib import asynccontextmanager

CALLS = [
    ("place", {}),
    ("number", {}),
    ("numbers", {}),
    ("maybe", {"there": True}),
    ("maybe", {"there": False}),
    ("even", {"number": 4}),
    ("even", {"number": 3}),
    ("wrong", {}),
    ("pair", {}),
    ("by_hand", {}),
    ("blocks", {}),
    ("steps", {}),
    ("growing", {}),
    ("fail", {"how": "exit"}),
]


@asynccontextmanager
async def talking(mode, python, server):
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    command = StdioServerParameters(command=python, args=["-m", "interlock", "run", server])
    if mode == "stateless":
        from mcp import Client

        async with Client(command, mode="2026-07-28") as client:
            yield client
        return
    async with stdio_client(command) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        yield session


async def main(mode, python, server):
    async with talking(mode, python, server) as client:
        tools = (await client.list_tools()).tools
        seen = []
        for name, arguments in CALLS:
            result = (await client.call_tool(name, arguments)).model_dump(by_alias=True, mode="json")
            seen.append([name, result.get("structuredContent"), bool(result.get("isError")), result["content"]])
        prompt = await client.get_prompt("everything", {"topic": "tea"})
    kinds = [message.content.type for message in prompt.messages]
    print(json.dumps({"tools": len(tools), "calls": seen, "prompt": kinds}))


asyncio.run(main(*sys.argv[1:]))
