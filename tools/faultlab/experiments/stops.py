"""A server over HTTP is told to stop under load: what began is answered, what was refused never ran."""

from __future__ import annotations

import asyncio
import json
from statistics import median

from ..frames import call, hello, modern
from ..lab import Lab, Problems
from ..ledger import NOT_SENT, OK, UNKNOWN, Ledger
from ..web import Cut, WebServer, Wire, post, verb

__all__ = ["run"]

_CALLERS = 48
_STREAMS = 16
_DRAIN = 5.0
_DEADLINE = _DRAIN + 3.0  # seconds until the process is gone, when every handler ends
_LONGEST = 0.5  # seconds of a call
_PER_ROUND = 20_000  # calls, at most


def run(lab: Lab) -> None:
    asyncio.run(_stops(lab, lab.dose(12, 3)))


class _Round:
    def __init__(self, lab: Lab, server: WebServer, ledger: Ledger, problems: Problems) -> None:
        self.lab, self.server, self.ledger, self.problems = lab, server, ledger, problems
        self.made = 0
        self.refused = 0

    async def caller(self) -> None:
        """One call after the other on one connection, until the server has no more for us."""
        wire = await self.server.wire()
        while self.made < _PER_ROUND:
            number, self.made = self.made, self.made + 1
            self.ledger.outcomes[number] = UNKNOWN
            seconds = self.lab.random.choice((0.0, self.lab.random.uniform(0.0, _LONGEST)))
            try:
                wire.write(post(call(number, "keep", {"nonce": self.ledger.nonce(number), "seconds": seconds})))
                status, body = await wire.answer()
            except (Cut, ConnectionError):
                self.ledger.outcomes[number] = NOT_SENT  # nobody answered: then nobody may have begun it
                break
            except TimeoutError:
                self.problems.add("a call hangs")
                break
            self.outcome(number, status, body)
            if status == 503:
                break
        await wire.close()

    def outcome(self, number: int, status: int, body: bytes) -> None:
        if status == 503:
            self.refused += 1
            self.ledger.outcomes[number] = NOT_SENT
            return
        text = json.loads(body).get("result", {}).get("content", [{}])[0].get("text", "")
        self.problems.require(status == 200 and self.ledger.number(text) == number, f"{status}: {body[:160]!r}")
        self.ledger.outcomes[number] = OK

    async def stream(self, kind: str, ready: asyncio.Semaphore) -> None:
        """Ends with its result, or at least with its end, and not with a cut."""
        wire = await self.server.wire()
        said = b""
        try:
            await _begin(wire, kind)
            ready.release()
            while part := await wire.chunk(30.0):
                said = part
        except (Cut, TimeoutError) as error:
            self.problems.add(f"{kind}: {error!r:.120}")
        self.problems.require(kind == "GET" or b'"result"' in said, f"{kind}: it ended with {said[:120]!r}")
        await wire.close()


async def _begin(wire: Wire, kind: str) -> None:
    if kind == "listen":
        wire.write(post(modern(1, "subscriptions/listen", {"notifications": {"toolsListChanged": True}})))
    else:
        wire.write(post(hello(1)))
        _, headers = await wire.head()
        await wire.reader.readexactly(int(headers["content-length"]))
        wire.write(verb("GET", session=headers["mcp-session-id"]))
    await wire.head()
    await wire.chunk()


async def _stops(lab: Lab, rounds: int) -> None:
    problems, ends = Problems(), list[float]()
    answered = refused = unanswered = 0
    for number in range(rounds):
        lab.say(f"{number} of {rounds} stops")
        ledger = Ledger(lab.folder / f"stops{number}", _PER_ROUND, lab.random)
        async with WebServer(lab, "stops", drain=_DRAIN).ledger(ledger.path) as server:
            one = _Round(lab, server, ledger, problems)
            ready = asyncio.Semaphore(0)
            streams = [asyncio.ensure_future(one.stream(("listen", "GET")[n % 2], ready)) for n in range(_STREAMS)]
            async with asyncio.timeout(20):
                for _ in streams:
                    await ready.acquire()
            callers = [asyncio.ensure_future(one.caller()) for _ in range(_CALLERS)]
            await asyncio.sleep(lab.random.uniform(0.1, 1.0))
            code, seconds = await server.stop(_DEADLINE)
            await asyncio.gather(*callers, *streams)
            problems.require(code == 0, f"exit code {code} after {seconds:.1f} s")
            problems.require(not server.noise(), f"logged: {server.noise()[:3]!r:.300}")
            ends.append(seconds)
        ledger.check(problems)
        answered, refused = answered + ledger.told(OK), refused + one.refused
        unanswered += ledger.told(NOT_SENT) - one.refused
    result = (
        f"{answered:,} calls answered, {refused} refused with 503 and {unanswered} never taken, none of which ran; "
    )
    result += f"{rounds * _STREAMS} streams ended cleanly; exit 0 after {median(ends):.1f} s (median), "
    result += f"{max(ends):.1f} s (most)"
    dose = f"{rounds} stops, {_CALLERS} callers, {_STREAMS} streams"
    lab.row("SIGTERM under load", dose, result, problems)
