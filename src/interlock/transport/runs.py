"""The requests of the peer that are being worked on, and the tasks that work on them.

A request is begun at once, where it was read, and most handlers end right there: they never wait, so they need no
turn of the loop. All the same author code runs in a task that nobody else uses meanwhile, never in the reader's: its
timeouts and cancellations are its own. If the handler waits, that task goes on with it. If it ended and left the task
and its context as they were, the next request may begin in the same one.

What comes takes effect in the order it came: who begins behind a cancellation begins behind its effect.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from asyncio import isfuture
from asyncio.tasks import _enter_task, _leave_task  # pyright: ignore - public to "Extending asyncio" in its docs
from collections.abc import Callable, Coroutine, Generator
from contextvars import copy_context
from sys import getrefcount
from typing import Any, cast
from weakref import getweakrefcount

from msgspec import Struct

from ..wire.errors import InternalError
from ..wire.exchange import Silenced, Work
from ..wire.frames import Id, encode_error

__all__ = ["Runs", "Reply", "task_of"]

log = logging.getLogger("interlock.wire")
_NESTED = 8  # runs begun inside each other (a handler that calls a server in this process); deeper ones take turns
Reply = Callable[[Id | None, bytes | None], None]
"""Takes the id of a request and its answer, or None where none may be sent."""
_NOTHING_YET: Any = object()
_nesting = threading.local()
# Python 3.11 has no such function in C, but the table behind it: looked up once per request, that counts.
task_of: Callable[[asyncio.AbstractEventLoop], asyncio.Task[Any] | None] = (
    asyncio.current_task if sys.version_info >= (3, 12) else cast(Any, asyncio.tasks)._current_tasks.get
)


class Run(Struct, eq=False):
    id: Id | None
    work: Coroutine[Any, Any, Any]
    exchange: Silenced | None
    reply: Reply
    cancellable: bool = True
    shift: Any = None
    """The `_Shift` it was begun in."""
    cancelled: bool = False


class Runs:
    """All that run on one connection, at most `limit` at once."""

    def __init__(self, loop: asyncio.AbstractEventLoop, limit: int) -> None:
        self.loop = loop
        self._limit = limit
        self.context = copy_context()
        """What every request finds: the context in which the connection was made."""
        self.by_id: dict[Id | None, Run] = {}
        self._shifts: set[_Shift] = set()
        self._spare: _Shift | None = None
        self._quiet: set[Run] = set()
        self._ended = False
        self.behind = False
        """Has something been cancelled in this turn? Then what comes behind it takes the next one."""

    def start(self, id: Id, work: Work, reply: Reply, cancellable: bool = True) -> bool:
        """Begin `work` now; `reply` gets its answer, now or later, or None when it was cancelled.

        False: there is no room, nothing was begun. A cancelled run makes room at once, but as many again that never
        end make none. What cannot be cancelled cannot be refused either.
        """
        if cancellable and len(self._shifts) >= self._limit and self._is_full():
            return False
        run = self.by_id[id] = Run(id, work[0], work[1], reply, cancellable)
        self._begin(run)
        return True

    def hear(self, work: Coroutine[Any, Any, None]) -> bool:
        """Begin what nobody is answered for: it is not waited for, only cancelled with all others."""
        if len(self._quiet) >= self._limit:
            return False
        run = Run(None, work, None, self._heard)
        self._quiet.add(run)
        self._begin(run)
        return True

    def _begin(self, run: Run) -> None:
        shift, self._spare = self._spare, None  # taken: what begins inside of this one needs another
        if shift is None:
            shift = _Shift(self)
            self._shifts.add(shift)
        if not shift.begin(run):
            return
        if self._spare is None and not self._ended:  # one is enough: most requests end before the next one comes
            self._spare = shift
        else:
            shift.end()

    @property
    def idle(self) -> bool:
        """Does nothing run that was asked for or heard?"""
        return not self.by_id and not self._quiet

    def _is_full(self) -> bool:
        unended = len(self._shifts) - (self._spare is not None) - len(self._quiet)
        return len(self.by_id) >= self._limit or unended >= 2 * self._limit

    def over(self, run: Run, answer: bytes | None) -> None:
        if self.by_id.get(run.id) is run:
            del self.by_id[run.id]
        elif run.id is None:
            self._quiet.discard(run)
        run.reply(run.id, None if run.cancelled else answer)

    def _heard(self, id: Id | None, answer: bytes | None) -> None:
        """Nobody waits for an answer."""

    def dismiss(self, shift: _Shift) -> None:
        self._shifts.discard(shift)
        if self._spare is shift:
            self._spare = None

    def cancel(self, id: Id) -> bool:
        """Stop the run of that id, which is then forgotten. False: there is none, or it must not be stopped."""
        run = self.by_id.get(id)
        if run is None or not run.cancellable:
            return False
        self._stop(run)
        return True

    def _stop(self, run: Run) -> None:
        self.by_id.pop(run.id, None)
        run.cancelled = True
        if run.exchange is not None:
            run.exchange.silence()
        if run.shift is not None:
            run.shift.task.cancel()
        if not self.behind:
            self.behind = True
            self.loop.call_soon(self._turned)

    def _turned(self) -> None:
        self.behind = False

    def end(self) -> None:
        """Cancel all there are; nothing begins any more."""
        self._ended = True
        spare, self._spare = self._spare, None
        if spare is not None:
            spare.end()
        for run in [*self.by_id.values(), *self._quiet]:
            self._stop(run)

    async def settle(self, seconds: float) -> None:
        """Wait for the runs there are, at most so long."""
        deadline = self.loop.time() + seconds
        while (left := deadline - self.loop.time()) > 0:
            tasks = [shift.task for shift in self._shifts if shift is not self._spare and not shift.is_quiet]
            if not tasks:
                return
            await asyncio.wait(tasks, timeout=left)


class _Shift(Coroutine[Any, Any, None]):
    """A task in which requests begin, one after the other, until one waits: then it is that one's to its end.

    A coroutine by hand, since it goes on with work that was begun outside of its turns. Its task is, in this order:
    new; parked, waiting for work; linked to what its run waits for, as if the run had always been the task's own.
    """

    __name__ = "interlock request"  # what a task shows of its coroutine
    __slots__ = ("_context", "_linked", "_parked", "_run", "_runs", "_waits_for", "task")

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._context = runs.context.copy()
        self._run: Run | None = None
        self._waits_for: Any = _NOTHING_YET
        self._parked: asyncio.Future[None] | None = None
        self._linked = False
        self.task = runs.loop.create_task(self, context=self._context)

    # --- while it is nobody's ---------------------------------------------------------------------

    def begin(self, run: Run) -> bool:
        """Work on it until it ends or waits. True: it has ended, and the next one may begin here too."""
        runs, task = self._runs, self.task
        loop, run.shift = runs.loop, self
        outer = task_of(loop)
        depth = getattr(_nesting, "depth", 0) if outer is not None else 0
        if runs.behind or depth >= _NESTED:
            self._take(run)
            return False
        if outer is not None:  # a carrier that delivers within the sender's own task
            _nesting.depth = depth + 1
            _leave_task(loop, outer)
        known = getrefcount(task), getweakrefcount(task)
        _enter_task(loop, task)
        try:
            self._waits_for = self._context.run(run.work.send, None)
        except StopIteration as stop:
            answer: bytes | None = stop.value
        except BaseException as error:
            answer = _failed(run, error)
        else:
            self._take(run)
            return False
        finally:
            _leave_task(loop, task)
            if outer is not None:
                _nesting.depth = depth
                _enter_task(loop, outer)
        runs.over(run, answer)
        # Who keeps the task, to cancel it later or to find something by it, shares it with nobody.
        if task.cancelling() or known != (getrefcount(task), getweakrefcount(task)) or not self._is_fresh():
            self.end()
            runs.dismiss(self)
            return False
        return True

    def _is_fresh(self) -> bool:
        """No cancellation is on its way, also none that was taken back too late; nobody waits for the end of the task;
        and the context is as it was."""
        parked, own, common = self._parked, self._context, self._runs.context
        if parked.done() if parked is not None else getattr(self.task, "_must_cancel", False):
            return False
        if getattr(self.task, "_callbacks", None):
            return False  # somebody waits for this very request to end
        # The same objects: equality would miss a fresh list, and may be anybody's code.
        return len(own) == len(common) and (
            not len(own) or all(common.get(variable, own) is value for variable, value in own.items())
        )

    @property
    def is_quiet(self) -> bool:
        return self._run is not None and self._run.id is None and not self._run.cancelled

    def _take(self, run: Run) -> None:
        self._run = run
        self._unpark()

    def end(self) -> None:
        """Nothing begins here any more."""
        self._linked = True
        self._unpark()

    def _unpark(self) -> None:
        if self._parked is not None and not self._parked.done():
            self._parked.set_result(None)

    # --- the task's turns -------------------------------------------------------------------------

    def send(self, value: Any, /) -> Any:
        run = self._run
        if run is None:
            return self._park()
        if self._linked:
            return self._step(run.work.send, value)
        self._linked = True
        return self._step(run.work.send, None) if self._waits_for is _NOTHING_YET else self._waits_for

    def throw(self, error: Any, /, *rest: Any) -> Any:
        run = self._run
        if run is None:
            self._runs.dismiss(self)
            raise error
        if self._linked:
            return self._step(run.work.throw, error)
        self._linked = True
        if isfuture(self._waits_for) and self._waits_for.cancel():
            return self._waits_for  # what it waits for is cancelled first, and that reaches it: as in every task
        return self._step(run.work.throw, error)

    def _park(self) -> Any:
        if self._linked:
            self._runs.dismiss(self)
            raise StopIteration
        self._parked = self._runs.loop.create_future()
        return next(self._parked.__await__())

    def _step(self, resume: Callable[[Any], Any], value: Any) -> Any:
        run = self._run
        assert run is not None
        try:
            return resume(value)
        except StopIteration as stop:
            answer: bytes | None = stop.value
        except BaseException as error:
            answer = _failed(run, error)
        self._runs.dismiss(self)
        self._runs.over(run, answer)
        raise StopIteration

    def close(self) -> None:
        if self._run is not None:
            self._run.work.close()

    def __await__(self) -> Generator[Any, Any, None]:
        raise TypeError("a shift is run by its task")


def _failed(run: Run, error: BaseException) -> bytes | None:
    """No answer to a run that somebody else cancelled; an internal error for all that should not have happened."""
    if run.cancelled and isinstance(error, asyncio.CancelledError):
        return None
    log.error("! the work on request %r failed", run.id, exc_info=error)
    return None if run.id is None else encode_error(run.id, InternalError("Internal error"))
