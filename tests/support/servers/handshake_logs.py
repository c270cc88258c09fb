"""A server whose only handler that can log is a method of its author's own."""

from interlock import Context, Server

server = Server("logs")


@server.method("example/log")
async def log(ctx: Context) -> dict:
    await ctx.log("emergency", "on fire")
    return {"logged": True}


if __name__ == "__main__":
    server.run()
