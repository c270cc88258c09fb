"""The bench server on the official Python SDK, as its documentation writes one."""

from mcp.server.mcpserver import MCPServer

server = MCPServer("bench", version="1.0")


@server.tool()
async def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


if __name__ == "__main__":
    server.run()
