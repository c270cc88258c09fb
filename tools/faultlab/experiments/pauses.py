"""Workers that stand still and go on, and a clock that is set back as one is killed: every call has one outcome."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import struct
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import monotonic
from typing import Any

from ..frames import old
from ..lab import Lab, Problems
from ..processes import descriptors, wait_until
from ..sessions import SessionClient, find_workers, run_under_load
from ..web import Cut, WebServer, Wire, post, verb

__all__ = ["run"]

_LEASE = 1.0  # seconds after which the others take a worker for dead
_SESSIONS = 12
_LINES = 60  # events of a call beside its answer; a call takes a little less than a second
_QUIET = 0.5  # seconds without an event after which a client asks elsewhere
_HANG = 30.0  # seconds for one call, from its first event to the end of all that is asked about it
_HOUR = 3600.0
_GONE = "worker that served this request is gone"
_EXPECTED = ("did not renew its lease", "has reported it as lost", "was ended by signal 9", "blocked the event loop")


def run(lab: Lab) -> None:
    asyncio.run(_all(lab))


async def _all(lab: Lab) -> None:
    await _paused(lab, lab.dose(8, 2), "SIGSTOP, then SIGCONT, of one of two workers under load", _stop)
    await _paused(lab, lab.dose(4, 1), "a handler that blocks the loop of one of two workers", _block)
    await _clock(lab, lab.dose(3, 1))


class _Call:
    """One call, over as many connections as it takes, and every answer that came for it on any of them."""

    def __init__(self, number: int, nonce: str) -> None:
        self.number, self.nonce = number, nonce
        self.events: dict[str, int] = {}
        """What was said beside the answer, by event id: an event that comes again comes with the same id."""
        self.outcomes: set[str] = set()

    def take(self, events: bytes, problems: Problems) -> None:
        for event in events.split(b"\n\n"):
            fields = dict(line.partition(b": ")[::2] for line in event.split(b"\n"))
            if fields.get(b"data"):
                self._hear(fields.get(b"id", b"").decode(), json.loads(fields[b"data"]), problems)

    def _hear(self, id: str, message: Any, problems: Problems) -> None:
        if "method" in message:
            said = message["params"]
            problems.require(said["nonce"] == self.nonce, "an event of another call")
            problems.require(self.events.setdefault(id, said["number"]) == said["number"], "two events with one id")
            return
        problems.require(message["id"] == self.number, f"the answer to another request: {message!r:.100}")
        if "result" in message:
            self.outcomes.add(message["result"]["content"][0]["text"])
        else:
            problems.require(_GONE in message["error"]["message"], f"it ended with {message!r:.160}")
            self.outcomes.add(_GONE)


class _Client(SessionClient):
    async def go_on(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            self._calls += 1
            call = _Call(self._calls, f"{self._lab.random.randrange(2**48):012x}")
            try:
                async with asyncio.timeout(_HANG):
                    await self._follow(call)
            except TimeoutError:
                self._ends["lost"] += 1
                self._problems.add(f"no outcome within {_HANG:g} s")
            else:
                self._judge(call)

    async def _follow(self, call: _Call) -> None:
        arguments = {"nonce": call.nonce, "lines": _LINES}
        said = old(call.number, "tools/call", {"name": "count", "arguments": arguments})
        wire = await self._server.wire()
        try:
            await self._ask(call, wire, post(said, session=self._session), _QUIET)
            if call.outcomes or not call.events:
                return
            started = monotonic()
            while not call.outcomes:
                await self._resume(call, list(call.events)[-1])
            self.waits.append(monotonic() - started)
            await self._read(call, wire, _HANG)  # the first connection was open all the time
            for _ in range(2):
                await self._resume(call, next(iter(call.events)))
        finally:
            await wire.close()

    async def _resume(self, call: _Call, id: str) -> None:
        """What came after this event, at whichever worker."""
        try:
            wire = await self._server.wire()
        except ConnectionError:
            return
        try:
            await self._ask(call, wire, verb("GET", session=self._session, **{"last-event-id": id}), _HANG)
        finally:
            await wire.close()

    async def _ask(self, call: _Call, wire: Wire, request: bytes, quiet: float) -> None:
        wire.write(request)
        try:
            status, headers = await wire.head()
            self._problems.require(status == 200, f"{status} for {request[:4]!r} of a living session")
            if length := int(headers.get("content-length", 0)):
                call.take(_events(await wire.exactly(length), headers), self._problems)
                return
        except (Cut, ConnectionError):
            return
        await self._read(call, wire, quiet)

    async def _read(self, call: _Call, wire: Wire, quiet: float) -> None:
        """To the end, or as long as something comes."""
        try:
            while part := await wire.chunk(quiet):
                call.take(part, self._problems)
        except (TimeoutError, Cut, ConnectionError):
            pass

    def _judge(self, call: _Call) -> None:
        numbers = list(call.events.values())
        self._problems.require(numbers == list(range(len(numbers))), f"a gap or a duplicate: {numbers}")
        self._problems.require(len(call.outcomes) < 2, f"two answers to one request: {sorted(call.outcomes)}")
        if len(call.outcomes) > 1:
            self._ends["double"] += 1
        elif call.outcomes:
            [outcome] = call.outcomes
            self._problems.require(outcome in (call.nonce, _GONE), f"the answer of another call: {outcome!r:.60}")
            self._ends["told that their worker is gone" if outcome == _GONE else "answered"] += 1
        else:
            self._ends["cut before their first event"] += 1  # nothing to come back for, and nothing was told


def _events(body: bytes, headers: dict[str, str]) -> bytes:
    """An answer in one piece as an event."""
    return body if headers.get("content-type", "").startswith("text/event-stream") else b"data: " + body


async def _stop(lab: Lab, server: WebServer) -> None:
    pid = _busiest(server)
    os.kill(pid, signal.SIGSTOP)
    try:
        await asyncio.sleep(_LEASE + lab.random.uniform(0.5, 3.0))
    finally:
        os.kill(pid, signal.SIGCONT)


async def _block(lab: Lab, server: WebServer) -> None:
    assert await server.tool("block", seconds=_LEASE + lab.random.uniform(0.5, 3.0)) == "blocked"


async def _paused(lab: Lab, count: int, check: str, pause: Callable[[Lab, WebServer], Awaitable[None]]) -> None:
    problems, ends = Problems(), Counter[str](double=0, lost=0)
    state = str(lab.folder / f"{pause.__name__}.db")
    async with WebServer(lab, pause.__name__, workers=2, state=state, lease=_LEASE) as server:

        async def pauses() -> None:
            for number in range(count):
                lab.say(f"{number} of {count} pauses")
                await asyncio.sleep(lab.random.uniform(0.3, 1.0))
                await pause(lab, server)

        waits = await run_under_load([_Client(lab, server, problems, ends) for _ in range(_SESSIONS)], pauses)
        await _end(server, problems)
    problems.require(bool(waits), "no stream stood still: nothing was tried")
    told = ", ".join(f"{number:,} {what}" for what, number in ends.items())
    result = f"calls: {told}; the outcome of one that stood still was known after {max(waits or [0]):.1f} s (most)"
    lab.row(check, f"{count} pauses of 1.5 to 4 s, a lease of {_LEASE:g} s, {_SESSIONS} sessions", result, problems)


async def _clock(lab: Lab, count: int) -> None:
    """The wall clock goes back for all processes of the server at once."""
    problems, ends = Problems(), Counter[str](double=0, lost=0)
    clock = lab.folder / "clock"
    clock.write_bytes(struct.pack("d", 0.0))
    options = {"workers": 2, "state": str(lab.folder / "clock.db"), "lease": _LEASE, "clock": str(clock)}
    async with WebServer(lab, "clock", "shifted_clock.py", **options) as server:

        async def kills() -> None:
            for number in range(1, count + 1):
                await asyncio.sleep(lab.random.uniform(0.3, 1.0))
                os.kill(_busiest(server), signal.SIGKILL)
                _set_back(clock, _HOUR * number)
                await asyncio.to_thread(wait_until, lambda: len(find_workers(server)) == 2, _HANG)
                await asyncio.sleep(2 * _LEASE)

        waits = await run_under_load([_Client(lab, server, problems, ends) for _ in range(_SESSIONS)], kills)
        await _end(server, problems)
    problems.require(bool(waits), "no stream was cut: nothing was tried")
    told = ", ".join(f"{number:,} {what}" for what, number in ends.items())
    result = f"calls: {told}; the outcome of one that was cut was known after {max(waits or [0]):.1f} s (most)"
    dose = f"{count} kills, an hour each, a lease of {_LEASE:g} s, {_SESSIONS} sessions"
    lab.row("kill -9 while the clock is set back by an hour", dose, result, problems)


async def _end(server: WebServer, problems: Problems) -> None:
    said = [line for line in server.noise() if not line.startswith("  ")]  # the stack of what blocks
    noise = [line for line in said if not any(words in line for words in _EXPECTED)]
    problems.require(not noise, f"logged: {noise[:3]!r:.300}")
    code, seconds = await server.stop(10.0)
    problems.require(code == 0, f"exit code {code} after {seconds:.1f} s")


def _set_back(clock: Path, seconds: float) -> None:
    """In place: the processes of the server have mapped the file."""
    with open(clock, "r+b") as shift:
        shift.write(struct.pack("d", -seconds))


def _busiest(server: WebServer) -> int:
    """The worker with the most connections: the system decides who accepts one."""
    return max(find_workers(server), key=descriptors)
