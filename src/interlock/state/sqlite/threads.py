"""The two threads of a SQLite store, each with a connection of its own: the loop never waits for the disk.

The writer puts all that waits into one transaction, so the price of a commit is shared by whoever came meanwhile. The
reader reads, and while somebody waits for a stream it looks whether any process has committed something.
"""

from __future__ import annotations

import asyncio
import os
import queue
import sqlite3
import threading
from collections.abc import Callable
from typing import Any

from ...wire.errors import InterlockError, NotOpen, StoreError
from ...wire.limits import MIB
from ..store import Bounds
from ..waiters import Waiters
from .database import StoreFile, told
from .entries import purge_entries
from .streams import changed, last_stamp, purge_streams
from .transaction import Turn, begin, commit, look

__all__ = ["POLL_SECONDS", "Reader", "Work", "Writer"]

POLL_SECONDS = 0.01  # after which news of another process is seen, while somebody waits
_SWEEP_SECONDS = 1.0  # between two cleanings, of whichever process
_TOMB_SECONDS = 5.0  # for which an ended stream can still be seen to have ended
_WAITING, _WAITING_BYTES = 10_000, 256 * MIB  # jobs that wait for the disk; a further one raises `StoreError`
_TOGETHER = 512  # jobs in one transaction

Work = Callable[[Turn], Any]


class _Job:
    __slots__ = ("future", "news", "size", "work")

    def __init__(self, work: Work, size: int, news: str | None) -> None:
        self.work, self.size, self.news = work, size, news
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()


