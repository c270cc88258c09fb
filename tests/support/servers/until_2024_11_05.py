"""A server that knows nothing younger than 2024-11-05."""

from interlock import Server

server = Server("old", version="1", revisions=("2024-11-05",))


@server.tool
async def hello() -> str:
    return "hello"
