"""The bench server on Interlock that asks: a tool with two questions, one after the other, beside a plain one."""

from interlock import Context, Rate, RateLimits, Server

FAST = RateLimits(calls=Rate(1e9, 10**9))  # counted as always, and never reached
server = Server("bench", version="1.0", rate_limits=FAST)


@server.tool
async def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


@server.tool
async def add_asked(ctx: Context) -> str:
    """Add two numbers that the user is asked for."""
    a = await ctx.elicit("The first number?", int, key="first")
    b = await ctx.elicit(f"What shall be added to {a}?", int, key="second")
    return str(a + b)
