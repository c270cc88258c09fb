"""A server that speaks one revision only."""

from interlock import Server

server = Server("only", version="1", revisions=("2026-07-28",))


@server.tool
async def hello() -> str:
    return "hello"
