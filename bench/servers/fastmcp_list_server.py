"""A server on FastMCP with many tools, to be listed."""

from fastmcp import FastMCP

server = FastMCP("bench", version="1.0")


async def tool(a: int, b: int = 1, note: str = "") -> str:
    """Add two numbers and say something about it."""
    return f"{a + b} {note}"


for number in range(500):
    server.tool(name=f"tool_{number}")(tool)

if __name__ == "__main__":
    server.run(show_banner=False)
