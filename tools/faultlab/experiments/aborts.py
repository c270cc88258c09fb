"""Connections over HTTP that end where they should not, and requests that are none."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from random import Random

from ..frames import MODERN, call
from ..lab import Lab, Problems
from ..ledger import NOT_SENT, UNKNOWN, Ledger
from ..web import Cut, WebServer, Wire, post, posted

__all__ = ["run"]

_LANES = 16  # connections at once
_GROWTH = 6.0  # MB that the server may have more, when all is over
_ENDS = ("close", "reset", "half-close")
_PIPELINED = 16


def run(lab: Lab) -> None:
    asyncio.run(_requests(lab, lab.dose(8, 1)))
    asyncio.run(_answers(lab, lab.dose(1_000, 100)))
    asyncio.run(_bad(lab, lab.dose(100_000, 5_000)))


async def _lanes(jobs: list[Callable[[], Awaitable[None]]]) -> None:
    left = iter(jobs)

    async def lane() -> None:
        for job in left:
            await job()

    await asyncio.gather(*(lane() for _ in range(_LANES)))


async def _end(wire: Wire, how: str) -> None:
    """The peer's end of the connection; the server closes its own."""
    if how == "reset":
        wire.reset()
        return
    if how == "half-close":
        wire.half_close()
        await wire.rest()
    await wire.close()


async def _requests(lab: Lab, rounds: int) -> None:
    """Cut after every single byte of a request: what did not come whole never runs, the rest at most once."""
    problems, told = Problems(), Counter[str]()
    length = len(post(call(1, "keep", {"nonce": "0" * 12})))
    ledger = Ledger(lab.folder / "aborts", rounds * (length + 1) * len(_ENDS) + 100, lab.random)
    async with WebServer(lab).ledger(ledger.path) as server:

        async def cut(number: int, place: int, how: str) -> None:
            data = post(call(1, "keep", {"nonce": ledger.nonce(number)}))
            ledger.outcomes[number] = NOT_SENT if place < length else UNKNOWN
            wire = await server.wire()
            wire.write(data[:place])
            await wire.writer.drain()
            if number % 2:
                await asyncio.sleep(0)
            await _end(wire, how)
            told[how] += 1

        for number in range(100):
            await cut(number, 0, _ENDS[number % 3])
        await server.remember()
        places = [(place, how) for place in range(length + 1) for how in _ENDS] * rounds
        lab.random.shuffle(places)
        await _lanes([lambda n=n, p=p, h=h: cut(n + 100, p, h) for n, (p, h) in enumerate(places)])
        after = await server.back(problems, _GROWTH)
    entries = ledger.check(problems)
    result = (
        f"{ledger.told(NOT_SENT):,} cut requests never ran, of {ledger.told(UNKNOWN)} whole ones {entries} did; {after}"
    )
    dose = f"{len(places):,} connections: each of {length} bytes, {', '.join(_ENDS)}"
    lab.row("a request cut after every byte", dose, result, problems)


