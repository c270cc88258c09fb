"""The bench server on the official Python SDK whose tool tells its progress, over HTTP with streams."""

import logging
import sys

from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("bench", version="1.0")


@server.tool()
async def add_slowly(a: int, b: int, ctx: Context) -> str:
    """Add two numbers and tell ten times how far that is."""
    for step in range(1, 11):
        await ctx.report_progress(step, 10)
    return str(a + b)


if __name__ == "__main__":
    logging.disable(logging.INFO)  # a line for every request is not what is measured
    server.run("streamable-http", port=int(sys.argv[1]))
