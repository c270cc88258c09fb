"""Very many calls on one connection: none lost, none run twice, none answered with another's answer, nothing grows."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time

from interlock import Client
from interlock.wire.errors import InterlockError

from ..frames import INITIALIZED, call, hello, old
from ..lab import Lab, Problems
from ..ledger import OK, Ledger
from ..pipe import Overdue, PipedServer
from ..processes import descriptors, marked, rss_mb, slope_per_100k, threads

__all__ = ["run"]

_IN_FLIGHT = 64
_SAMPLES = 50
_GROWTH = 1.0  # MB per 100,000 calls
_SILENCE = 20.0  # seconds without any answer that count as a hang


def run(lab: Lab) -> None:
    _pipelined(lab, lab.dose(1_000_000, 50_000))
    asyncio.run(_synced(lab, lab.dose(2_000, 300)))


def _pipelined(lab: Lab, calls: int) -> None:
    ledger = Ledger(lab.folder / "ledger", calls, lab.random)
    problems = Problems()
    env = lab.marks("server", FAULTLAB_LEDGER=str(ledger.path))
    with PipedServer(lab.served("keeper.py"), env, lab.folder / "stderr") as server:
        server.ask(hello("hello"))
        server.send(INITIALIZED)
        server.ask(call("first", "tasks", {}))
        soak = _Soak(lab, ledger, server, problems)
        before = descriptors(server.pid), threads(server.pid)
        seconds = soak.run()
        problems.require((descriptors(server.pid), threads(server.pid)) == before, "descriptors or threads changed")
        try:
            server.ask(call("last", "flush", {}))
        except Overdue as overdue:
            problems.add(str(overdue))
        problems.require(server.close() == 0, "the server did not exit with 0")
    slope = slope_per_100k(soak.samples)
    problems.require(slope <= _GROWTH, f"RSS grows by {slope:.2f} MB per 100,000 calls")
    problems.require(ledger.told(OK) == calls, f"{calls - ledger.told(OK):,} calls got no good answer")
    entries = ledger.check(problems)
    lab.row(
        "ledger, pipelined",
        f"{calls:,} calls, {_IN_FLIGHT} in flight",
        f"{ledger.told(OK):,} ok, {entries:,} entries, {calls / seconds:,.0f} calls/s, RSS {slope:+.2f} MB per 100k "
        f"(at the end {soak.samples[-1][1]:.0f} MB), {before[0]} descriptors and {before[1]} threads throughout",
        problems,
    )


class _Soak:
    """Keeps so many calls in flight, both eras in turn, and judges every answer."""

    def __init__(self, lab: Lab, ledger: Ledger, server: PipedServer, problems: Problems) -> None:
        self._lab, self._ledger, self._server, self._problems = lab, ledger, server, problems
        self._calls = len(ledger.outcomes)
        self._warm = self._calls // 20
        self.samples: list[tuple[int, float]] = []
        self._made = self._answered = 0

    def run(self) -> float:
        started = heard = time.monotonic()
        every = max(1, (self._calls - self._warm) // _SAMPLES)
        due = self._warm
        while self._answered < self._calls and not self._server.over:
            self._top_up()
            lines = self._server.turn(1.0)
            now = time.monotonic()
            for line in lines:
                self._judge(line)
            if self._answered >= due:
                due += every
                self.samples.append((self._answered, rss_mb(self._server.pid)))
                self._lab.say(f"{self._answered:,} of {self._calls:,} calls")
            heard = now if lines else heard
            if now - heard > _SILENCE:
                self._problems.add(f"silence after {self._answered:,} answers")
                break
        return time.monotonic() - started

    def _top_up(self) -> None:
        while self._made < self._calls and self._made - self._answered < _IN_FLIGHT:
            arguments = {"nonce": self._ledger.nonce(self._made)}
            if self._made % 2:
                self._server.send(call(self._made, "keep", arguments))
            else:
                self._server.send(old(self._made, "tools/call", {"name": "keep", "arguments": arguments}))
            self._made += 1

    def _judge(self, line: bytes) -> None:
        self._answered += 1
        try:
            frame = json.loads(line)
            number, text = frame["id"], frame["result"]["content"][0]["text"]
        except (ValueError, KeyError, IndexError, TypeError):
            self._problems.add(f"not an answer: {line[:160]!r}")
            return
        if self._ledger.number(text) != number:
            self._problems.add(f"the answer of {number} carries the nonce of {self._ledger.number(text)}")
        elif self._ledger.outcomes[number]:
            self._problems.add(f"{number} was answered twice")
        else:
            self._ledger.outcomes[number] = OK


async def _synced(lab: Lab, calls: int) -> None:
    """By our Client, each entry on the disk before its answer; then the server is killed without warning."""
    ledger = Ledger(lab.folder / "synced", calls, lab.random)
    problems = Problems()
    client = Client(lab.command(lab.served("keeper.py"), FAULTLAB_LEDGER=str(ledger.path)))
    numbers = iter(range(calls))

    async def caller() -> None:
        for number in numbers:
            try:
                result = await client.call_tool("keep_synced", {"nonce": ledger.nonce(number)})
            except InterlockError as error:
                problems.add(f"call {number}: {error!r}")
                continue
            if ledger.number(result.text) == number:
                ledger.outcomes[number] = OK
            else:
                problems.add(f"call {number} was answered {result.text[:60]!r}")

    async with client:
        started = time.monotonic()
        await asyncio.gather(*(caller() for _ in range(16)))
        seconds = time.monotonic() - started
        for pid in marked(lab.token):
            os.kill(pid, signal.SIGKILL)
    problems.require(ledger.told(OK) == calls, f"{calls - ledger.told(OK)} calls got no good answer")
    entries = ledger.check(problems)
    result = f"{ledger.told(OK):,} ok, {entries:,} entries after SIGKILL, {calls / seconds:,.0f} calls/s"
    lab.row("ledger, fsync before each answer, by our Client", f"{calls:,} calls, 16 at once", result, problems)
