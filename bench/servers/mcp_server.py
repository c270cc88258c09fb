"""The bench server on the official Python SDK, as its documentation writes one. With a port: over HTTP."""

import logging
import sys

from mcp.server.mcpserver import MCPServer

server = MCPServer("bench", version="1.0")


@server.tool()
async def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        logging.disable(logging.INFO)  # a line for every request is not what is measured
        server.run("streamable-http", port=int(sys.argv[1]), stateless_http=True, json_response=True)
    else:
        server.run()
