"""Calls cancelled before they start, while they run and as they complete: silence afterwards, and nothing left over."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol

from interlock import Client
from interlock.cli.commands.run import load_server
from interlock.transport.jsonrpc.connection import Duplex
from interlock.transport.jsonrpc.serve import serve_channel
from interlock.transport.memory import memory_pair
from interlock.transport.stdio.child_process import ChildChannel

from ..frames import call, cancel
from ..lab import SERVERS, Lab, Problems
from ..tap import RawClient, Tap

__all__ = ["run"]

_AT_ONCE = 16
_SETTLED = 2.0  # seconds for the handlers to end
_HANG = 10.0
_LONG = 60.0  # a nap that nobody waits for


@dataclass
class Plan:
    """One call: how long its handler naps, and when the cancellation comes, in turns of our loop and in seconds."""

    arguments: dict[str, Any]
    turns: int
    seconds: float


def plan(random: Random, carrier: str) -> Plan:
    moment = random.choice(("before it starts", "while it runs", "as it completes"))
    if moment == "before it starts":
        return Plan({"seconds": _LONG}, random.randrange(2), 0.0)
    if moment == "while it runs":
        return Plan({"seconds": _LONG}, random.randrange(2, 8), random.choice((0.0, random.uniform(0.0, 0.003))))
    if carrier == "memory":
        turns = random.randrange(6)
        return Plan({"turns": turns}, max(0, turns + random.randrange(-2, 12)), 0.0)
    seconds = random.uniform(0.0, 0.004)
    return Plan({"seconds": seconds}, 0, max(0.0, seconds + random.uniform(-0.001, 0.004)))


class Caller(Protocol):
    async def cancel_one(self, plan: Plan) -> str: ...
    async def inside(self) -> dict[str, int]: ...
    def left(self) -> int: ...
    async def close(self) -> None: ...


async def _moment(plan: Plan) -> None:
    for _ in range(plan.turns):
        await asyncio.sleep(0)
    if plan.seconds:
        await asyncio.sleep(plan.seconds)


class ByClient:
    """Our Client: the task that calls is cancelled."""

    def __init__(self, tap: Tap, problems: Problems) -> None:
        self._problems = problems
        self._client = Client(lambda: tap)

    async def open(self) -> None:
        await self._client.open()

    async def cancel_one(self, plan: Plan) -> str:
        task = asyncio.ensure_future(self._client.call_tool("nap", plan.arguments))
        await _moment(plan)
        asked = task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            return "cancelled"
        except Exception as error:
            self._problems.add(f"a cancelled call ended with {error!r:.160}")
        self._problems.require(not asked, "a cancelled call gave a result all the same")
        return "complete"

    async def inside(self) -> dict[str, int]:
        return (await self._client.call_tool("inside")).structured

    def left(self) -> int:
        return len(self._client._edge.link._calls.waiting)  # type: ignore[union-attr]

    async def close(self) -> None:
        await self._client.close()


class ByHand:
    """Raw frames: `notifications/cancelled` goes out whether the answer is there or not."""

    def __init__(self, tap: Tap, problems: Problems) -> None:
        self._problems = problems
        self._raw = RawClient(tap)
        self._ids = 0

    async def open(self) -> None:
        await self._raw.open()

    def _id(self) -> int:
        self._ids += 1
        return self._ids

    async def cancel_one(self, plan: Plan) -> str:
        id = self._id()
        answer = self._raw.ask(call(id, "nap", plan.arguments))
        await _moment(plan)
        if answer.done():
            self._problems.require("result" in answer.result(), f"refused: {answer.result()}")
            return "complete"
        self._raw.send(cancel(id))
        self._raw.waiting.pop(id, None)
        return "cancelled"

    async def inside(self) -> dict[str, int]:
        frame = await self._raw.ask(call(self._id(), "inside", {}))
        return frame["result"]["structuredContent"]

    def left(self) -> int:
        return len(self._raw.waiting)

    async def close(self) -> None:
        await self._raw.close()


def run(lab: Lab) -> None:
    calls = lab.dose(5_000, 250)
    for carrier in ("memory", "stdio"):
        for kind in (ByClient, ByHand):
            asyncio.run(_leg(lab, carrier, kind, calls))


async def _leg(lab: Lab, carrier: str, kind: type[ByClient] | type[ByHand], calls: int) -> None:
    problems = Problems()
    served: Duplex | None = None
    if carrier == "memory":
        near, far = memory_pair()
        served = serve_channel(load_server(str(SERVERS / "plain.py")), far)
        far.attach(served)
        tap = Tap(near, problems, exact=True)
    else:
        tap = Tap(ChildChannel(lab.command(lab.served("plain.py"))), problems, exact=False)
    caller = kind(tap, problems)
    await caller.open()
    before = await caller.inside()
    counts = await _race(lab, caller, tap, carrier, calls)
    after, seconds = await _settle(caller, before, problems)
    problems.require(caller.left() == 0, f"{caller.left()} calls are still in the caller's table")
    problems.require(served is None or served.idle, "requests are still in the server's table")
    await caller.close()
    if served is not None:
        await served.close()
    crossed = f", {tap.crossed} answers crossed their cancellation on the pipe" if carrier == "stdio" else ""
    result = f"{counts['cancelled']:,} cancelled, {counts['complete']:,} complete before{crossed}; "
    result += (
        f"{caller.left()} pending and {after['tasks']} tasks (before {before['tasks']}) {seconds * 1000:.0f} ms later"
    )
    how = "our Client" if kind is ByClient else "raw frames"
    lab.row(f"{carrier}, {how}", f"{calls:,} calls, {_AT_ONCE} at once", result, problems)


async def _race(lab: Lab, caller: Caller, tap: Tap, carrier: str, calls: int) -> dict[str, int]:
    plans = iter([plan(lab.random, carrier) for _ in range(calls)])
    counts = {"cancelled": 0, "complete": 0}

    async def worker() -> None:
        for each in plans:
            async with asyncio.timeout(_HANG):
                counts[await caller.cancel_one(each)] += 1

    async def barriers() -> None:
        while True:
            marked = tap.mark()
            await caller.inside()
            tap.settle(marked)
            lab.say(f"{carrier}: {sum(counts.values()):,} of {calls:,} calls")
            await asyncio.sleep(0.05)

    beside = asyncio.ensure_future(barriers())
    await asyncio.gather(*(worker() for _ in range(_AT_ONCE)))
    beside.cancel()
    await asyncio.gather(beside, return_exceptions=True)
    return counts


async def _settle(caller: Caller, before: dict[str, int], problems: Problems) -> tuple[dict[str, int], float]:
    """Until the inside of the server is what it was, or the time is over."""
    started = time.monotonic()
    while (now := await caller.inside()) != before:
        if time.monotonic() - started > _SETTLED:
            problems.add(f"inside the server before {before}, afterwards {now}")
            break
        await asyncio.sleep(0.005)
    return now, time.monotonic() - started
