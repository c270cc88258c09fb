"""Noise on stdout: ours as a server keeps it out of the protocol, ours as a client reads on through it."""

from __future__ import annotations

import asyncio
import json
import time

from interlock import Client
from interlock.wire.errors import InterlockError

from ..frames import call
from ..lab import Lab, Problems
from ..pipe import PipedServer

__all__ = ["run"]

_MANNERS = ("print", "fake answer", "unfinished line", "descriptor")
_PROGRAM_EVERY = 20  # calls; starting a program is slow
_IN_FLIGHT = 32
_SILENCE = 20.0


def run(lab: Lab) -> None:
    _ours_speaks(lab, lab.dose(10_000, 1_000))
    asyncio.run(_ours_listens(lab, lab.dose(10_000, 2_000)))


def _ours_speaks(lab: Lab, calls: int) -> None:
    problems = Problems()
    good: set[int] = set()
    with PipedServer(lab.served("noisy.py"), lab.marks("server"), lab.folder / "stderr") as server:
        made = 0
        heard = time.monotonic()
        while len(good) < calls and not server.over and time.monotonic() - heard < _SILENCE:
            while made < calls and made - len(good) < _IN_FLIGHT:
                manner = "program" if made % _PROGRAM_EVERY == 0 else lab.random.choice(_MANNERS)
                tool = lab.random.choice(("speak", "shout"))
                server.send(call(made, tool, {"manner": manner, "number": made}))
                made += 1
            for line in server.turn(1.0):
                heard = time.monotonic()
                _judge(line, good, problems)
            lab.say(f"server: {len(good):,} of {calls:,} calls")
        problems.require(server.close() == 0, "the server did not exit with 0")
        noise = server.errors().count("NOISE")
    problems.require(len(good) == calls, f"{calls - len(good)} calls got no good answer")
    problems.require(noise == calls + 1, f"{noise} of {calls + 1} noises reached stderr")
    result = f"{len(good):,} good answers, {problems.count} bad frames; {noise:,} noises on stderr"
    lab.row("ours as server, a noise in each call", f"{calls:,} calls, print, fd 1, echo", result, problems)


def _judge(line: bytes, good: set[int], problems: Problems) -> None:
    try:
        frame = json.loads(line)
        number = int(frame["result"]["content"][0]["text"])
    except (ValueError, KeyError, IndexError, TypeError):
        problems.add(f"a bad frame: {line[:120]!r}")
        return
    problems.require(number == frame["id"] and number not in good, f"a wrong answer: {line[:120]!r}")
    good.add(number)


async def _ours_listens(lab: Lab, calls: int) -> None:
    problems = Problems()
    client = Client(lab.command(lab.plain("foreign.py", str(lab.seed))))
    numbers = iter(range(calls))
    good = 0

    async def caller() -> None:
        nonlocal good
        for number in numbers:
            try:
                result = await client.call_tool("say", {"number": number}, timeout=_SILENCE)
            except InterlockError as error:
                problems.add(f"call {number}: {error!r:.160}")
                continue
            problems.require(result.text == str(number), f"call {number} was answered {result.text[:60]!r}")
            good += result.text == str(number)
            lab.say(f"client: {good:,} of {calls:,} calls")

    async with client:
        await asyncio.gather(*(caller() for _ in range(_IN_FLIGHT)))
        written = int((await client.call_tool("count")).text)
        counted = client._edge.link.side.junk_lines  # type: ignore[union-attr]
    problems.require(good == calls, f"{calls - good} answers missing")
    problems.require(counted == written, f"{counted} lines of junk counted, {written} written")
    result = f"{good:,} answers, {counted:,} lines of junk skipped and counted"
    lab.row("ours as client, junk before each answer", f"{calls:,} answers, {written:,} lines", result, problems)
