"""Two processes with one SQLite file, one of them killed: what was acknowledged is there, once, where it belongs."""

from __future__ import annotations

import asyncio
import os
import signal
from statistics import median
from time import monotonic

from interlock.state.sqlite.store import SQLiteStore

from ..lab import Lab, Problems

__all__ = ["run"]

_STREAMS = 12
_TASKS = 8  # of a process, each with one append under way (servers/store.py)
_HANG = 20.0


def run(lab: Lab) -> None:
    asyncio.run(_kills(lab, lab.dose(25, 4)))


class _Process:
    """One that appends, and what it was promised."""

    def __init__(self, lab: Lab, name: str) -> None:
        self._lab, self.name = lab, name
        self.promised: list[tuple[int, str]] = []

    async def start(self) -> _Process:
        args = self._lab.plain("store.py", str(self._lab.folder / "store.db"), self.name, str(_STREAMS))
        env = {**os.environ, **self._lab.marks("store")}
        self._process = await asyncio.create_subprocess_exec(*args, stdout=asyncio.subprocess.PIPE, env=env)
        self._reading = asyncio.ensure_future(self._read())
        return self

    async def _read(self) -> None:
        assert self._process.stdout is not None
        while (line := await self._process.stdout.readline()).endswith(b"\n"):
            id, _, data = line.decode().rstrip().partition(" ")
            self.promised.append((int(id), data))

    async def more(self, count: int) -> float:
        """Wait for so many further promises; how long the first of them took."""
        before, started = len(self.promised), monotonic()
        first = 0.0
        async with asyncio.timeout(_HANG):
            while len(self.promised) < before + count:
                await asyncio.sleep(0.001)
                first = first or (monotonic() - started if len(self.promised) > before else 0.0)
        return first

    async def kill(self) -> None:
        os.kill(self._process.pid, signal.SIGKILL)
        await self._process.wait()
        await self._reading


class _Follower:
    """Reads one stream as it grows."""

    def __init__(self, store: SQLiteStore, stream: str, problems: Problems) -> None:
        self._store, self.stream, self._problems = store, stream, problems
        self.got: list[tuple[int, str]] = []

    async def follow(self) -> None:
        while True:
            if await self._store.wait(self.stream, self._last, seconds=0.2):
                await self.read()

    @property
    def _last(self) -> int:
        return self.got[-1][0] if self.got else 0

    async def read(self) -> None:
        while events := await self._store.read(self.stream, self._last):
            self.got += [(event.id, event.data.decode()) for event in events]

    def check(self, promised: set[tuple[int, str]]) -> int:
        """All that was promised for it, in order, without a gap, nothing of another; how many were on the way."""
        ids = [id for id, _ in self.got]
        self._problems.require(ids == list(range(1, len(ids) + 1)), f"{self.stream}: a gap or a duplicate")
        self._problems.require(len({data for _, data in self.got}) == len(ids), f"{self.stream}: an event came twice")
        foreign = sum(not data.startswith(f"{self.stream}/") for _, data in self.got)
        self._problems.require(not foreign, f"{self.stream}: {foreign} events of another stream")
        lost = promised - set(self.got)
        self._problems.require(not lost, f"{self.stream}: {len(lost)} acknowledged events are lost: {list(lost)[:2]}")
        return len(self.got) - len(promised)


async def _kills(lab: Lab, kills: int) -> None:
    problems, waits = Problems(), list[float]()
    store = SQLiteStore(lab.folder / "store.db")
    followers = [_Follower(store, f"s{number}", problems) for number in range(_STREAMS)]
    following = [asyncio.ensure_future(follower.follow()) for follower in followers]
    running = [await _Process(lab, f"p{number}").start() for number in range(2)]
    everybody = list(running)
    for process in running:
        await process.more(1)
    for number in range(kills):
        lab.say(f"{number} of {kills} kills")
        await asyncio.sleep(lab.random.uniform(0.01, 0.3))
        victim = lab.random.randrange(2)
        await running[victim].kill()
        waits.append(await running[1 - victim].more(50))
        running[victim] = await _Process(lab, f"p{number + 2}").start()
        everybody.append(running[victim])
        await running[victim].more(1)
    for process in running:
        await process.kill()
    for follower, task in zip(followers, following, strict=True):
        task.cancel()
        await follower.read()
    await store.close()
    promised = [promise for process in everybody for promise in process.promised]
    under_way = sum(
        follower.check({each for each in promised if each[1].startswith(f"{follower.stream}/")})
        for follower in followers
    )
    most = _TASKS * len(everybody)
    problems.require(under_way <= most, f"{under_way} events that nobody was told of (at most {most} were under way)")
    result = f"{len(promised):,} acknowledged events, 0 hangs; the other process went on after "
    result += f"{median(waits) * 1000:.0f} ms "
    result += f"(median), {max(waits) * 1000:.0f} ms (most); {under_way} events were stored as their writer died"
    dose = f"{kills} kills, {_STREAMS} streams, 2 processes"
    lab.row("SIGKILL of one of two under load", dose, result, problems)
