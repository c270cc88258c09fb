"""Deadlines for many calls with one timer: a call that ends in time, as almost all do, costs the event loop nothing.

What `asyncio.timeout` does for one block, this does for all that go through a gate: at its deadline a call is
cancelled, and that it was this deadline and nobody else who cancelled it is told apart in the end.
"""

from __future__ import annotations

import asyncio

import msgspec

__all__ = ["Deadline", "Deadlines"]


class Deadline(msgspec.Struct, eq=False):
    """Of one call, in the task that waits for it; `before` is how often that was cancelled by then."""

    task: asyncio.Task[object]
    until: float
    before: int
    expired: bool = False

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

    def begin(self, seconds: float) -> Deadline:
        loop = asyncio.get_running_loop()
        task = asyncio.current_task(loop)
        assert task is not None
        deadline = Deadline(task, loop.time() + seconds, task.cancelling())
        if loop is not self._loop:
            self._loop, self._timer = loop, None
        self._running.add(deadline)
        if self._timer is None or deadline.until < self._timer.when():
            self._set(loop, deadline.until)
        return deadline

    def end(self, deadline: Deadline) -> None:
        """The timer stays where it is: it looks for itself what is left."""
        self._running.discard(deadline)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set(self, loop: asyncio.AbstractEventLoop, when: float) -> None:
        self.close()
        self._timer = loop.call_at(when, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer, now = None, loop.time()
        for deadline in [each for each in self._running if each.until <= now]:
            self._running.discard(deadline)
            deadline.expire()
        if self._running:
            self._set(loop, min(each.until for each in self._running))
