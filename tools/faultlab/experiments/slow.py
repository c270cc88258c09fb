"""Peers that do not read: what waits for them is bounded, and nothing of it is lost while there is hope."""

from __future__ import annotations

import asyncio
import json
import time

from interlock import Client
from interlock.wire.errors import CallTimeout, ConnectionEnded
from interlock.wire.limits import DEFAULT_LIMITS, Limits

from ..frames import call
from ..lab import Lab, Problems
from ..pipe import PipedServer
from ..processes import end_marked, marked, peak_mb, rss_mb

__all__ = ["run"]

_CALLS = 10_000
_SIZE = 10_000  # bytes of an answer
_PAUSE = 1.0  # seconds without reading, once the server takes nothing more
_SILENCE = 20.0
_NARROW = 1_000_000  # bytes that may stay unread, for the peer that never reads
_ENDED = 10.0  # seconds for a server to end that connection
_SLACK = 1.25  # a buffer may be that much bigger than what is in it


def run(lab: Lab) -> None:
    _answers(lab, lab.dose(_CALLS, _CALLS))
    _notices(lab, lab.dose(50_000, 10_000))
    _never(lab)
    asyncio.run(_deaf(lab, 500, at_once=True))
    asyncio.run(_deaf(lab, 500, at_once=False))


def _stuff(server: PipedServer) -> float:
    """Write without reading until all is taken or nothing more is; then wait a while. Gives the peak RSS."""
    moved, left = time.monotonic(), server.unsent
    while server.unsent and not server.over and time.monotonic() - moved < _PAUSE:
        server.turn(0.2, read=False)
        if server.unsent != left:
            moved, left = time.monotonic(), server.unsent
    time.sleep(_PAUSE)
    return peak_mb(server.pid)


def _answers(lab: Lab, calls: int) -> None:
    problems = Problems()
    bound = DEFAULT_LIMITS.outbound_bytes / 1e6 * _SLACK
    with PipedServer(lab.served("plain.py"), lab.marks("server"), lab.folder / "stderr") as server:
        server.ask(call("first", "fill", {"size": _SIZE}))
        base = rss_mb(server.pid)
        for number in range(calls):
            server.send(call(number, "fill", {"size": _SIZE}))
        peak = _stuff(server) - base
        untaken = server.unsent
        good = _collect(server, calls, problems)
        after = rss_mb(server.pid) - base
        problems.require(server.close() == 0, "the server did not exit with 0")
    problems.require(peak <= bound, f"RSS rose by {peak:.0f} MB (bound {bound:.0f})")
    problems.require(good == calls, f"{calls - good:,} answers missing")
    result = f"{good:,} answers arrived; RSS {peak:+.0f} MB while nobody read (bound {bound:.0f} MB), "
    result += f"{after:+.0f} MB after; {untaken:,} bytes of the requests were not taken meanwhile"
    lab.row("a peer that reads late, answers", f"{calls:,} answers of {_SIZE // 1000} kB", result, problems)


def _collect(server: PipedServer, calls: int, problems: Problems) -> int:
    """Read until every call has its answer, or nothing comes any more."""
    good: set[int] = set()
    heard = time.monotonic()
    while len(good) < calls and not server.over and time.monotonic() - heard < _SILENCE:
        for line in server.turn(1.0):
            heard = time.monotonic()
            frame = json.loads(line)
            if len(frame.get("result", {}).get("content", [{}])[0].get("text", "")) == _SIZE:
                problems.require(frame["id"] not in good, f"{frame['id']} was answered twice")
                good.add(frame["id"])
            else:
                problems.add(f"not the answer: {line[:160]!r}")
    return len(good)


