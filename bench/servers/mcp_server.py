"""The bench server on the official Python SDK, as its documentation writes one.

With a port: over HTTP; with `--sessions` before it, with sessions for clients of the handshake era.
"""

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
        *sessions, port = sys.argv[1:]
        server.run("streamable-http", port=int(port), stateless_http=not sessions, json_response=True)
    else:
        server.run()