class _Thread:
    """A thread that begins with the first job, a connection that is made anew after each error."""

    name = ""

    def __init__(
        self, file: StoreFile, bounds: Bounds, clock: Callable[[], float], waiters: Waiters, *, durable: bool
    ) -> None:
        self._file, self._durable = file, durable
        self._bounds, self._clock, self._waiters = bounds, clock, waiters
        self._lock = threading.Lock()
        self._queue: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._jobs = self._bytes = self._process = 0
        self._closed = False
        self._end: asyncio.Future[Any] | None = None
        self._connection: sqlite3.Connection | None = None

    # --- on the loop ------------------------------------------------------------------------------

    async def do(self, work: Work, size: int = 0, news: str | None = None) -> Any:
        """What `work` returns or raises; where it wrote, only once that is committed. Then `news` is told."""
        job = _Job(work, size, news)
        with self._lock:
            self._check()
            self._jobs, self._bytes = self._jobs + 1, self._bytes + size
            if not self._process:
                self._start()
            self._queue.put(job)  # still with the lock: nothing comes after the end
        return await job.future

    async def close(self) -> None:
        """After what was begun; in no other process than the one that opened it."""
        with self._lock:
            if not self._closed and self._process == os.getpid():
                self._end = asyncio.get_running_loop().create_future()
                self._queue.put(None)
            self._closed = True
        if self._end is not None:
            await asyncio.shield(self._end)

    def _check(self) -> None:
        if self._closed:
            raise NotOpen("this store was closed")
        if self._process not in (0, os.getpid()):
            raise StoreError("a store that was in use before the process forked: make one in each process")
        if self._jobs >= _WAITING or self._bytes > _WAITING_BYTES:
            raise StoreError(
                f"{self._jobs} jobs with {self._bytes} bytes wait for {self._file.path}: the disk is too slow"
            )

    def _start(self) -> None:
        self._process = os.getpid()
        threading.Thread(target=self._run, name=f"interlock-store-{self.name}", daemon=True).start()

    # --- in the thread ----------------------------------------------------------------------------

    def _run(self) -> None:
        while (jobs := self._take()) is not None:
            outcomes = self._serve(jobs)
            with self._lock:
                self._jobs -= len(jobs)
                self._bytes -= sum(job.size for job in jobs)
            _deliver(jobs, outcomes)
        self._disconnect()
        if self._end is not None:
            _settle_from_thread(self._end, None)

    def _take(self) -> list[_Job] | None:
        """What waits; None at the end, and nothing at all when it is time to look for news."""
        try:
            job = self._queue.get(timeout=self._patience())
        except queue.Empty:
            return []
        jobs: list[_Job] = []
        while job is not None:
            jobs.append(job)
            if len(jobs) == _TOGETHER or self._queue.empty():
                return jobs
            job = self._queue.get_nowait()
        if jobs:
            self._queue.put(None)  # first these, then the end
        return jobs or None

    def _serve(self, jobs: list[_Job]) -> list[Any]:
        try:
            if self._connection is None:
                self._connection = self._file.connect(durable=self._durable)
            else:
                self._file.check()
            return self._perform(self._connection, jobs)
        except (sqlite3.Error, OSError, StoreError) as error:
            self._disconnect()
            return [told(error, self._file.path) for _ in jobs]
        except Exception as error:  # a mistake in one job: the others are done without it
            self._disconnect()
            return [error] if len(jobs) == 1 else [outcome for job in jobs for outcome in self._serve([job])]

    def _disconnect(self) -> None:
        """An open transaction is undone by that."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _patience(self) -> float | None:
        return None

    def _perform(self, connection: sqlite3.Connection, jobs: list[_Job]) -> list[Any]:
        raise NotImplementedError


class Writer(_Thread):
    name = "writer"

    def _perform(self, connection: sqlite3.Connection, jobs: list[_Job]) -> list[Any]:
        turn = begin(connection, self._bounds, self._clock())
        outcomes = [_outcome(job.work, turn) for job in jobs]
        if abs(turn.now - turn.totals.swept) >= _SWEEP_SECONDS:
            self._sweep(turn)
        commit(turn)
        for job in jobs:
            if job.news is not None:
                self._waiters.wake(job.news)
        return outcomes

    def _sweep(self, turn: Turn) -> None:
        turn.totals.swept = turn.now
        purge_entries(turn, turn.now - self._bounds.linger_seconds)
        purge_streams(turn, turn.now - _TOMB_SECONDS)


class Reader(_Thread):
    name = "reader"
    _seen: int | None = None  # stamp up to which news was passed on; None while nobody waits
    _version = -1

    def _patience(self) -> float | None:
        if len(self._waiters):
            return POLL_SECONDS
        self._seen = None
        return None

    def _perform(self, connection: sqlite3.Connection, jobs: list[_Job]) -> list[Any]:
        outcomes: list[Any] = []
        if jobs:
            turn = look(connection, self._bounds, self._clock())
            if self._seen is None and len(self._waiters):
                self._seen = last_stamp(turn)  # of the same moment at which who waits looks first
            outcomes = [_outcome(job.work, turn) for job in jobs]
            connection.execute("ROLLBACK")
        self._pass_on(connection)
        return outcomes

    def _pass_on(self, connection: sqlite3.Connection) -> None:
        if self._seen is None:
            return
        [version] = connection.execute("PRAGMA data_version").fetchone()  # another one after any commit of others
        if version == self._version:
            return
        turn = look(connection, self._bounds, self._clock())
        news = changed(turn, self._seen)
        connection.execute("ROLLBACK")
        self._version = version
        for stream, self._seen in news:
            self._waiters.wake(stream)

    def _disconnect(self) -> None:
        super()._disconnect()
        self._seen, self._version = None, -1
        self._waiters.wake_all()  # so that they look again, and hear of an error that lasts


def _outcome(work: Work, turn: Turn) -> Any:
    """What it returned or what it raised on purpose, which is before it wrote anything."""
    try:
        return work(turn)
    except InterlockError as error:
        return error


def _deliver(jobs: list[_Job], outcomes: list[Any]) -> None:
    """One wake-up for each loop, however many wait on it."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Any]]] = {}
    for job, outcome in zip(jobs, outcomes, strict=True):
        by_loop.setdefault(job.future.get_loop(), []).append((job.future, outcome))
    for loop, pairs in by_loop.items():
        try:
            loop.call_soon_threadsafe(_settle, pairs)
        except RuntimeError:
            pass  # its loop was closed: nobody waits there any more


def _settle(pairs: list[tuple[asyncio.Future[Any], Any]]) -> None:
    for future, outcome in pairs:
        if future.done():
            continue  # whoever waited was cancelled
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)


def _settle_from_thread(future: asyncio.Future[Any], outcome: Any) -> None:
    try:
        future.get_loop().call_soon_threadsafe(_settle, [(future, outcome)])
    except RuntimeError:
        pass
