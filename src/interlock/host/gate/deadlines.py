"""Deadlines for many calls with one timer: a call that ends in time, as almost all do, costs the event loop nothing.

What `asyncio.timeout` does for one block, this does for all that go through a gate: at its deadline a call is
cancelled, and that it was this deadline and nobody else who cancelled it is told apart in the end. It may come early
(`cut`), because the server is gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from math import inf

import msgspec

__all__ = ["Deadline", "Deadlines"]


class Deadline(msgspec.Struct, eq=False):
    """Of one call, in the task that waits for it; `before` is how often that was cancelled by then."""

    task: asyncio.Task[object]
    until: float
    before: int
    server: str = ""
    expired: bool = False
    cut: str = ""
    """Why it came early."""

    def expire(self) -> None:
        self.expired = True
        self.task.cancel()

    def caused(self) -> bool:
        """To be asked once, when the call has ended: was it cancelled by this deadline alone?"""
        return self.expired and self.task.uncancel() <= self.before


class Deadlines:
    def __init__(self) -> None:
        self._running: set[Deadline] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._next = inf

    def begin(self, seconds: float, server: str = "") -> Deadline:
        loop = asyncio.get_running_loop()
        task, until = asyncio.current_task(loop), loop.time() + seconds
        assert task is not None
        deadline = Deadline(task, until, task.cancelling(), server)
        self._running.add(deadline)
        if until < self._next or loop is not self._loop:
            self._set(loop, until)
        return deadline

    def end(self, deadline: Deadline) -> None:
        """The timer stays where it is: it looks for itself what is left."""
        self._running.discard(deadline)

    def at(self, server: str) -> list[Deadline]:
        """Those of all that is being done there now."""
        return [each for each in self._running if each.server == server]

    def cut(self, deadlines: Iterable[Deadline], why: str) -> None:
        """They come now, unless what they are for has ended."""
        for deadline in self._running.intersection(deadlines):
            self._running.discard(deadline)
            deadline.cut = why
            deadline.expire()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._next = inf

    def _set(self, loop: asyncio.AbstractEventLoop, when: float) -> None:
        if loop is self._loop:
            self.close()
        self._loop, self._next = loop, when
        self._timer = loop.call_at(when, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer, self._next, now = None, inf, loop.time()
        for deadline in [each for each in self._running if each.until <= now]:
            self._running.discard(deadline)
            deadline.expire()
        if self._running:
            self._set(loop, min(each.until for each in self._running))
