"""Numbers that take long to read: the CPU they cost a server or a client, against as many bytes of `1.5`."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from random import Random

from interlock import Client
from interlock.wire.errors import InterlockError

from ..frames import call, hello, modern
from ..lab import Lab, Problems
from ..processes import cpu_nanoseconds
from ..web import WebServer, post

__all__ = ["run"]

MAX_RATIO = 5.0
_ORDINARY = "1.5"
_KNOWN = (
    "1e300",
    "1e288",
    "1E022",
    "57736322545740600e-303",
    "1E+308",
    "1e-308",
    "5e-324",
    "1.7976931348623157e308",
    "1e23",
    "1.50000000000000001110e99",
    '"1e300"',
)
Measure = Callable[[str, int], Awaitable[float]]
"""CPU seconds for an array of so many bytes of one number."""


def run(lab: Lab) -> None:
    asyncio.run(_run(lab))


async def _run(lab: Lab) -> None:
    numbers = [*_KNOWN, *(_made_up(lab.random) for _ in range(lab.dose(12, 4)))]
    sizes = lab.dose(3, 2)
    async with WebServer(lab) as server:
        await _compare(lab, "a call", numbers, [2_000, 60_000, 3_900_000][:sizes], _Calls(server).call)
        await _compare(lab, "a refused request", numbers, [2_000, 60_000, 3_900_000][:sizes], _Calls(server).refused)
        await _compare(lab, "initialize", numbers, [2_000, 60_000, 3_900_000][:sizes], _Calls(server).initialize)
    async with Client(lab.command(lab.plain("slow_numbers.py")), keepalive=None) as client:

        async def read(number: str, size: int) -> float:
            before = time.process_time()
            try:
                await client.call_tool("numbers", {"number": number, "size": size})
            except InterlockError:
                pass  # refused: what that costs counts too
            return time.process_time() - before

        await _compare(lab, "an answer", numbers, [2_000, 60_000, 8_000_000][:sizes], read)


async def _compare(lab: Lab, what: str, numbers: list[str], sizes: list[int], measure: Measure) -> None:
    """The cheapest of a few each: the machine is shared."""
    problems, worst = Problems(), (0.0, "", 0)
    for size in sizes:
        turns = 2 if size > 1_000_000 else 9
        ordinary = min([await measure(_ORDINARY, size) for _ in range(2 * turns)])
        for number in numbers:
            lab.say(f"{what}: {size:,} bytes of {number[:40]}")
            ratio = min([await measure(number, size) for _ in range(turns)]) / ordinary
            worst = max(worst, (ratio, number[:40], size))
            told = f"{size:,} bytes of {number[:40]} cost {ratio:.1f} times as much as of {_ORDINARY}"
            problems.require(ratio <= MAX_RATIO, told)
    dose = f"{len(numbers)} numbers, up to {max(sizes) / 1e6:g} MB of each"
    told = f"at most {worst[0]:.1f} times the CPU of {_ORDINARY} ({worst[2]:,} bytes of {worst[1]})"
    lab.row(what, dose, told, problems)


class _Calls:
    def __init__(self, server: WebServer) -> None:
        self._server = server

    async def call(self, number: str, size: int) -> float:
        return await self._measure(call(1, "length", {"values": None}), number, size)

    async def refused(self, number: str, size: int) -> float:
        return await self._measure(modern(1, "tools/list", {"cursor": None}), number, size)

    async def initialize(self, number: str, size: int) -> float:
        message = json.loads(hello(1))
        message["params"]["capabilities"] = {"experimental": {"values": {"values": None}}}
        return await self._measure(json.dumps(message).encode(), number, size)

    async def _measure(self, frame: bytes, number: str, size: int) -> float:
        values = ",".join([number] * (size // (len(number) + 1)))
        request = post(frame.replace(b"null", f"[{values}]".encode()))
        before = cpu_nanoseconds(self._server.pid)
        await self._server.ask(request)
        return (cpu_nanoseconds(self._server.pid) - before) / 1e9


def _made_up(random: Random) -> str:
    digits = "".join(random.choice("0123456789") for _ in range(random.choice((1, 2, 5, 15, 17, 19, 21, 40, 300))))
    whole, rest = (digits, "") if random.random() < 0.5 else (digits[0], digits[1:])
    exponent = random.choice(
        ("", f"e{random.randrange(-345, 309 - len(whole))}", f"e{random.randrange(280, 309) - len(whole)}")
    )
    return f"{random.choice(('', '-'))}{whole.lstrip('0') or '0'}{'.' if rest else ''}{rest}{exponent}"
