"""Open and close, again and again: everything that was used is given back, and idle means idle."""

from __future__ import annotations

import asyncio

from interlock import Client, Server
from interlock.cli.commands.run import load_server

from ..accounts import BUSY, IDLE, Account, cpu_when_idle
from ..lab import SERVERS, Lab, Problems
from ..processes import cpu_seconds, marked, slope_per_100k

__all__ = ["run"]

_SAMPLES = 40
_GROWTH = 1.0  # MB per 100,000 connections, where there are enough of them to tell


def run(lab: Lab) -> None:
    asyncio.run(_in_memory(lab, lab.dose(20_000, 2_000)))
    asyncio.run(_children(lab, lab.dose(1_000, 50)))
    asyncio.run(_idle(lab))


async def _in_memory(lab: Lab, cycles: int) -> None:
    problems = Problems()
    server: Server = load_server(str(SERVERS / "plain.py"))
    revisions = (None, "2025-06-18")
    for number in range(cycles // 10):
        await _visit_memory(server, revisions[number % 2])
    account = Account(lab)
    account.every = max(1, cycles // _SAMPLES)
    for number in range(cycles):
        await _visit_memory(server, revisions[number % 2])
        account.sample(number)
        lab.say(f"memory: {number:,} of {cycles:,} connections")
    held = account.check(problems)
    slope = slope_per_100k(account.samples)
    grown = account.samples[-1][1] - account.samples[0][1]
    if not lab.quick:
        problems.require(slope <= _GROWTH, f"RSS grows by {slope:.2f} MB per 100,000 connections")
    account.check_grown(grown, problems)
    result = f"RSS {slope:+.2f} MB per 100k (in all {grown:+.2f} MB); held at the end: {held}"
    lab.row("connections in memory, both eras", f"{cycles:,} connections", result, problems)


async def _visit_memory(server: Server, revision: str | None) -> None:
    async with Client(server, revision=revision) as client:
        await client.call_tool("add", {"a": 1, "b": 2})


async def _children(lab: Lab, cycles: int) -> None:
    problems = Problems()
    command = lab.command(lab.served("plain.py"))

    async def visit() -> None:
        async with Client(command) as client:
            result = await client.call_tool("add", {"a": 1, "b": 2})
            problems.require(result.text == "3", f"a wrong answer: {result.text[:60]!r}")

    for _ in range(5):
        await visit()
    account = Account(lab)
    grown = await account.cycle("children", visit, cycles, 2)
    held = account.check(problems)
    account.check_grown(grown, problems)
    result = f"RSS {grown:+.2f} MB in all; held at the end: {held}"
    lab.row("connections to a child process", f"{cycles:,} connections, 2 at once", result, problems)


async def _idle(lab: Lab) -> None:
    """An open connection on which nothing happens, then none."""
    problems = Problems()
    told: list[str] = []
    async with Client(lab.command(lab.served("plain.py"))) as client:
        await client.call_tool("add", {"a": 1, "b": 2})
        pids = list(marked(lab.token))
        before = sum(map(cpu_seconds, pids))
        told.append(await cpu_when_idle("open, client", problems))
        used = sum(map(cpu_seconds, pids)) - before
        problems.require(used <= IDLE * BUSY, f"open, server: {used * 1000:.0f} ms")
        told.append(f"open, server: {used * 1000:.0f} ms")
    told.append(await cpu_when_idle("closed, client", problems))
    lab.row("CPU time when idle", f"{IDLE:g} s each", "; ".join(told), problems)
