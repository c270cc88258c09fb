"""A server that knows nothing younger than 2025-06-18."""

from interlock import Server

server = Server("old", version="1", revisions=("2024-11-05", "2025-03-26", "2025-06-18"))


@server.tool
async def hello() -> str:
    return "hello"
