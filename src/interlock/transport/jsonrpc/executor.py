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
import threading
import types
from asyncio import isfuture
from asyncio.tasks import _enter_task, _leave_task  # pyright: ignore - public to "Extending asyncio" in its docs
from collections.abc import Callable, Coroutine, Generator
from contextvars import copy_context
from sys import getrefcount
from typing import Any, cast
from weakref import getweakrefcount

from ...wire.aio import task_of
from ...wire.errors import InternalError
from ...wire.exchange import Silenced, Work
from ...wire.messages import Id, encode_error

__all__ = ["Runs", "Reply"]

log = logging.getLogger("interlock.wire")
_NESTED = 8  # runs begun inside each other (a handler that calls a server in this process); deeper ones take turns
Reply = Callable[[Id | None, bytes | None], None]
"""Takes the id of a request and its answer, or None where none may be sent."""
_NOTHING_YET: Any = object()
_ENDED: Any = object()
_nesting = threading.local()


class Runs:
    """All that run on one connection, at most `limit` at once."""

    def __init__(self, loop: asyncio.AbstractEventLoop, limit: int) -> None:
        self.loop = loop
        self._limit = limit
        self.context = copy_context()
        """What every request finds: the context in which the connection was made."""
        self.by_id: dict[Id | None, _Shift] = {}
        self._shifts: set[_Shift] = set()
        self.spare: _Shift | None = None
        """The next one begins there. One is enough: most requests end before the next one comes."""
        self._quiet: set[_Shift] = set()
        self.ended = False
        self.behind = False
        """Has something been cancelled in this turn? Then what comes behind it takes the next one."""

    def start(self, id: Id, work: Work, reply: Reply, cancellable: bool = True) -> bool:
        """Begin `work` now; `reply` gets its answer, now or later, or None when it was cancelled.

        False: there is no room, nothing was begun. A cancelled run makes room at once, but as many again that never
        end make none. What cannot be cancelled cannot be refused either.
        """
        if cancellable and len(self._shifts) >= self._limit and self._is_full():
            return False
        shift, self.spare = self.spare or self._new_shift(), None  # taken: what begins inside of it needs another
        self.by_id[id] = shift
        shift.begin(id, work[0], work[1], reply, cancellable)
        return True

    def hear(self, work: Coroutine[Any, Any, None]) -> bool:
        """Begin what nobody is answered for: it is not waited for, only cancelled with all others."""
        if len(self._quiet) >= self._limit:
            return False
        shift, self.spare = self.spare or self._new_shift(), None
        self._quiet.add(shift)
        shift.begin(None, work, None, self._heard, True)
        return True

    def _new_shift(self) -> _Shift:
        shift = _Shift(self)
        self._shifts.add(shift)
        return shift

    @property
    def idle(self) -> bool:
        """Does nothing run that was asked for or heard?"""
        return not self.by_id and not self._quiet

    def _is_full(self) -> bool:
        unended = len(self._shifts) - (self.spare is not None) - len(self._quiet)
        return len(self.by_id) >= self._limit or unended >= 2 * self._limit

    def over(self, shift: _Shift, answer: bytes | None) -> None:
        id = shift.id
        if self.by_id.get(id) is shift:
            del self.by_id[id]
        elif id is None:
            self._quiet.discard(shift)
        reply = shift.reply
        reply(id, None if shift.cancelled else answer)

    def _heard(self, id: Id | None, answer: bytes | None) -> None:
        """Nobody waits for an answer."""

    def dismiss(self, shift: _Shift) -> None:
        self._shifts.discard(shift)
        if self.spare is shift:
            self.spare = None

    def cancel(self, id: Id) -> bool:
        """Stop the run of that id, which is then forgotten. False: there is none, or it must not be stopped."""
        shift = self.by_id.get(id)
        if shift is None or not shift.cancellable:
            return False
        self._stop(shift)
        return True

    def _stop(self, shift: _Shift) -> None:
        self.by_id.pop(shift.id, None)
        shift.cancelled = True
        if shift.exchange is not None:
            shift.exchange.silence()
        shift.task.cancel()
        if not self.behind:
            self.behind = True
            self.loop.call_soon(self._turned)

    def _turned(self) -> None:
        self.behind = False

    def end(self) -> None:
        """Cancel all there are; nothing begins any more."""
        self.ended = True
        spare, self.spare = self.spare, None
        if spare is not None:
            spare.end()
        for shift in [*self.by_id.values(), *self._quiet]:
            self._stop(shift)

    async def settle(self, seconds: float) -> None:
        """Wait for the runs there are, at most so long."""
        deadline = self.loop.time() + seconds
        while (left := deadline - self.loop.time()) > 0:
            tasks = [shift.task for shift in self._shifts if shift is not self.spare and not shift.is_quiet]
            if not tasks:
                return
            await asyncio.wait(tasks, timeout=left)


