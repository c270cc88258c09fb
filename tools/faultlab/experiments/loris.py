"""Peers over HTTP that take their time: to say something, to read something, or to go."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable

from ..frames import call
from ..lab import Lab, Problems
from ..processes import peak_mb, rss_mb
from ..web import WebServer, Wire, messages_in, post

__all__ = ["run"]

_PATIENCE = 2.0  # seconds that this server has for heads, bodies and readers; the defaults are 30 and 60
_LATE = 8.0  # seconds behind that in which everything must be over
_DRIP = 0.1  # seconds between two bytes
_WINDOW = 4096  # bytes that a slow reader's side takes unread
_LONG = 8_000_000  # bytes of an answer: more than the system takes for itself
_UNREAD = 0.7  # MB that the server may hold for one reader: its buffer, its side of the system's is not in its RSS


def run(lab: Lab) -> None:
    asyncio.run(_writers(lab, lab.dose(500, 50)))
    asyncio.run(_late_reader(lab, lab.dose(50_000, 5_000)))
    asyncio.run(_never_reads(lab, lab.dose(60, 20)))


def _impatient(lab: Lab, name: str) -> WebServer:
    timing = {"body": _PATIENCE, "stalled": _PATIENCE, "watch": 0.01}
    return WebServer(lab, name, timing=timing, head=_PATIENCE, unread=_PATIENCE)


async def _canaries(server: WebServer, problems: Problems, over: asyncio.Event) -> float:
    """Good requests meanwhile; the slowest of their answers."""
    slowest = 0.0
    while not over.is_set():
        started = time.monotonic()
        status, _ = await server.ask(post(call(1, "keep", {"nonce": "canary"})))
        problems.require(status == 200, f"a canary got {status}")
        slowest = max(slowest, time.monotonic() - started)
        await asyncio.sleep(0.05)
    return slowest


async def _writers(lab: Lab, count: int) -> None:
    """Nothing at all, a head or a body byte by byte, and the half of a body with nothing behind it."""
    problems, told = Problems(), Counter[str]()
    request = post(call(1, "keep", {"nonce": "slow"}))
    head = request.index(b"\r\n\r\n") + 4
    manners: dict[str, tuple[bytes, Iterable[int]]] = {
        "say nothing": (b"", ()),
        "drip a head": (b"", request[:head]),
        "drip a body": (request[:head], request[head:]),
        "stop in a body": (request[:-40], ()),
        "drip empty lines": (b"", b"\r\n" * 1000),
    }
    async with _impatient(lab, "writers") as server:
        await server.remember()

        async def dawdle(manner: str) -> None:
            first, slowly = manners[manner]
            wire = await server.wire()
            wire.write(first)
            dripping = asyncio.ensure_future(_drip(wire, slowly))
            try:
                answer = await wire.rest(_PATIENCE + _LATE)
                told[f"{manner}: {answer[9:12].decode() or 'closed'}"] += 1
                problems.require(answer[9:12] in (b"", b"408"), f"{manner}: {answer[:80]!r}")
            except TimeoutError:
                problems.add(f"{manner}: still open after {_PATIENCE + _LATE:g} s")
            dripping.cancel()
            await wire.close()

        over = asyncio.Event()
        canaries = asyncio.ensure_future(_canaries(server, problems, over))
        await asyncio.gather(*(dawdle(manner) for manner in manners for _ in range(count // len(manners))))
        over.set()
        slowest = await canaries
        after = await server.back(problems, 10.0)
    ends = ", ".join(f"{many} {what}" for what, many in sorted(told.items()))
    result = f"{ends}; good requests meanwhile in {slowest * 1000:.0f} ms at most; {after}"
    lab.row("slow writers and silent peers", f"{count} connections, {_PATIENCE:g} s of patience", result, problems)


async def _drip(wire: Wire, data: Iterable[int]) -> None:
    try:
        for byte in data:
            wire.write(bytes((byte,)))
            await wire.writer.drain()
            await asyncio.sleep(_DRIP)
    except ConnectionError:
        pass


async def _late_reader(lab: Lab, lines: int) -> None:
    """What was said while nobody read waits with the handler; then all of it comes, in order."""
    problems = Problems()
    heard: list[int] = []
    async with WebServer(lab, "late") as server:
        await server.ask(post(call(1, "chatter", {"lines": 10, "size": 1000})))
        await server.remember()
        wire = await server.wire(window=_WINDOW)
        wire.write(post(call("many", "chatter", {"lines": lines, "size": 1000})))
        await asyncio.sleep(2.0)
        peak = peak_mb(server.pid) - server.rss
        wire.reader._limit = 1 << 20  # from now on it reads as fast as it can
        await wire.head()
        answered = False
        while part := await wire.chunk():
            for message in messages_in(part):
                answered = answered or message.get("id") == "many"
                heard += [message["params"]["number"]] if "params" in message else []
        await wire.close()
        after = await server.back(problems, 4.0)
    problems.require(heard == list(range(lines)), f"{len(heard):,} of {lines:,} events, or not in order")
    problems.require(answered, "no answer at the end")
    problems.require(peak <= _UNREAD * 4, f"RSS rose by {peak:.1f} MB (bound {_UNREAD * 4:g})")
    result = f"{len(heard):,} events in order, then the answer; RSS {peak:+.1f} MB while nobody read; {after}"
    lab.row("a client that reads late", f"{lines:,} events of 1 kB", result, problems)


async def _never_reads(lab: Lab, count: int) -> None:
    """Streams and long answers that nobody takes: cut off in time, and nothing of them is kept."""
    problems = Problems()
    frames = (call(1, "chatter", {"lines": 1_000_000, "size": 1000}), call(1, "fill", {"size": _LONG}))
    async with _impatient(lab, "never") as server:
        await server.tool("fill", size=_LONG)
        await server.remember()
        wires = [await server.wire(window=_WINDOW) for _ in range(count)]
        over = asyncio.Event()
        canaries = asyncio.ensure_future(_canaries(server, problems, over))
        for number, wire in enumerate(wires):
            wire.writer.transport.pause_reading()
            wire.write(post(frames[number % 2]))
        started, highest, open_ones = time.monotonic(), 0.0, count
        while open_ones > 0 and time.monotonic() - started < 2 * _PATIENCE + _LATE:
            await asyncio.sleep(0.1)
            highest = max(highest, rss_mb(server.pid) - server.rss)
            open_ones = (await server.held())["descriptors"] - server.before["descriptors"] - 1
        seconds = time.monotonic() - started
        over.set()
        slowest = await canaries
        for wire in wires:
            wire.reset()
        after = await server.back(problems, 20.0)
    bound = count / 2 * (_UNREAD + _LONG / 1e6) + 20
    problems.require(highest <= bound, f"RSS rose by {highest:.0f} MB (bound {bound:.0f})")
    problems.require(open_ones <= 0, f"{open_ones} connections still there after {seconds:.0f} s")
    result = f"all cut off after {seconds:.1f} s; RSS {highest:+.0f} MB at most (bound {bound:.0f} MB); good requests "
    result += f"meanwhile in {slowest * 1000:.0f} ms at most; {after}"
    lab.row("clients that never read", f"{count} streams and answers of {_LONG // 1_000_000} MB", result, problems)
