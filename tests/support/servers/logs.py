"""A server that says a lot, and things it should not, for the tests of log messages."""

from typing import Any

from interlock import Context, Server
from interlock.wire.types.common import LOG_LEVELS

server = Server("logs", version="1")

SECRETS = {
    "header": "Authorization: Bearer abcdef0123456789",
    "url": "postgres://ada:hunter2@db/notes",
    "key": "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg\n-----END PRIVATE KEY-----",
    "text": "uses ghp_0123456789abcdefABCDEF0123",
    "password": "hunter2",
    "nested": [{"apiKey": "hunter2"}, "token=hunter2"],
}


@server.tool
async def shout(ctx: Context, logger: str = "") -> str:
    """Say one thing at each level."""
    for level in LOG_LEVELS:
        await ctx.log(level, {"said": level}, logger or None)
    return "said"


@server.tool
def shout_in_thread(ctx: Context) -> str:
    for level in LOG_LEVELS:
        ctx.log(level, {"said": level})
    return "said"


@server.tool
async def past_the_context(ctx: Context) -> str:
    """Say it without the checks of the context, as a filter could."""
    for level in LOG_LEVELS:
        await ctx.exchange.notify("notifications/message", {"level": level, "data": {"said": level}})
    return "said"


@server.tool
async def say(data: Any, ctx: Context) -> str:
    await ctx.log("error", data)
    return "said"


@server.tool
async def flood(count: int, ctx: Context) -> str:
    for number in range(count):
        await ctx.log("error", number, "flood")
    return "said"


@server.tool
async def leak(ctx: Context) -> str:
    """Log what nobody should."""
    await ctx.log("error", SECRETS, "password=hunter2")
    return "said"


@server.tool
async def odd(what: str, ctx: Context) -> str:
    """Log what is no message: the author's mistake, told to the author."""
    try:
        await ctx.log("loud" if what == "level" else "error", object() if what == "data" else 1)
    except Exception as error:
        return f"refused: {type(error).__name__}"
    return "said"


@server.tool
async def bug(ctx: Context) -> str:
    raise RuntimeError("the inside of this server")


@server.resource("note://one")
async def note(ctx: Context) -> str:
    await ctx.log("error", "read")
    return "one"


@server.tool
async def touch() -> str:
    server.resource_changed("note://one")
    return "touched"


if __name__ == "__main__":
    server.run()
