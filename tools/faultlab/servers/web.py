"""A server of ours over HTTP, with short patience where an experiment says so, that tells what goes on inside of it.

python web.py '{"in_flight": 6000, "connections": 6000, "drain": 5, "timing": {...}, "head": 2, "unread": 2,
"workers": 2, "lease": 1, "state": "state.db"}'
"""

import asyncio
import gc
import json
import os
import sys
import time
from typing import Any

from interlock import Context, Server
from interlock.transport.http.runner import protocol
from interlock.transport.http.runner.serve import run_http
from interlock.transport.http.server.app import SessionBounds, Timing
from interlock.wire.limits import Limits

options = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
protocol._HEAD_SECONDS = options.get("head", protocol._HEAD_SECONDS)
protocol._TAKES_NOTHING = options.get("unread", protocol._TAKES_NOTHING)
server = Server("web", version="1", rate_limits=None)  # all of an experiment's clients are one caller
seen = {"started": 0, "ended": 0}
book = os.open(os.environ.get("FAULTLAB_LEDGER", os.devnull), os.O_WRONLY | os.O_APPEND)


@server.tool
async def keep(nonce: str, seconds: float = 0.0) -> str:
    """Written down as soon as it begins: who was written down is owed an answer."""
    seen["started"] += 1
    os.write(book, nonce.encode() + b"\n")
    try:
        if seconds:
            await asyncio.sleep(seconds)
    finally:
        seen["ended"] += 1
    return nonce


@server.tool
async def block(seconds: float) -> str:
    """Stops the event loop of its worker."""
    time.sleep(seconds)  # noqa: ASYNC251 - this is the fault
    return "blocked"


@server.tool
async def length(values: Any) -> int:
    """Of what was read."""
    return len(values)


@server.tool
async def fill(size: int) -> str:
    """A long answer."""
    return "x" * size


@server.tool
async def chatter(lines: int, size: int, ctx: Context) -> str:
    """Many notifications during one call."""
    seen["started"] += 1
    try:
        for number in range(lines):
            await ctx.exchange.notify("notifications/lab", {"number": number, "text": "x" * size})
    finally:
        seen["ended"] += 1
    return "said"


@server.tool
async def count(nonce: str, lines: int, ctx: Context) -> str:
    """As many notifications as were asked for, a moment between two, so that something can happen in it."""
    for number in range(lines):
        await ctx.exchange.notify("notifications/lab", {"nonce": nonce, "number": number})
        await asyncio.sleep(0.01)
    return nonce


@server.resource("mem://{name}")
async def thing(name: str) -> str:
    return name


@server.tool
async def change(names: list[str]) -> str:
    """Whoever watches one of them is told."""
    for name in names:
        server.resource_changed(f"mem://{name}")
        await asyncio.sleep(0)  # each of them is held against what everybody watches
    return "changed"


@server.tool
async def inside() -> dict[str, int]:
    """Without this call: requests and streams, handlers that have not ended, sessions, tasks."""
    gc.collect()
    return {
        "requests": app.in_flight - 1,
        "handlers": seen["started"] - seen["ended"],
        "sessions": len(app._sessions or ()),
        "tasks": len(asyncio.all_tasks()),
        "blocks": sys.getallocatedblocks(),
    }


most = options.get("in_flight", 1024)
app = server.asgi(
    limits=Limits(in_flight=most),
    timing=Timing(**options.get("timing", {})),
    sessions=SessionBounds(most=max(4096, most), lease=options.get("lease", SessionBounds().lease)),
    state=options.get("state"),
)
run_http(
    app,
    port=0,
    drain=options.get("drain", 5.0),
    connections=options.get("connections", 4096),
    workers=options.get("workers", 1),
)
