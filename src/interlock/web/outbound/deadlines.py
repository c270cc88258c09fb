"""Deadlines that stand still while a person is asked.

How long a server may take says nothing about how long a user needs to log in. Whoever has a deadline around a request
says how it is moved; who then has to wait for something that is not the server moves them all, and back again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar

__all__ = ["movable", "movable_timeout", "paused"]

_movers: ContextVar[tuple[Callable[[float], None], ...]] = ContextVar("interlock deadlines", default=())


@contextmanager
def movable(move: Callable[[float], None]) -> Generator[None]:
    """Within it, and in tasks that are started within it, this deadline can be moved by so many seconds."""
    before = _movers.set((*_movers.get(), move))
    try:
        yield
    finally:
        _movers.reset(before)


@asynccontextmanager
async def movable_timeout(seconds: float) -> AsyncGenerator[asyncio.Timeout]:
    """Like `asyncio.timeout`, and it can be moved."""
    async with asyncio.timeout(seconds) as deadline:

        def move(by: float) -> None:
            when = deadline.when()
            if when is not None and not deadline.expired():
                deadline.reschedule(when + by)

        with movable(move):
            yield deadline


@contextmanager
def paused(most: float) -> Generator[None]:
    """Whatever is done here is not the server's time; `most` seconds bound it, whoever does it."""
    loop, movers = asyncio.get_running_loop(), _movers.get()
    begun = loop.time()
    for move in movers:
        move(most)
    try:
        yield
    finally:
        left = most - (loop.time() - begun)
        for move in movers:
            move(-left)
