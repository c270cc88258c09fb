"""Servers that misbehave at every step, on every carrier: each call ends typed, and nothing stays behind."""

from __future__ import annotations

import asyncio
from collections import Counter

from ..accounts import Account
from ..hostile_peers import CARRIERS, hostile
from ..hostility import BENIGN, BENIGN_OVER_HTTP, FAULTS, STEPS, Script
from ..lab import Lab, Problems
from ..visiting import Visit, visit

__all__ = ["run"]

_DEADLINE = 0.5  # seconds of each call
_AT_ONCE = 8


def run(lab: Lab) -> None:
    asyncio.run(_servers(lab, lab.dose(200, 40)))


def _chosen(lab: Lab, count: int) -> list[tuple[str, Script]]:
    """Different ones, drawn from all there are."""
    every = [
        (carrier, Script(era, step, fault))
        for carrier, era in CARRIERS.items()
        for step in STEPS[era]
        for fault in FAULTS
    ]
    return lab.random.sample(every, count)


async def _servers(lab: Lab, count: int) -> None:
    problems, ends = Problems(), Counter[str]()
    numbers = iter(_chosen(lab, count))
    await _warm_up(lab)
    account = Account(lab)

    async def lane() -> None:
        for carrier, script in numbers:
            await _one(lab, carrier, script, problems, ends)
            lab.say(f"{sum(ends.values())} steps done")

    await asyncio.gather(*(lane() for _ in range(_AT_ONCE)))
    await asyncio.sleep(0.2)  # sockets that were given up are closed in the next turns
    held = account.check(problems)
    told = ", ".join(f"{number} {name}" for name, number in ends.most_common(8))
    lab.row(
        "servers that misbehave", f"{count} servers, {_AT_ONCE} at once", f"{told}; held at the end: {held}", problems
    )


async def _warm_up(lab: Lab) -> None:
    """Load what stays: modules, and the decoders that are built once, with the first message that needs them."""
    first = [
        ("http, stateless", Script("stateless", "", "none")),
        ("stdio, handshake", Script("handshake", "", "none")),
    ]
    first += [
        (carrier, Script(era, STEPS[era][-1], fault))
        for carrier, era in CARRIERS.items()
        if carrier.startswith("memory")
        for fault in FAULTS
    ]
    await asyncio.gather(*(_one(lab, carrier, script, Problems(), Counter()) for carrier, script in first))


async def _one(lab: Lab, carrier: str, script: Script, problems: Problems, ends: Counter[str]) -> None:
    async with hostile(carrier, script, lab.marks("server")) as target:
        found = await visit(target, seconds=_DEADLINE, keepalive=None)
    ends.update(end if end == "ok" else f"times {end}" for end in found.ends.values())
    for wrong in [*found.wrong, *_missed(carrier, script, found)]:
        problems.add(f"{carrier}, {script.step}, {script.fault}: {wrong}")


def _missed(carrier: str, script: Script, found: Visit) -> list[str]:
    """A right answer that came and was not taken."""
    benign = BENIGN if carrier.startswith(("memory", "stdio")) else BENIGN_OVER_HTTP
    if script.fault not in benign or script.step != "tools/call":
        return []
    return [f"{step} ended with {end}" for step, end in found.ends.items() if end != "ok"]
