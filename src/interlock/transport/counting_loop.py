"""The loop of `run`: it counts the tasks that are made on it, and the looks at its clock.

A run that asks may have made tasks that ask, too, or fail, and a timeout around it may be over: so it waits for some
turns of the loop. One since whose beginning no task was made and nobody looked at the clock, as every timeout does when
it begins, has nothing to wait for (revisions/replay.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

__all__ = ["counting"]


def counting(kind: type[asyncio.AbstractEventLoop]) -> Callable[[], asyncio.AbstractEventLoop]:
    """A loop of this kind that counts."""
    make: Callable[..., asyncio.Task[Any]] = kind.create_task
    look: Callable[[Any], float] = kind.time

    def create_task(self: Any, coro: Any, **named: Any) -> asyncio.Task[Any]:
        self.uses += 1
        return make(self, coro, **named)

    def time(self: Any) -> float:
        self.uses += 1
        return look(self)

    return type("CountingLoop", (kind,), {"create_task": create_task, "time": time, "uses": 0})
