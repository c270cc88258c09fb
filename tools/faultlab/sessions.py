"""Sessions over HTTP that call without a pause while something happens to the workers of their server."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

from .frames import INITIALIZED, hello
from .lab import Lab, Problems
from .processes import children
from .web import WebServer, post

__all__ = ["SessionClient", "find_workers", "run_under_load"]


class SessionClient(ABC):
    """One session and its calls, one after the other."""

    def __init__(self, lab: Lab, server: WebServer, problems: Problems, ends: Counter[str]) -> None:
        self._lab, self._server, self._problems, self._ends = lab, server, problems, ends
        self._calls = 0
        self.waits: list[float] = []
        """Seconds from the last event of a stream that was cut or stood still to the outcome of its call."""

    async def open(self) -> None:
        wire = await self._server.wire()
        wire.write(post(hello(1)))
        _, headers = await wire.head()
        await wire.close()
        self._session = headers["mcp-session-id"]
        status, _ = await self._server.ask(post(INITIALIZED, session=self._session))
        self._problems.require(status == 202, f"initialized: {status}")

    @abstractmethod
    async def go_on(self, stop: asyncio.Event) -> None:
        """Call until the event is set."""


async def run_under_load(clients: Sequence[SessionClient], fault: Callable[[], Awaitable[None]]) -> list[float]:
    """Keep all of them calling while `fault` runs. Returns their waits."""
    await asyncio.gather(*(client.open() for client in clients))
    stop = asyncio.Event()
    running = [asyncio.ensure_future(client.go_on(stop)) for client in clients]
    await fault()
    stop.set()
    await asyncio.gather(*running)
    return [wait for client in clients for wait in client.waits]


def find_workers(server: WebServer) -> list[int]:
    """The process ids of the workers that live."""
    return [pid for pid, state in children(server.pid).items() if state != "Z"]