class _Shift(Coroutine[Any, Any, None]):
    """A task in which requests begin, one after the other, until one waits: then it is that one's to its end.

    A coroutine by hand, since it goes on with work that was begun outside of its turns. Its task is, in this order:
    new; parked, waiting for work; linked to what its run waits for, as if the run had always been the task's own.

    A task factory may wrap the coroutine in one of its own (Sentry's AsyncioIntegration does), which awaits this one
    after a beginning of its own. Such a task serves one request, from the start of its work to the end.
    """

    __name__ = "interlock request"  # what a task shows of its coroutine
    __slots__ = (
        *("_answer", "_context", "_go_on", "_linked", "_parked", "_runs", "_taken", "_waits_for", "_work", "_worker"),
        *("_wrapped", "cancellable", "cancelled", "exchange", "id", "reply", "task"),
    )

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._context = runs.context.copy()
        self._hire()
        self._work: Any = None
        self._answer: bytes | None = None
        self._taken = self._linked = self.cancelled = False
        self._waits_for: Any = _NOTHING_YET
        self._parked: asyncio.Future[None] | None = None
        self.task = runs.loop.create_task(self, context=self._context)
        self._wrapped = self.task.get_coro() is not self
        if self._wrapped:
            self.task.add_done_callback(self._finish_abandoned)

    def _hire(self) -> None:
        self._worker: Any = self._work_on_each()
        self._go_on: Callable[[Any], Any] = self._worker.send

    # --- while it is nobody's ---------------------------------------------------------------------

    def begin(
        self,
        id: Id | None,
        work: Coroutine[Any, Any, Any],
        exchange: Silenced | None,
        reply: Reply,
        cancellable: bool,
    ) -> None:
        """Work on it until it ends or waits. If it has ended, the next one may begin here too."""
        self.id = id
        self.exchange = exchange
        self.reply: Any = reply
        self.cancellable = cancellable
        self._work = work
        runs, task = self._runs, self.task
        loop = runs.loop
        outer = task_of(loop)
        if runs.behind or self._wrapped or (outer is not None and not _step_aside(loop, outer)):
            self._take()
            return
        # Counted by the attribute: whether a local variable counts itself differs by its place (Python 3.14).
        references, weak_references = getrefcount(self.task), getweakrefcount(task)
        _enter_task(loop, task)
        try:
            found = self._context.run(self._go_on, None)
        except GeneratorExit as error:  # of the work itself: the worker is gone with it
            self._answer, found = _failed(self, error), _ENDED
            self._hire()
        finally:
            _leave_task(loop, task)
            if outer is not None:
                _nesting.depth -= 1
                _enter_task(loop, outer)
        if found is not _ENDED:
            self._waits_for = found
            self._take()
            return
        if self.cancelled or runs.by_id.get(id) is not self:
            runs.over(self, self._answer)
        else:
            del runs.by_id[id]
            reply(id, self._answer)
        self._forget()
        # Who keeps the task, to cancel it later or to find something by it, shares it with nobody.
        kept = references != getrefcount(self.task) or weak_references != getweakrefcount(task)
        if not kept and runs.spare is None and not runs.ended and self._is_fresh():
            runs.spare = self
            return
        self.end()
        runs.dismiss(self)

    @types.coroutine
    def _work_on_each(self) -> Generator[Any, Any, None]:
        """Goes on from one request to the next: to begin it costs no more than to wake it, and no end is an error."""
        while True:
            try:
                self._answer = yield from self._work
            except GeneratorExit:
                raise
            except BaseException as error:
                self._answer = _failed(self, error)
            yield _ENDED

    def _is_fresh(self) -> bool:
        """No cancellation is on its way, also none that was taken back; nobody waits for the end of the task; and the
        context is as it was."""
        task, parked, own, common = self.task, self._parked, self._context, self._runs.context
        if (
            self.cancelled
            or task.cancelling()
            or (parked.done() if parked is not None else getattr(task, "_must_cancel", False))
        ):
            return False
        if getattr(task, "_callbacks", None):
            return False  # somebody waits for this very request to end
        # The same objects: equality would miss a fresh list, and may be anybody's code.
        size = len(own)
        return size == len(common) and (
            not size or all(common.get(variable, own) is value for variable, value in own.items())
        )

    @property
    def is_quiet(self) -> bool:
        return self._taken and self.id is None and not self.cancelled

    def _take(self) -> None:
        self._taken = True
        self._unpark()

    def end(self) -> None:
        """Nothing begins here any more."""
        self._linked = True
        self._unpark()

    def _unpark(self) -> None:
        if self._parked is not None and not self._parked.done():
            self._parked.set_result(None)

    # --- the task's turns -------------------------------------------------------------------------

    def send(self, value: Any = None, /) -> Any:
        if not self._taken:
            return self._park()
        if self._linked:
            return self._step(self._go_on, value)
        found = self._link()
        return self._step(self._go_on, None) if found is _NOTHING_YET else found

    def throw(self, error: Any, /, *rest: Any) -> Any:
        if not self._taken:
            self._runs.dismiss(self)
            self._come_apart()
            raise error
        if self._linked:
            return self._step(self._worker.throw, error)
        found = self._link()
        if found is _NOTHING_YET:
            return self._step(self._work.throw, error)  # it never begins
        if isfuture(found) and found.cancel():
            return found  # what it waits for is cancelled first, and that reaches it: as in every task
        return self._step(self._worker.throw, error)

    def _link(self) -> Any:
        """What it waits for is from now on the task's to know, which lets go of it, and of its result, in time."""
        self._linked = True
        found, self._waits_for = self._waits_for, None
        return found

    def _park(self) -> Any:
        if self._linked:
            self._runs.dismiss(self)
            self._come_apart()
            raise StopIteration
        self._parked = self._runs.loop.create_future()
        return next(self._parked.__await__())

    def _step(self, resume: Callable[[Any], Any], value: Any) -> Any:
        try:
            found = resume(value)
        except BaseException as error:
            self._answer = _failed(self, error)
        else:
            if found is not _ENDED:
                return found
        self._finish()
        raise StopIteration

    def _finish(self) -> None:
        self._runs.dismiss(self)
        self._runs.over(self, self._answer)
        self._come_apart()

    def _finish_abandoned(self, task: asyncio.Task[Any]) -> None:
        """The coroutine around this one ended without it: cancelled before its first turn, or failed. That also ends
        the request, which would hold its place on the connection for ever."""
        work = self._work
        if work is not None:
            error = asyncio.CancelledError() if task.cancelled() else task.exception()
            self._answer = _failed(self, error or RuntimeError("the coroutine of the task factory did not await it"))
            self._finish()
            work.close()

    def _forget(self) -> None:
        """A large answer, or a secret in one, is not kept until the next request comes, nor with a task others keep."""
        self._work = self._answer = self.exchange = self.reply = None

    def _come_apart(self) -> None:
        """After the last turn: what holds each other would be garbage that somebody has to look for."""
        self._forget()
        del self.task, self._worker, self._go_on

    def close(self) -> None:
        if self._work is not None:
            self._work.close()

    # Awaited, it is its own iterator. With `send` itself as `__next__`, a task's turn costs no second call.
    __next__ = send

    def __iter__(self) -> Generator[Any, Any, None]:
        return cast("Generator[Any, Any, None]", self)

    __await__ = __iter__


def _step_aside(loop: asyncio.AbstractEventLoop, outer: asyncio.Task[Any]) -> bool:
    """For a carrier that delivers within the sender's own task. False: that happens too deep inside of itself."""
    depth: int = getattr(_nesting, "depth", 0)
    if depth >= _NESTED:
        return False
    _nesting.depth = depth + 1
    _leave_task(loop, outer)
    return True


def _failed(shift: _Shift, error: BaseException) -> bytes | None:
    """No answer to a run that somebody else cancelled; an internal error for all that should not have happened."""
    if shift.cancelled and isinstance(error, asyncio.CancelledError):
        return None
    log.error("! the work on request %r failed", shift.id, exc_info=error)
    return None if shift.id is None else encode_error(shift.id, InternalError("Internal error"))
