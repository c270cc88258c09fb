"""A server that offers nothing at all, until it is told to grow something."""

from interlock import Context, Server

server = Server("bare")


@server.method("example/grow")
async def grow() -> dict:
    """Tools, resources and prompts that no session knew of when it was opened."""

    @server.tool
    async def late(ctx: Context) -> str:
        await ctx.log("error", "too late")
        return "late"

    @server.resource("note://late")
    async def note() -> str:
        return "late"

    @server.prompt
    async def greet() -> str:
        return "late"

    return {}


@server.method("example/touch")
async def touch() -> dict:
    server.resource_changed("note://late")
    return {}


if __name__ == "__main__":
    server.run()
