"""Connect and disconnect on every carrier, a thousand times each: everything is given back, and then all is quiet."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from interlock import Client, Supervision, SyncClient
from interlock.cli.commands.run import load_server

from ..accounts import Account, cpu_when_idle
from ..hostile_peers import hostile
from ..hostility import Script
from ..lab import SERVERS, Lab, Problems

__all__ = ["run"]

_LANES = 4
_HTTP = {
    "HTTP, newest revision": ("http, stateless", Script("stateless", "", "none")),
    "HTTP, with sessions": ("http, handshake", Script("handshake", "", "none")),
    "HTTP+SSE": ("sse", Script("handshake", "", "none")),
}


def run(lab: Lab) -> None:
    cycles = lab.dose(1_000, 60)
    for name, (carrier, script) in _HTTP.items():
        asyncio.run(_over_http(lab, name, carrier, script, cycles))
    asyncio.run(_in_memory(lab, cycles))


async def _over_http(lab: Lab, name: str, carrier: str, script: Script, cycles: int) -> None:
    async with hostile(carrier, script) as url:

        async def visit() -> None:
            async with Client(url) as client:
                await client.call_tool("echo")

        await _cycles(lab, name, visit, cycles)


async def _in_memory(lab: Lab, cycles: int) -> None:
    """The blocking client, whose loop lives in a thread of its own, and a supervised one that loses its server."""
    server = load_server(str(SERVERS / "plain.py"))

    def blocking() -> None:
        with SyncClient(server) as client:
            client.call_tool("add", {"a": 1, "b": 2})

    async def visit() -> None:
        await asyncio.to_thread(blocking)
        async with Client(server, supervise=Supervision()) as client:
            await client.call_tool("add", {"a": 1, "b": 2})

    await _cycles(lab, "memory, blocking and supervised", visit, cycles)


async def _cycles(lab: Lab, name: str, visit: Callable[[], Awaitable[Any]], cycles: int) -> None:
    problems = Problems()
    await asyncio.gather(*(visit() for _ in range(max(32, cycles // 10))))  # pools grow to their size
    account = Account(lab)
    grown = await account.cycle(name, visit, cycles, _LANES)
    await asyncio.sleep(0.2)  # sockets that were given up are closed in the next turns
    held = account.check(problems)
    account.check_grown(grown, problems)
    idle = await cpu_when_idle("idle afterwards", problems)
    result = f"RSS {grown:+.2f} MB in all; {idle}; held at the end: {held}"
    lab.row(name, f"{cycles:,} connections, {_LANES} at once", result, problems)
