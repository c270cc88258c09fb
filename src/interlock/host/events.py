"""What happens in a host, for whoever wants to follow it: states of servers, changes of the catalogue, notices.

Nobody who listens slowly holds anything up: each has a bounded line of what he did not take yet, and beyond it the
oldest goes and is counted.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import deque
from collections.abc import Callable
from types import TracebackType

import msgspec

from ..wire.errors import LocalError
from .servers.managed_server import MemberChange
from .user import Notice

__all__ = ["CatalogueChange", "Event", "Events", "Following", "OnEvent"]

log = logging.getLogger("interlock.host")
MOST_WAITING = 1_000  # events that one follower has not taken yet
MOST_FOLLOWERS = 100
_LOGGED = 10  # failures of one listener


class CatalogueChange(msgspec.Struct, frozen=True):
    """What this server offers is something else now. `version` is the one of the whole catalogue."""

    server: str
    version: int


Event = MemberChange | CatalogueChange | Notice
OnEvent = Callable[[Event], None]


class Events:
    """Told once, heard by all who follow. `on_event` is called at once and must come back at once."""

    def __init__(self, on_event: OnEvent | None = None) -> None:
        if on_event is not None and (not callable(on_event) or inspect.iscoroutinefunction(on_event)):
            raise LocalError("on_event= is told and not waited for: give a plain function")
        self._on_event = on_event
        self._following: set[Following] = set()
        self._failures = 0
        self._closed = False

    def tell(self, event: Event) -> None:
        for each in [*self._following]:
            each.put(event)
        if self._on_event is None:
            return
        try:
            self._on_event(event)
        except Exception:
            self._failures += 1
            if self._failures <= _LOGGED:
                log.exception("! on_event failed")

    def follow(self) -> Following:
        """From now on, as an async iterator; it ends with the host, or with `close`. Of a host that was closed nothing
        comes any more: it ends at once."""
        if len(self._following) >= MOST_FOLLOWERS:
            raise LocalError(f"{MOST_FOLLOWERS} follow this host already: close those that are not used")
        following = Following(self._following.discard)
        if self._closed:
            following.close()
        else:
            self._following.add(following)
        return following

    def open(self) -> None:
        """The host begins, or begins again."""
        self._closed = False

    def close(self) -> None:
        self._closed = True
        for each in [*self._following]:
            each.close()


class Following:
    """An async iterator of events, and a context manager that ends it."""

    def __init__(self, over: Callable[[Following], None]) -> None:
        self._over = over
        self._waiting: deque[Event] = deque()
        self._stirred = asyncio.Event()
        self._closed = False
        self.missed = 0
        """How many went because they were not taken in time."""

    def put(self, event: Event) -> None:
        if len(self._waiting) >= MOST_WAITING:
            self._waiting.popleft()
            self.missed += 1
        self._waiting.append(event)
        self._stirred.set()

    def close(self) -> None:
        """What waits can still be taken."""
        self._closed = True
        self._stirred.set()
        self._over(self)

    def __aiter__(self) -> Following:
        return self

    async def __anext__(self) -> Event:
        while not self._waiting:
            if self._closed:
                raise StopAsyncIteration
            self._stirred.clear()
            await self._stirred.wait()
        return self._waiting.popleft()

    def __enter__(self) -> Following:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