def _notices(lab: Lab, lines: int) -> None:
    """Notifications of one call: the handler waits for the peer."""
    problems = Problems()
    bound = DEFAULT_LIMITS.pressure_bytes / 1e6 * 4
    heard: list[int] = []
    done = False
    with PipedServer(lab.served("plain.py"), lab.marks("server"), lab.folder / "stderr") as server:
        server.ask(call("first", "chatter", {"lines": 10, "size": 1000}))
        base = rss_mb(server.pid)
        server.send(call("many", "chatter", {"lines": lines, "size": 1000}))
        peak = _stuff(server) - base
        last = time.monotonic()
        while not done and not server.over and time.monotonic() - last < _SILENCE:
            for line in server.turn(1.0):
                last = time.monotonic()
                frame = json.loads(line)
                done = done or frame.get("id") == "many"
                if frame.get("method") == "notifications/lab":
                    heard.append(frame["params"]["number"])
    problems.require(heard == list(range(lines)), f"{len(heard):,} of {lines:,} messages, or not in order")
    problems.require(done, "no answer at the end")
    problems.require(peak <= bound, f"RSS rose by {peak:.1f} MB (bound {bound:.1f})")
    result = f"{len(heard):,} messages in order, then the answer; RSS {peak:+.1f} MB while nobody read "
    result += f"(bound {bound:.1f} MB)"
    lab.row("a peer that reads late, notifications", f"{lines:,} messages of 1 kB", result, problems)


def _never(lab: Lab) -> None:
    problems = Problems()
    bound = _NARROW / 1e6 * _SLACK + 4
    args = lab.plain("narrow.py", str(_NARROW))
    with PipedServer(args, lab.marks("server"), lab.folder / "stderr") as server:
        server.ask(call("first", "fill", {"size": _SIZE}))
        base = rss_mb(server.pid)
        started = time.monotonic()
        highest = base
        for number in range(_CALLS):
            server.send(call(number, "fill", {"size": _SIZE}))
        while server.alive and time.monotonic() - started < _ENDED:
            server.turn(0.02, read=False)
            highest = max(highest, peak_mb(server.pid))
            if server.over:
                time.sleep(0.02)
        seconds = time.monotonic() - started
        ended = not server.alive
        problems.require(ended, f"the connection still stands after {_ENDED:g} s")
        code = server.close()
        errors = server.errors()
    rose = highest - base
    problems.require(rose <= bound, f"RSS rose by {rose:.1f} MB (bound {bound:.1f})")
    problems.require("Traceback" not in errors, f"stderr: {errors[-200:]!r}")
    end = f"the server ended the connection and exited with {code} after {seconds:.1f} s" if ended else "no end"
    result = f"{end}; RSS {rose:+.1f} MB"
    lab.row("a peer that never reads", f"bound of {_NARROW // 1000:,} kB unread", result, problems)


async def _deaf(lab: Lab, calls: int, *, at_once: bool) -> None:
    """Our Client's calls to a server that reads nothing.

    At once, they reach the bound while they are sent, and the later ones start the server anew. One turn after the
    other, the pipe takes 64 KiB and what waits stays below the bound, until the cancellations after their deadlines.
    """
    problems = Problems()
    client = Client(lab.command(lab.plain("deaf.py"), patience=0.5), limits=Limits(outbound_bytes=100_000))
    await client.open()
    calling: list[asyncio.Future[object]] = []
    for _ in range(calls):
        calling.append(asyncio.ensure_future(client.call_tool("echo", {"text": "x" * 150}, timeout=0.5)))
        if not at_once:
            await asyncio.sleep(0)
    ends = await asyncio.wait_for(asyncio.gather(*calling, return_exceptions=True), _SILENCE)
    timed_out = sum(isinstance(end, CallTimeout) for end in ends)
    told = sum(isinstance(end, ConnectionEnded) for end in ends)
    problems.require(timed_out + told == calls, f"{calls - timed_out - told} calls ended otherwise")
    started = time.monotonic()
    await client.close()
    seconds = time.monotonic() - started
    problems.require(not marked(lab.token), f"{end_marked(lab.token)} servers still there after close()")
    result = f"{timed_out} timed out, {told} told that the connection ended; close() took {seconds:.1f} s"
    when = "at once" if at_once else "one per turn"
    lab.row(f"our Client and a server that never reads, {when}", f"{calls} calls, a bound of 100 kB", result, problems)
