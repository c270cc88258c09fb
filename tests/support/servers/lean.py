"""Speaks the newest revision only and offers nothing but tools, two on a page. All defaults otherwise."""

from interlock import Server

server = Server("lean", version="1", revisions=("2026-07-28",), page_size=2)


@server.tool
async def first() -> str:
    return "1"


@server.tool
async def second() -> str:
    return "2"


@server.tool
async def third() -> str:
    return "3"


@server.tool
async def grow() -> str:
    """Add a tool, or take it away again."""
    try:
        server.remove_tool("grown")
    except Exception:
        server.tool(name="grown")(first)
    return "changed"


@server.tool
async def touch(uri: str) -> str:
    server.resource_changed(uri)
    return "touched"


if __name__ == "__main__":
    server.run()
