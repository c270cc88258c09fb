"""Two workers at one port with one SQLite file, one of them killed: its streams are read to their end at the other."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections import Counter
from statistics import median
from time import monotonic
from typing import Any

from ..frames import old
from ..lab import Lab, Problems
from ..processes import wait_until
from ..sessions import SessionClient, find_workers, run_under_load
from ..web import Cut, WebServer, Wire, post, verb

__all__ = ["run"]

_SESSIONS = 24
_LINES = 40  # events of a call beside its answer; a call takes about half a second
_LONGEST = 60.0  # seconds for everything: longer is a hang
_HANG = 20.0  # and for one stream; a worker counts as dead after 5
_GONE = b"worker that served this request is gone"
_AWAY = 0.3  # seconds that some take until they come back: more was said meanwhile, perhaps by one who is dead then
_KILLED = "was ended by signal 9"


def run(lab: Lab) -> None:
    asyncio.run(_bounded(lab, lab.dose(6, 2)))


class _Call:
    """One call of a session, over as many connections as it takes."""

    def __init__(self, nonce: str, patience: int = _LINES) -> None:
        self.nonce = nonce
        self._patience = patience  # events after which its reader goes away, for a moment
        self.seen: list[tuple[str, Any]] = []
        """Events that came with an id: what the server said once and for all."""
        self.last: Any = None
        self.over = False

    async def read(self, wire: Wire, headers: dict[str, str]) -> None:
        """To the end of the stream, or as long as it has patience. What was cut in the middle was not seen."""
        if length := int(headers.get("content-length", 0)):  # all that was left of it was there, in one piece
            self._hear(await wire.exactly(length))
        else:
            while part := await wire.chunk(_HANG):
                self._hear(part)
                if len(self.seen) > self._patience:
                    self._patience = _LINES
                    return
        self.over = True

    def _hear(self, events: bytes) -> None:
        for event in events.split(b"\n\n"):
            self._take(dict(line.partition(b": ")[::2] for line in event.split(b"\n")))

    def _take(self, fields: dict[bytes, bytes]) -> None:
        if fields.get(b"data"):
            self.last = json.loads(fields[b"data"])
            if b"id" in fields:
                self.seen.append((fields[b"id"].decode(), self.last))

    def check(self, problems: Problems) -> str:
        """Its own, in order, without a gap or a duplicate; how it ended."""
        said = [message["params"] for _, message in self.seen if "method" in message]
        foreign = sum(params["nonce"] != self.nonce for params in said)
        problems.require(not foreign, f"{foreign} events of another call")
        numbers = [params["number"] for params in said]
        problems.require(numbers == list(range(len(numbers))), f"a gap or a duplicate: {numbers}")
        ids = [int(id.partition("-")[2]) for id, _ in self.seen]
        problems.require(ids == list(range(ids[0], ids[0] + len(ids))), f"ids with a gap or a duplicate: {ids}")
        if "result" in self.last:
            problems.require(len(numbers) == _LINES, f"answered after {len(numbers)} of {_LINES} events")
            text = self.last["result"]["content"][0]["text"]
            problems.require(text == self.nonce, f"the answer of another call: {text!r:.60}")
            return "answered"
        problems.require(_GONE in json.dumps(self.last).encode(), f"it ended with {self.last!r:.160}")
        return "told that their worker is gone"


class _Client(SessionClient):
    async def go_on(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            try:
                await self._call()
            except TimeoutError:
                self._problems.add("a call hangs")

    async def _call(self) -> None:
        self._calls += 1
        random = self._lab.random
        call = _Call(f"{random.randrange(2**48):012x}", random.choice((random.randrange(_LINES), _LINES)))
        said = old(self._calls, "tools/call", {"name": "count", "arguments": {"nonce": call.nonce, "lines": _LINES}})
        await self._once(call, post(said, session=self._session))
        if not call.over and not call.seen:
            self._ends["cut before their first event"] += 1
            return
        if not call.over:
            await self._come_back(call)
        self._ends[call.check(self._problems)] += 1

    async def _come_back(self, call: _Call) -> None:
        """Read on elsewhere; then everything once more: what was said is kept, whoever said it."""
        await asyncio.sleep(self._lab.random.choice((0.0, _AWAY)))
        started = monotonic()
        while not call.over and monotonic() - started < _HANG:
            await self._resume(call, call.seen[-1][0])
        self._problems.require(call.over, "a stream that was cut did not end elsewhere")
        self.waits.append(monotonic() - started)
        again = _Call(call.nonce)
        while not again.over and monotonic() - started < 2 * _HANG:
            again.seen.clear()
            await self._resume(again, call.seen[0][0])
        self._problems.require(again.seen == call.seen[1:], f"{len(call.seen) - 1} events came, {len(again.seen)} kept")
        self._ends["events that were read twice, the same both times"] += len(again.seen)

    async def _resume(self, call: _Call, id: str) -> None:
        await self._once(call, verb("GET", session=self._session, **{"last-event-id": id}))

    async def _once(self, call: _Call, request: bytes) -> None:
        """One connection; the worker behind it may die at any moment."""
        try:
            wire = await self._server.wire()
        except ConnectionError:
            return
        try:
            wire.write(request)
            status, headers = await wire.head()
            if status == 200:
                await call.read(wire, headers)
            else:
                self._problems.add(f"{status} for {request[:4]!r} of a living session")
                call.over = True
        except (Cut, ConnectionError):
            pass
        finally:
            await wire.close()


async def _bounded(lab: Lab, kills: int) -> None:
    async with asyncio.timeout(_LONGEST):
        await _kills(lab, kills)


async def _kills(lab: Lab, kills: int) -> None:
    problems, ends = Problems(), Counter[str]()
    async with WebServer(lab, "workers", workers=2, state=str(lab.folder / "workers.db")) as server:

        async def kill() -> None:
            for number in range(kills):
                lab.say(f"{number} of {kills} kills")
                await asyncio.sleep(lab.random.uniform(0.3, 1.0))
                os.kill(lab.random.choice(find_workers(server)), signal.SIGKILL)
                await _until_two_serve(server)

        waits = await run_under_load([_Client(lab, server, problems, ends) for _ in range(_SESSIONS)], kill)
        noise = [line for line in server.noise() if _KILLED not in line]
        problems.require(not noise, f"logged: {noise[:3]!r:.300}")
        code, seconds = await server.stop(10.0)
        problems.require(code == 0, f"exit code {code} after {seconds:.1f} s")
    problems.require(bool(waits), "no stream was cut: nothing was tried")
    told = ", ".join(f"{count:,} {what}" for what, count in ends.items())
    result = f"calls: {told}; 0 hangs, all {_SESSIONS} sessions live; a cut stream was at its end after "
    result += f"{median(waits or [0]):.1f} s (median), {max(waits or [0]):.1f} s (most)"
    lab.row("kill -9 of one of two workers under load", f"{kills} kills, {_SESSIONS} sessions", result, problems)


async def _until_two_serve(server: WebServer) -> None:
    """The dead one is replaced, and what it left is read elsewhere meanwhile."""
    await asyncio.to_thread(wait_until, lambda: len(find_workers(server)) == 2, _HANG)
