"""Threads for handlers that are plain functions: a bounded number, started when needed, never in the way of an exit.

The standard library's pool joins its threads when the interpreter ends, so one stuck handler would keep a server alive
that was told to stop. These are daemons: what they still do is lost with the process, as it would be with a kill.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextvars import Context, copy_context
from queue import SimpleQueue
from typing import Any, TypeVar

__all__ = ["Threads"]

T = TypeVar("T")


class _Job:
    __slots__ = ("call", "context", "future", "loop")

    def __init__(self, call: Callable[[], Any], loop: asyncio.AbstractEventLoop, context: Context) -> None:
        self.call, self.loop, self.context = call, loop, context
        self.future: asyncio.Future[Any] = loop.create_future()

    def run(self) -> None:
        """In the thread: work, then hand the outcome to the loop. What was cancelled while it waited never starts."""
        if self.future.cancelled():
            return
        settle: Callable[[Any], None] = self._give
        outcome: Any
        try:
            outcome = self.context.run(self.call)
        except BaseException as error:
            settle, outcome = self._fail, error
        try:
            self.loop.call_soon_threadsafe(settle, outcome)
        except RuntimeError:
            pass  # the loop is closed: nobody waits any more

    def forget(self, future: asyncio.Future[Any]) -> None:
        if future.cancelled():
            self.call = _nothing

    def _give(self, value: Any) -> None:
        if not self.future.done():
            self.future.set_result(value)

    def _fail(self, error: BaseException) -> None:
        if not self.future.done():
            # A future refuses StopIteration, and GeneratorExit would close the coroutines that wait for it; the others
            # reach the awaiting task as they are.
            odd = isinstance(error, StopIteration | GeneratorExit)
            self.future.set_exception(RuntimeError(repr(error)) if odd else error)


def _nothing() -> None: ...


class Threads:
    """At most `size` at a time; further calls wait their turn."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._started = 0
        self._idle = threading.Semaphore(0)

    async def run(self, call: Callable[[], T]) -> T:
        """Call it in a thread, in the caller's context. Cancelling stops the waiting, not the thread."""
        job = _Job(call, asyncio.get_running_loop(), copy_context())
        job.future.add_done_callback(job.forget)  # who cancels what still waits frees its arguments
        self._jobs.put(job)
        if not self._idle.acquire(blocking=False) and self._started < self._size:
            self._started += 1
            threading.Thread(target=self._work, name=f"interlock-handler-{self._started}", daemon=True).start()
        return await job.future

    def _work(self) -> None:
        while True:
            self._jobs.get().run()
            self._idle.release()
