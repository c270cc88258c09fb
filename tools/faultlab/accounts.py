"""What the process of an experiment holds, before and after; and what it does when it has nothing to do."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

from .lab import Lab, Problems
from .processes import children, descriptors, marked, rss_mb

__all__ = ["BUSY", "IDLE", "Account", "cpu_when_idle"]

SHARE = 0.02  # of the RSS that it may grow
IDLE = 2.0  # seconds of doing nothing
_SAMPLES = 40  # of the RSS
BUSY = 0.01  # of them, at most, on the CPU


class Account:
    """What this process holds; `check` compares it with how it was."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._before = self._now()
        self.samples: list[tuple[int, float]] = []
        self.every = 1

    def _now(self) -> dict[str, int]:
        gc.collect()
        ours = (each for each in gc.get_objects() if str(type(each).__module__).startswith("interlock"))
        return {
            "tasks": len(asyncio.all_tasks()),
            "threads": threading.active_count(),
            "descriptors": descriptors(os.getpid()),
            "children": len(children(os.getpid())),
            "marked processes": len(marked(self._lab.token)),
            "objects of interlock": sum(1 for _ in ours),
        }

    async def cycle(self, name: str, visit: Callable[[], Awaitable[Any]], cycles: int, lanes: int) -> float:
        """Visit so often, some at once; gives by how many MB the RSS grew."""
        self.every = max(1, cycles // _SAMPLES)
        numbers = iter(range(cycles))

        async def lane() -> None:
            for number in numbers:
                await visit()
                self.sample(number)
                self._lab.say(f"{name}: {number} of {cycles} connections")

        await asyncio.gather(*(lane() for _ in range(lanes)))
        return self.samples[-1][1] - self.samples[0][1]

    def check_grown(self, grown: float, problems: Problems) -> None:
        problems.require(grown <= SHARE * self.samples[0][1], f"RSS grew by {grown:.2f} MB")

    def sample(self, done: int) -> None:
        if done % self.every == 0:
            gc.collect()
            self.samples.append((done, rss_mb(os.getpid())))

    def check(self, problems: Problems) -> str:
        now = self._now()
        for name, count in now.items():
            problems.require(count <= self._before[name], f"{name}: {self._before[name]} before, {count} after")
        return ", ".join(f"{count} {name}" for name, count in now.items())


async def cpu_when_idle(name: str, problems: Problems) -> str:
    before = time.process_time()
    await asyncio.sleep(IDLE)
    used = time.process_time() - before
    told = f"{name}: {used * 1000:.1f} ms"
    problems.require(used <= IDLE * BUSY, told)
    return told
