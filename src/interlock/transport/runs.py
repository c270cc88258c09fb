"""The requests of the peer that are being worked on, and the tasks that work on them.

Author code runs in a task that nobody else uses meanwhile, never in the reader's: its timeouts and cancellations are
its own. A task costs more than a small handler, so handlers that never wait share one: a worker takes the next
request only if the last one ended within the same turn of the loop and left the task and its context as they were.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context

from ..wire.errors import InternalError
from ..wire.exchange import Work
from ..wire.frames import Id, encode_error

__all__ = ["Runs"]

log = logging.getLogger("interlock.wire")


class Run:
    __slots__ = ("cancellable", "cancelled", "exchange", "id", "reply", "task", "work")

    def __init__(self, id: Id, work: Work, reply: Callable[[bytes | None], None], cancellable: bool) -> None:
        self.id, self.reply, self.cancellable = id, reply, cancellable
        self.work, self.exchange = work
        self.task: asyncio.Task[None] | None = None
        self.cancelled = False


class Runs:
    def __init__(self, loop: asyncio.AbstractEventLoop, on_turn: Callable[[], None]) -> None:
        self._loop = loop
        self._on_turn = on_turn
        self._by_id: dict[Id, Run] = {}
        self._ready: deque[Run] = deque()
        self._workers: set[asyncio.Task[None]] = set()
        self._hiring = False
        self._turn = 0

    def __len__(self) -> int:
        return len(self._by_id)

    def is_full(self, limit: int) -> bool:
        """No room for another. A cancelled run makes room at once, but as many again that never end make none."""
        return len(self._by_id) >= limit or len(self._workers) >= 2 * limit

    def __contains__(self, id: Id) -> bool:
        return id in self._by_id

    def start(self, id: Id, work: Work, reply: Callable[[bytes | None], None], *, cancellable: bool = True) -> None:
        """Begin `work` in the next turn of the loop; `reply` gets its answer, or None when it was cancelled."""
        run = self._by_id[id] = Run(id, work, reply, cancellable)
        self._ready.append(run)
        if not self._hiring:
            self._hiring = True
            self._hire()

    def _hire(self) -> None:
        worker = self._loop.create_task(self._work())
        self._workers.add(worker)
        self._loop.call_soon(self._after_turn)  # right behind the worker's first step

    def _after_turn(self) -> None:
        """The new worker has gone as far as it could; what it left waiting needs another one."""
        self._turn += 1
        if self._ready:
            self._hire()
        else:
            self._hiring = False
        self._on_turn()

    async def _work(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        try:
            await self._take_turns(task)
        finally:
            self._workers.discard(task)

    async def _take_turns(self, task: asyncio.Task[None]) -> None:
        untouched = copy_context()
        turn = self._turn
        while self._ready:
            run = self._ready.popleft()
            if run.cancelled:
                run.work.close()
                run.reply(None)
                continue
            run.task = task
            answer: bytes | None = None
            try:
                answer = await run.work
            except BaseException as error:
                answer = _failed(run, error)
            if self._by_id.get(run.id) is run:
                del self._by_id[run.id]
            run.reply(None if run.cancelled else answer)
            if turn != self._turn or task.cancelling() or not _same(copy_context(), untouched):
                return

    def cancel(self, id: Id) -> bool:
        """Stop the run of that id, which is then forgotten. False: there is none, or it must not be stopped."""
        run = self._by_id.get(id)
        if run is None or not run.cancellable:
            return False
        self._stop(run)
        return True

    def _stop(self, run: Run) -> None:
        del self._by_id[run.id]
        run.cancelled = True
        if run.exchange is not None:
            run.exchange.live = False
        if run.task is not None:
            run.task.cancel()

    def cancel_all(self) -> None:
        for run in list(self._by_id.values()):
            self._stop(run)

    async def settle(self, seconds: float) -> None:
        """Wait for the runs there are, at most so long."""
        deadline = self._loop.time() + seconds
        while self._workers and (left := deadline - self._loop.time()) > 0:
            await asyncio.wait(self._workers, timeout=left)


def _failed(run: Run, error: BaseException) -> bytes | None:
    """No answer to a run that somebody else cancelled; an internal error for all that should not have happened."""
    if run.cancelled and isinstance(error, asyncio.CancelledError):
        return None
    log.error("! the work on request %r failed", run.id, exc_info=error)
    return encode_error(run.id, InternalError("Internal error"))


def _same(one: Context, other: Context) -> bool:
    """Are all variables the same objects? Equality would miss a fresh list, and may be anybody's code."""
    return len(one) == len(other) and all(other.get(variable, one) is value for variable, value in one.items())