async def _answers(lab: Lab, times: int) -> None:
    """The client goes while its call runs, before its answer ends, or between two events of its stream."""
    problems = Problems()
    kinds = {
        "while it runs": (call(1, "keep", {"nonce": "x", "seconds": 60.0}), 0),
        "in its answer": (call(1, "fill", {"size": 3_000_000}), 100_000),
        "in its stream": (call(1, "chatter", {"lines": 100_000, "size": 1000}), 5_000),
    }
    async with WebServer(lab, "answers", timing={"watch": 0.01}) as server:

        async def leave(kind: str, how: str) -> None:
            frame, amount = kinds[kind]
            wire = await server.wire()
            wire.write(post(frame))
            if amount:
                await asyncio.wait_for(wire.reader.readexactly(amount), 20)
            else:
                await asyncio.sleep(lab.random.uniform(0.0, 0.05))
            if how == "reset":
                wire.reset()
            else:
                await wire.close()

        todo = [(kind, how) for kind in kinds for how in _ENDS[:2]] * (times // 6 + 1)
        await _lanes([lambda k=k, h=h: leave(k, h) for k, h in todo[:60]])
        await asyncio.sleep(0.2)
        await server.remember()
        server.before |= {"requests": 0, "handlers": 0}
        await _lanes([lambda k=k, h=h: leave(k, h) for k, h in todo])
        after = await server.back(problems, _GROWTH * 4)
    lab.row("a client that goes with its answer due", f"{len(todo):,} × {', '.join(kinds)}", after, problems)


def _framed(random: Random) -> tuple[bytes, tuple[int, ...]]:
    """A request that is whole as HTTP and wrong as anything else, and the statuses that may follow."""
    good = call(random.randrange(1000), "keep", {"nonce": "x"})
    kinds: list[Callable[[], tuple[bytes, tuple[int, ...]]]] = [
        lambda: (post(good, host="evil.example"), (403,)),
        lambda: (post(good, origin="http://evil.example"), (403,)),
        lambda: (post(good, content_type="text/plain"), (415,)),
        lambda: (post(good, content_encoding="gzip"), (415,)),
        lambda: (post(good, accept="text/html"), (406,)),
        lambda: (post(good, mcp_name="other"), (400,)),
        lambda: (post(good, mcp_method="tools/list"), (400,)),
        lambda: (post(good, mcp_protocol_version="2099-01-01"), (400,)),
        lambda: (post(good, mcp_session_id="nobody's"), (200,)),  # it brings its envelope: it needs no session
        lambda: (posted(good, {"host": "127.0.0.1", "content-length": str(len(good))}, "PUT /mcp HTTP/1.1"), (405,)),
        lambda: (posted(b"", {"host": "127.0.0.1"}, "OPTIONS /mcp HTTP/1.1"), (405,)),
        lambda: (posted(b"", {"host": "127.0.0.1"}, "GET /nowhere HTTP/1.1"), (404,)),
        lambda: (posted(b"", {"host": "127.0.0.1"}, "DELETE /mcp HTTP/1.1"), (400,)),
        lambda: (_with_body(random.randbytes(random.randint(0, 200))), (400,)),
        lambda: (_with_body(b"[" * random.randint(1, 5000)), (400,)),
        lambda: (_with_body(good[: random.randrange(len(good))]), (400,)),
        lambda: (_with_body(b'{"jsonrpc":"2.0","id":1,"method":"no/such"}'), (400, 404)),
        lambda: (_with_body(json.dumps({"jsonrpc": "2.0", "id": 1, "result": {}}).encode()), (400,)),
    ]
    return random.choice(kinds)()


def _with_body(body: bytes) -> bytes:
    lines = {"host": "127.0.0.1", "content-type": "application/json", "accept": "application/json, text/event-stream"}
    return posted(body, {**lines, "mcp-protocol-version": MODERN, "content-length": str(len(body))})


def _broken(random: Random) -> bytes:
    """Bytes that were a request before something happened to them."""
    data = bytearray(post(call(1, "keep", {"nonce": "x"})))
    for _ in range(random.randint(1, 6)):
        place = random.randrange(len(data))
        data[place : place + random.randint(0, 3)] = random.randbytes(random.randint(0, 4))
    return bytes(data[: random.choice((len(data), random.randrange(1, len(data))))])


async def _bad(lab: Lab, count: int) -> None:
    problems, told, random = Problems(), Counter[int](), lab.random
    slowest = 0.0
    async with WebServer(lab, "bad") as server:

        async def framed() -> None:
            """Several on one connection, one behind the other."""
            asked = [_framed(random) for _ in range(_PIPELINED)]
            wire = await server.wire()
            wire.write(b"".join(data for data, _ in asked))
            try:
                for data, statuses in asked:
                    status, body = await wire.answer()
                    told[status] += 1
                    problems.require(status in statuses, f"{status} for {data[:300]!r}")
                    problems.require(
                        b"Traceback" not in body and b".py" not in body, f"it told too much: {body[:200]!r}"
                    )
            except Cut as cut:
                problems.add(f"{cut}; the first of them was {asked[0][0][:200]!r}")
            await wire.close()

        async def broken() -> None:
            wire = await server.wire()
            wire.write(_broken(random))
            wire.half_close()
            answer = await wire.rest()
            told[int(answer[9:12]) if answer else 0] += 1
            problems.require(not answer.startswith(b"HTTP/1.1 5") or answer[9:12] == b"501", f"{answer[:200]!r}")
            await wire.close()

        async def canary() -> None:
            nonlocal slowest
            started = time.monotonic()
            status, _ = await server.ask(post(call(1, "keep", {"nonce": "canary"})))
            slowest = max(slowest, time.monotonic() - started)
            problems.require(status == 200, f"a canary got {status}")
            lab.say(f"{sum(told.values()):,} of {count:,} requests")

        def jobs(number: int) -> list[Callable[[], Awaitable[None]]]:
            return ([framed] * 3 + [broken] * 16) * (number // (3 * _PIPELINED + 16)) + [canary]

        await _lanes(jobs(count // 20))
        await server.remember()
        for _ in range(20):
            await _lanes(jobs(count // 20))
        after = await server.back(problems, _GROWTH)
    statuses = ", ".join(f"{many:,} × {status or 'closed'}" for status, many in sorted(told.items()))
    result = f"{statuses}; good ones in between answered in {slowest * 1000:.0f} ms at most; {after}"
    lab.row("bad requests", f"{sum(told.values()):,} requests", result, problems)
