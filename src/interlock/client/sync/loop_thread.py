"""One event loop in a thread of its own, for everybody in the process who cannot await.

It starts with its first user and ends with the last. The thread is a daemon: what is still open when the interpreter
ends is closed then, within a bound, and nothing can keep the process alive.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import threading
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from typing import Any, Generic, TypeVar

from ...transport.event_loop import leave
from ...wire.errors import ConnectionClosed, LocalError

__all__ = ["LoopThread", "shared_loop"]

log = logging.getLogger("interlock.client")
T = TypeVar("T")
Closer = Callable[[], Coroutine[Any, Any, None]]
_STOPPING = 10.0  # seconds that are waited for the thread, or for everything open when the interpreter ends


class LoopThread:
    """Counts its users: `join` before the first call, `leave` after the last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._closers: dict[int, Closer] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def join(self, user: int, at_exit: Closer) -> None:
        """`at_exit` is run on the loop should the interpreter end before this user has left."""
        with self._lock:
            self._closers[user] = at_exit
            if self._thread is None:
                self._start()

    def _start(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=_live, args=(self._loop,), name="interlock-loop", daemon=True)
        self._thread.start()
        # What is registered last is called first: finalizers, which end children the hard way, come after us.
        weakref.finalize(self, bool).detach()
        atexit.register(self._at_exit)

    def leave(self, user: int) -> None:
        """The last one ends the thread, and waits for that unless it is the thread itself."""
        with self._lock:
            if self._closers.pop(user, None) is None or self._closers:
                return
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
            atexit.unregister(self._at_exit)
        if loop is None or thread is None or self._pid != os.getpid():
            return
        loop.call_soon_threadsafe(loop.stop)
        if thread is not threading.current_thread():
            thread.join(_STOPPING)

    @property
    def is_here(self) -> bool:
        """Is the caller on this very thread? Then it must not wait for it."""
        return self._thread is threading.current_thread()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run it on the loop and wait. Whatever interrupts the wait, Ctrl-C say, cancels the work."""
        held = _Held(work)
        try:
            return self.start(held.run()).result()
        except CancelledError:
            raise ConnectionClosed("the client was closed") from None
        finally:
            held.take_back()  # of what is done there is nothing to take back

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        loop = self._loop
        if self._pid != os.getpid() or loop is None:
            work.close()
            forked = "a client cannot be used in a forked process: make a new one there"
            raise LocalError(forked if self._pid != os.getpid() else "the loop of this client has ended")
        try:
            return asyncio.run_coroutine_threadsafe(work, loop)
        except RuntimeError:  # it ended in this very moment
            work.close()
            raise ConnectionClosed("the client was closed") from None

    def _at_exit(self) -> None:
        """Close what is open. On the loop: no thread can be started any more."""
        if self._pid != os.getpid() or self._loop is None:
            return  # a forked process: the thread, and what is open, belong to its parent
        closing = asyncio.run_coroutine_threadsafe(_all([close() for close in self._closers.values()]), self._loop)
        try:
            closing.result(_STOPPING)
        except Exception as error:
            log.warning("! closing at the end of the interpreter failed: %r", error)


class _Held(Generic[T]):
    """Work that can be taken back from any thread and from the first moment on: an interrupt may come before the
    one who waits for it has anything in his hands."""

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work = work
        self._task: asyncio.Task[Any] | None = None
        self._over = False

    async def run(self) -> T:
        self._task = asyncio.current_task()
        if self._over:
            self._work.close()
            raise asyncio.CancelledError
        return await self._work

    def take_back(self) -> None:
        self._over = True
        task = self._task
        if task is None:
            self._work.close()
        elif not task.done():
            with suppress(RuntimeError):  # its loop has ended
                task.get_loop().call_soon_threadsafe(task.cancel)


async def _all(work: list[Coroutine[Any, Any, None]]) -> None:
    await asyncio.gather(*work, return_exceptions=True)


def _live(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        loop.run_until_complete(leave())
    finally:
        loop.close()


_shared = LoopThread()


def shared_loop() -> LoopThread:
    """The one of this process; a forked process gets its own."""
    global _shared
    if _shared._pid != os.getpid():  # pyright: ignore[reportPrivateUsage]
        _shared = LoopThread()
    return _shared
