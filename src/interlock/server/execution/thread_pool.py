"""Threads for handlers that are plain functions: a bounded number, started when needed, never in the way of an exit.

The standard library's pool joins its threads when the interpreter ends, so one stuck handler would keep a server alive
that was told to stop. These are daemons: what they still do is lost with the process, as it would be with a kill.

Most handlers end at once, so what costs is waking: of a thread for a call, of the loop for its outcome. One thread is
woken for a burst of calls, more of them only while calls wait turn after turn; many outcomes ride home together.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import TYPE_CHECKING, Any, TypeVar

from ...wire.errors import LocalError

if TYPE_CHECKING:
    from queue import SimpleQueue

__all__ = ["Threads", "OwnThreads"]

T = TypeVar("T")


class _Home:
    """The way back to one loop: any number of outcomes with one call into it."""

    __slots__ = ("_called", "_done", "loop", "stirring")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.stirring = False
        """Will the loop look whether calls still wait for a thread?"""
        self._done: deque[_Job] = deque()
        self._called = False

    def bring(self, job: _Job) -> None:
        """From a thread. Appended first, looked at second: what the loop may have missed calls it again."""
        self._done.append(job)
        if self._called:
            return
        self._called = True
        try:
            self.loop.call_soon_threadsafe(self._settle)
        except RuntimeError:  # the loop is closed: nobody waits any more
            self._called = False
            self._done.clear()

    def _settle(self) -> None:
        self._called = False
        for _ in range(len(self._done)):
            self._done.popleft().settle()


class _Job:
    __slots__ = ("_call", "_context", "_failed", "_home", "_outcome", "future")

    def __init__(self, call: Callable[[], Any], home: _Home, context: Context) -> None:
        self._call, self._home, self._context = call, home, context
        self._failed = False
        self._outcome: Any = None
        self.future: asyncio.Future[Any] = home.loop.create_future()

    def run(self) -> None:
        """In the thread: work, then bring the outcome home. What was cancelled while it waited never starts."""
        if self.future.cancelled():
            return
        try:
            self._outcome = self._context.run(self._call)
        except BaseException as error:
            self._failed, self._outcome = True, error
        self._home.bring(self)

    def fail(self, error: BaseException) -> None:
        """It cannot run at all."""
        self._failed, self._outcome = True, error
        self._home.bring(self)

    def settle(self) -> None:
        """On the loop."""
        outcome, self._outcome = self._outcome, None
        if self.future.done():
            return
        if not self._failed:
            self.future.set_result(outcome)
        else:
            # A future refuses StopIteration, and GeneratorExit would close the coroutines that wait for it; the others
            # reach the awaiting task as they are.
            odd = isinstance(outcome, StopIteration | GeneratorExit)
            self.future.set_exception(RuntimeError(repr(outcome)) if odd else outcome)

    def forget(self) -> None:
        """Nobody waits any more: what still waits for its turn frees its arguments."""
        self._call = _nothing


def _nothing() -> None: ...


class Threads:
    """At most `size` at a time; further calls wait their turn."""

    def __init__(self, size: int) -> None:
        if size < 1:
            raise LocalError(f"threads={size!r}: plain functions need at least one")
        self.own = OwnThreads(size)
        """For functions that want a thread nobody used before."""
        self._size = size
        self._jobs: deque[_Job] = deque()
        self._home: _Home | None = None
        self._lock = threading.Lock()
        self._started = 0
        self._asleep = 0
        self._wakes: SimpleQueue[None]  # one token for each sleeper that was counted awake again

    async def run(self, call: Callable[[], T]) -> T:
        """Call it in a thread, in the caller's context. Cancelling stops the waiting, not the thread."""
        home = self._home
        loop = asyncio.get_running_loop()
        if home is None or home.loop is not loop:
            home = self._home = _Home(loop)
        job = _Job(call, home, copy_context())
        self._jobs.append(job)
        if not home.stirring:
            home.stirring = True
            self._wake(1)
            loop.call_soon(self._stir, home, 1)
        try:
            return await job.future
        except asyncio.CancelledError:
            job.forget()
            _take_out(self._jobs, job)
            raise

    def _stir(self, home: _Home, count: int) -> None:
        """A turn later: calls that still wait get more threads, twice as many in every turn."""
        home.stirring = False
        if self._jobs and self._wake(count):
            home.stirring = True
            home.loop.call_soon(self._stir, home, 2 * count)
        elif not self._started:
            while self._jobs:
                self._jobs.popleft().fail(RuntimeError("the system has no thread left for this call"))

    def _wake(self, count: int) -> bool:
        """So many threads more, sleeping ones first. False: all there can be are awake."""
        found = False
        for _ in range(min(count, len(self._jobs))):
            with self._lock:
                if self._asleep:
                    self._asleep -= 1
                    self._wakes.put(None)
                elif self._started == self._size or not self._start_one():
                    return found
            found = True
        return found

    def _start_one(self) -> bool:
        if not self._started:
            from queue import SimpleQueue  # a server without plain functions starts without it

            self._wakes = SimpleQueue()
        try:
            _start(self._work, f"interlock-handler-{self._started + 1}")
        except RuntimeError:
            return False  # the system has none left; those there are go on
        self._started += 1
        return True

    def _work(self) -> None:
        jobs = self._jobs
        while True:
            try:
                job = jobs.popleft()
            except IndexError:
                self._sleep()
            else:
                job.run()
                del job  # what it held is not kept for as long as nothing else comes

    def _sleep(self) -> None:
        with self._lock:
            if self._jobs:
                return
            self._asleep += 1
        self._wakes.get()


class OwnThreads:
    """A new thread for every call, at most `size` at a time; further calls wait their turn."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._running = 0
        self._waiting: deque[_Job] = deque()

    async def run(self, call: Callable[[], T]) -> T:
        """Like that of `Threads`."""
        job = _Job(call, _Home(asyncio.get_running_loop()), copy_context())
        self._begin(job if self._has_room(job) else None)
        try:
            return await job.future
        except asyncio.CancelledError:
            job.forget()
            with self._lock:
                _take_out(self._waiting, job)
            raise

    def _has_room(self, job: _Job) -> bool:
        """If not, it waits."""
        with self._lock:
            if self._running >= self._size:
                self._waiting.append(job)
                return False
            self._running += 1
            return True

    def _begin(self, job: _Job | None) -> None:
        while job is not None:
            try:
                _start(self._live, "interlock-handler-own", job)
                return
            except RuntimeError as error:
                job.fail(error)
                job = self._next()

    def _live(self, job: _Job) -> None:
        job.run()
        self._begin(self._next())

    def _next(self) -> _Job | None:
        with self._lock:
            while self._waiting:
                job = self._waiting.popleft()
                if not job.future.cancelled():
                    return job
            self._running -= 1
        return None


def _take_out(waiting: deque[_Job], job: _Job) -> None:
    """What nobody waits for leaves the queue: else calls that come and go would pile up behind threads that hang."""
    try:
        waiting.remove(job)
    except ValueError:
        pass  # a thread has it already


def _start(work: Callable[..., None], name: str, *arguments: Any) -> None:
    threading.Thread(target=work, name=name, args=arguments, daemon=True).start()
