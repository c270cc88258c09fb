"""Waiting until nothing happens any more, instead of for a time that is long enough on most days."""

from __future__ import annotations

import asyncio
from typing import Any

__all__ = ["until_idle"]

_QUIET_TURNS = 20  # of the loop in a row, each of which looks at all sockets, without anything to do
_MAX_TURNS = 100_000


async def until_idle() -> None:
    """Until this loop has nothing to do but timers: whatever is sent within this process has arrived and was handled.

    What other threads and processes do is not waited for.
    """
    ready: Any = asyncio.get_running_loop()._ready  # type: ignore[attr-defined] - what else is to be run in this turn
    quiet = 0
    for _ in range(_MAX_TURNS):
        await asyncio.sleep(0)
        quiet = 0 if ready else quiet + 1
        if quiet == _QUIET_TURNS:
            return
    raise AssertionError(f"the loop is still busy after {_MAX_TURNS} turns")
