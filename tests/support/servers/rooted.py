"""Reads files, but only where the client's user works."""

from pathlib import Path

from interlock import Context, Server, ToolError

server = Server("rooted", version="1")


@server.tool
async def read(path: str, ctx: Context) -> str:
    if not await ctx.within_roots(path):
        raise ToolError("outside of the roots")
    return Path(path).read_text()


@server.tool
def read_in_thread(path: str, ctx: Context) -> str:
    if not ctx.within_roots(path):
        raise ToolError("outside of the roots")
    return Path(path).read_text()


if __name__ == "__main__":
    server.run()
