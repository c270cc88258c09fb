"""Handlers that behave badly around cancellation, progress and the standard streams.

`release` lets go whatever waits; `noted` tells what handlers wrote down for a test to ask about.
"""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

from msgspec import Raw

from interlock import Context, Server
from interlock.wire.exchange import Question

server = Server("utilities", version="1")
released = threading.Event()
blocked_over = threading.Event()
notes: list[str] = []
background: set[asyncio.Task[None]] = set()


async def release_seen() -> None:
    """Wait for `release` in a way that also a thread can be released; the loop stays free."""
    while not released.is_set():
        await asyncio.sleep(0.001)


@server.tool
async def release() -> str:
    """Let go every handler that waits, and wait until the background has said what it wanted."""
    released.set()
    if background:
        await asyncio.wait(background)
    return "released"


@server.tool
async def noted() -> str:
    return "\n".join(notes)


@server.tool
async def echo(text: str = "") -> str:
    return text


# --- cancellation ---


@server.tool
async def forever(ctx: Context, name: str = "") -> str:
    """Work until it is cancelled, and report progress even then."""
    try:
        await ctx.progress(1)
        await asyncio.Event().wait()
    finally:
        notes.append(f"stopped {name}")
        await ctx.progress(2)
    return "never"


@server.tool
async def deaf(ctx: Context) -> str:
    """Swallows every cancellation, works on until `release` and answers then."""
    await ctx.progress(1)
    while not released.is_set():
        try:
            await release_seen()
        except asyncio.CancelledError:
            continue
    await ctx.progress(2)
    notes.append("deaf ended")
    return "too late"


@server.tool
def blocked(ctx: Context) -> str:
    """The same in a thread, which nobody can cancel."""
    try:
        ctx.progress(1)
        released.wait()
        notes.append(f"blocked saw {ctx.cancelled}")
        ctx.progress(2)
        notes.append("blocked ended")
        return "too late"
    finally:
        blocked_over.set()


@server.tool
async def ask_then_wait(ctx: Context) -> str:
    """Ask for the roots; once they came, work until it is cancelled."""
    await ctx.exchange.ask(Question("roots/list", {}))
    await ctx.progress(1)
    await asyncio.Event().wait()
    return "never"


# --- progress ---


@server.tool
async def wobble(ctx: Context) -> str:
    """Report values that do not always grow."""
    for value in (1, 1, 0.5, 2, 1.75, 2, -3, 2.5, 2.25, 3):
        await ctx.progress(value)
    return "done"


@server.tool
async def no_numbers(ctx: Context) -> str:
    """Report what JSON has no number for, between two honest values."""
    await ctx.progress(1)
    for value in (float("nan"), float("inf"), float("-inf")):
        try:
            await ctx.progress(value)
            await ctx.progress(1.5, value)
        except Exception as error:  # an error to the author would be fine: only the wire is judged
            notes.append(repr(error))
    await ctx.progress(2, 4)
    return "done"


@server.tool
async def flood(count: int, ctx: Context) -> str:
    for number in range(count):
        await ctx.progress(number + 1, count, f"step {number + 1}")
    return "done"


@server.tool
def flood_in_thread(count: int, ctx: Context) -> str:
    for number in range(count):
        ctx.progress(number + 1, count)
    return "done"


@server.tool
async def fractions(ctx: Context) -> str:
    await ctx.progress(0.2, 1.0)
    await ctx.progress(0.75, 1.0, "three quarters – fast fertig")
    return "done"


@server.tool
async def leaky(ctx: Context) -> str:
    """Answers at once; something it left behind reports progress after `release`."""

    async def late() -> None:
        await release_seen()
        await ctx.progress(2)
        await ctx.log("error", "late")
        notes.append("leaked")

    task = asyncio.get_running_loop().create_task(late())
    background.add(task)
    await ctx.progress(1)
    return "done"


@server.resource("slow://one")
async def slow_resource(ctx: Context) -> str:
    await ctx.progress(1, 2)
    return "read"


@server.prompt
async def slow_prompt(ctx: Context) -> str:
    await ctx.progress(1, 2)
    return "asked"


# --- the standard streams ---


@server.tool
async def stdin() -> str:
    """Everything a handler and its children can find on standard input."""
    child = subprocess.run(["cat"], capture_output=True)
    return repr((sys.stdin.read(), os.read(0, 100), child.stdout))


@server.tool
async def chatter(lines: int) -> str:
    """Write a lot to what the author believes to be stdout."""
    for number in range(lines):
        print(f'{{"jsonrpc":"2.0","id":{number},"result":{{}}}}')
    sys.stdout.flush()
    return "quiet"


@server.tool
async def big(size: int) -> str:
    return "x" * size


@server.tool
async def hit(name: str) -> str:
    """Send this process a signal and answer some turns of the loop later."""
    os.kill(os.getpid(), signal.Signals[name])
    for _ in range(50):
        await asyncio.sleep(0.001)
    return f"outlived {name}"


@server.tool
def asleep(ctx: Context) -> str:
    """A thread that never comes back."""
    ctx.progress(1)
    time.sleep(3600)
    return "never"


@server.method("utilities/mirror")
async def mirror(value: Any = None) -> dict:
    return {"value": value}


@server.method("utilities/raw")
async def raw() -> dict:
    """A result with parts that were encoded elsewhere, over several lines."""
    return {"part": Raw(b'{\n  "a": [\r\n    1,\n    "x\\ny"\n  ]\n}')}
