"""The bench server on Interlock whose tool tells its progress."""

from interlock import Context, Rate, RateLimits, Server

FAST = RateLimits(calls=Rate(1e9, 10**9))  # counted as always, and never reached
server = Server("bench", version="1.0", rate_limits=FAST)


@server.tool
async def add_slowly(a: int, b: int, ctx: Context) -> str:
    """Add two numbers and tell ten times how far that is."""
    for step in range(1, 11):
        await ctx.progress(step, 10)
    return str(a + b)
