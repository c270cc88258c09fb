"""The bench server on FastMCP, as its documentation writes one (without the banner)."""

from fastmcp import FastMCP

server = FastMCP("bench", version="1.0")


@server.tool
async def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


if __name__ == "__main__":
    server.run(show_banner=False)
