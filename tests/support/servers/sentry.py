"""A server in a process that Sentry watches: its AsyncioIntegration wraps the coroutine of every task."""

import asyncio
from contextlib import asynccontextmanager

import sentry_sdk
from sentry_sdk.integrations.asyncio import AsyncioIntegration

from interlock import Context, Server


def drop(event, hint):
    """Nothing leaves the process: None drops an event."""


def start_sentry():
    """Call it inside a running loop, whose task factory is replaced."""
    sentry_sdk.init(
        dsn="http://key@127.0.0.1:9/1",
        integrations=[AsyncioIntegration()],
        default_integrations=False,
        traces_sample_rate=1.0,
        before_send=drop,
        before_send_transaction=drop,
        send_client_reports=False,
    )
    assert asyncio.get_running_loop().get_task_factory() is not None


server = Server("sentry", version="1.0")
stopped = asyncio.Event()


@server.app_lifespan
@asynccontextmanager
async def lifespan():
    start_sentry()
    yield


@server.tool
async def at_once() -> str:
    return "at once"


@server.tool
async def wait() -> str:
    await asyncio.sleep(0.01)
    return "waited"


@server.tool
def wait_in_thread() -> str:
    return "waited in a thread"


@server.tool
async def ask(ctx: Context) -> str:
    return f"hello {await ctx.elicit('Who?', str)}"


@server.tool
async def steps(ctx: Context) -> str:
    for step in (1, 2, 3):
        await ctx.progress(step, 3)
        await asyncio.sleep(0)
    return "done"


@server.tool
async def forever(ctx: Context) -> str:
    try:
        await ctx.progress(1)
        await asyncio.Event().wait()
    finally:
        stopped.set()
    return "never"


@server.tool
async def was_stopped() -> str:
    await stopped.wait()
    return "stopped"


@server.tool
async def tag(name: str) -> str:
    """Every tag that Sentry would report with this request: none of another request's is among them."""
    scope = sentry_sdk.get_isolation_scope()
    scope.set_tag(name, "set")
    await asyncio.sleep(0)
    event = sentry_sdk.get_isolation_scope().apply_to_event({}, {}) or {}
    return " ".join(event["tags"])
