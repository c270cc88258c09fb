"""Thousands of idle streams over HTTP: what each costs, that each hears what is its own, and their end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from ..frames import INITIALIZED, hello, modern, old
from ..lab import Lab, Problems
from ..processes import cpu_seconds, rss_mb
from ..web import Cut, WebServer, Wire, messages_in, post, verb

__all__ = ["run"]

_STREAMS = 5_000
_AT_ONCE = 64  # that are being opened
_QUIET = 5.0  # seconds between two comments here; the default is 15
_LISTEN_KB = 30.0  # each, that an idle stream of change notices may cost
_SESSION_KB = 45.0  # each, that a session and its idle stream may cost together
_MORE = 0.1  # of the first crowd's RSS that a second one of the same size may take beyond it
_TELLING = 2.0  # MB of pages that telling a tenth of them of a change takes, at most

Open = Callable[[WebServer, int], Awaitable[Wire]]


def run(lab: Lab) -> None:
    count = lab.dose(_STREAMS, 500)
    asyncio.run(_crowd(lab, count, "streams of change notices", _listen, _LISTEN_KB))
    asyncio.run(_crowd(lab, count, "sessions with a GET stream", _session, _SESSION_KB))


async def _listen(server: WebServer, number: int) -> Wire:
    wire = await server.wire()
    wanted = {"resourceSubscriptions": [f"mem://{number}"]}
    wire.write(post(modern(number, "subscriptions/listen", {"notifications": wanted})))
    await _begun(wire)
    return wire


async def _session(server: WebServer, number: int) -> Wire:
    """On one connection: its requests first, then the stream."""
    wire = await server.wire()
    wire.write(post(hello(1)))
    status, headers = await wire.head()
    await wire.reader.readexactly(int(headers["content-length"]))
    wire.session = id = headers["mcp-session-id"]
    for frame in (INITIALIZED, old(2, "resources/subscribe", {"uri": f"mem://{number}"})):
        wire.write(post(frame, session=id))
        status, body = await wire.answer()
        if status not in (200, 202) or b'"error"' in body:
            raise Cut(f"{status} {body[:100]!r}")
    wire.write(verb("GET", session=id))
    await _begun(wire)
    return wire


async def _begun(wire: Wire) -> None:
    status, _ = await wire.head()
    if status != 200:
        raise Cut(f"a stream was refused with {status}")
    await wire.chunk()  # its acknowledgement, or a comment


async def _open(server: WebServer, count: int, how: Open, problems: Problems) -> list[Wire]:
    wires: list[Wire] = []
    numbers = iter(range(count))

    async def lane() -> None:
        for number in numbers:
            try:
                wire = await how(server, number)
                wire.number = number
                wires.append(wire)
            except (Cut, OSError, TimeoutError) as error:
                problems.add(f"stream {number}: {error!r:.160}")

    await asyncio.gather(*(lane() for _ in range(_AT_ONCE)))
    return sorted(wires, key=lambda wire: wire.number)


async def _leave(server: WebServer, wires: list[Wire], problems: Problems) -> None:
    """Half of them with a goodbye; a session ends when that is said."""
    left = iter(wires)

    async def lane() -> None:
        for wire in left:
            if wire.number % 2:
                wire.reset()
            else:
                await wire.close()
            if wire.session is not None:
                status, _ = await server.ask(verb("DELETE", session=wire.session))
                problems.require(status == 204, f"DELETE was answered with {status}")

    await asyncio.gather(*(lane() for _ in range(_AT_ONCE)))


async def _crowd(lab: Lab, count: int, what: str, how: Open, most_kb: float) -> None:
    problems = Problems()
    room = count + 200
    async with WebServer(lab, "crowd", in_flight=room, connections=room, timing={"quiet": _QUIET}) as server:
        await _leave(server, await _open(server, 50, how, problems), problems)
        await server.remember()
        wires = await _open(server, count, how, problems)
        taken = rss_mb(server.pid) - server.rss
        each = taken * 1000 / count
        problems.require(each <= most_kb, f"{each:.1f} kB each (bound {most_kb:g})")
        before = cpu_seconds(server.pid)
        comments = sum(await asyncio.gather(*(_comment(wire) for wire in wires)))
        cpu = cpu_seconds(server.pid) - before
        problems.require(comments == len(wires), f"{len(wires) - comments} streams were silent for {3 * _QUIET:g} s")
        told, slowest = await _changes(server, lab, wires, problems)
        await _leave(server, wires, problems)
        await server.back(problems, taken + _TELLING)
        second = await _open(server, count, how, problems)
        again = rss_mb(server.pid) - server.rss
        problems.require(
            again <= (1 + _MORE) * taken + _TELLING, f"a second crowd takes {again:.1f} MB, not {taken:.1f}"
        )
        await _leave(server, second, problems)
        after = await server.back(problems, taken + _TELLING)
    result = f"{len(wires):,} open, {each:.1f} kB of RSS each; every one had its comment, for {cpu:.2f} s of CPU time; "
    result += (
        f"{told:,} were told of a change, each its own and nobody else's, the last after {slowest * 1000:.0f} ms; "
    )
    result += (
        f"a second crowd takes {again:.0f} MB beside {taken:.0f} MB; when it has gone: {after.removeprefix('then ')}"
    )
    lab.row(f"idle {what}", f"{count:,} streams", result, problems)


async def _comment(wire: Wire) -> bool:
    try:
        return (await wire.chunk(3 * _QUIET)).startswith(b":")
    except (Cut, TimeoutError):
        return False


async def _changes(server: WebServer, lab: Lab, wires: list[Wire], problems: Problems) -> tuple[int, float]:
    """Some of them are told; the others must hear nothing but comments."""
    chosen = set(lab.random.sample(range(len(wires)), len(wires) // 10))
    started = time.monotonic()
    await server.tool("change", names=[str(number) for number in chosen])
    slowest = 0.0

    async def listen(number: int, wire: Wire) -> list[str]:
        """Until its own change has come; those who are not told wait as long as the slowest of the others."""
        nonlocal slowest
        heard: list[str] = []
        try:
            while number not in chosen or not heard:
                part = await wire.chunk(_QUIET + 5.0 if number in chosen else 1.0)
                heard += [message["params"]["uri"] for message in messages_in(part)]
        except TimeoutError:
            pass
        except Cut as cut:
            problems.add(str(cut))
        if heard:
            slowest = max(slowest, time.monotonic() - started)
        return heard

    heard = await asyncio.gather(*(listen(number, wire) for number, wire in enumerate(wires)))
    wrong = sum(uris != ([f"mem://{number}"] if number in chosen else []) for number, uris in enumerate(heard))
    problems.require(not wrong, f"{wrong} streams heard something else than their own changes")
    return len(chosen), slowest
