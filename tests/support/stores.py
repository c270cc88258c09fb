"""Stores for tests: each kind, on a clock that only moves when told, closed at the end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from interlock.state.memory import MemoryStore
from interlock.state.sqlite.store import SQLiteStore
from interlock.state.store import Bounds, State
from support.idle import until_idle

__all__ = ["FOREVER", "KINDS", "Clock", "make", "opened", "until_waiting"]

KINDS = ("memory", "sqlite")
FOREVER = float("inf")


class Clock:
    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def make(kind: str, folder: Path, clock: Clock, **bounds: Any) -> State:
    if kind == "memory":
        return MemoryStore(Bounds(**bounds), clock=clock)
    return SQLiteStore(folder / "store.db", Bounds(**bounds), clock=clock)


@asynccontextmanager
async def opened(kind: str, folder: Path, clock: Clock | None = None, **bounds: Any) -> AsyncIterator[State]:
    store = make(kind, folder, clock or Clock(), **bounds)
    try:
        yield store
    finally:
        await store.close()


async def until_waiting(store: State) -> None:
    """Until everything that began to wait for a stream of it has looked once, and found nothing."""
    await until_idle()  # they have asked for their look
    await store.last("")  # looks are taken in their order
    await until_idle()
