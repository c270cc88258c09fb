"""What a request does once: its acts by key, their results, and whoever waits for one that is under way.

An act belongs to all who ask for it, not to the first of them. It runs in a task of its own, so that one caller can
give up (a timeout, a sibling that failed) while the others go on waiting, and it is cancelled when nobody waits.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

from .errors import LocalError
from .messages import encode

__all__ = ["Acts", "Record", "is_part_of_an_act", "part_of_an_act"]


class Record(Protocol):
    """Where it is written down what was done."""

    def begin_once(self, key: str) -> bytes | None: ...

    def end_once(self, key: str, result: bytes | None) -> None: ...


class Acts:
    """All acts of one request."""

    __slots__ = ("_begun", "_done", "_under_way")

    def __init__(self) -> None:
        self._begun: set[str] = set()
        self._done: dict[str, bytes] = {}
        self._under_way: dict[str, _Act] = {}

    def begin(self, key: str) -> bytes | None:
        """What was done under this key; None: do it now, and say so with `end`."""
        if key in self._begun:
            raise LocalError(f"once({key!r}) is under way already: give each act its own key")
        if key not in self._done:
            self._begun.add(key)
        return self._done.get(key)

    def end(self, key: str, result: bytes | None) -> None:
        """It was done, with this result; None: it failed, and counts as not done."""
        self._begun.discard(key)
        if result is not None:
            self._done[key] = result

    async def once(self, record: Record, key: str, act: Callable[[], Any]) -> bytes:
        """The result of `act`, of one who came before with the same key, or of the record."""
        while (found := self._under_way.get(key)) is not None:
            if found in _inside.get():
                raise LocalError(f"once({key!r}) waits for itself: it is called inside of its own act")
            if not found.given_up:
                return await found.result()
            await found.over.wait()  # then it is done all the same, or begun anew
        done = record.begin_once(key)
        return await self._begin(record, key, act) if done is None else done

    async def _begin(self, record: Record, key: str, act: Callable[[], Any]) -> bytes:
        doing = _Act()
        within = _inside.set((*_inside.get(), doing))
        try:
            given = act()
            if not inspect.isawaitable(given):
                result = encode(given)
                record.end_once(key, result)
                doing.over.set()
                return result
            self._under_way[key] = doing
            doing.go_on(given, lambda result: self._end(record, key, result))
        except BaseException:
            record.end_once(key, None)
            doing.over.set()
            raise
        finally:
            _inside.reset(within)
        return await doing.result()

    def _end(self, record: Record, key: str, result: bytes | None) -> None:
        del self._under_way[key]
        record.end_once(key, result)


class _Act:
    """One that takes its time."""

    __slots__ = ("_done", "_error", "_task", "_waiting", "given_up", "over")

    def __init__(self) -> None:
        self.over = asyncio.Event()
        self.given_up = False
        self._waiting = 0
        self._task: asyncio.Task[None] | None = None
        self._done: bytes | None = None
        self._error: BaseException = asyncio.CancelledError()  # it may be cancelled before it begins

    def go_on(self, work: Awaitable[Any], ended: Callable[[bytes | None], None]) -> None:
        def end(task: asyncio.Task[None]) -> None:
            _drop(work)
            ended(self._done)
            self.over.set()

        self._task = asyncio.get_running_loop().create_task(self._do(work))
        self._task.add_done_callback(end)

    async def _do(self, work: Awaitable[Any]) -> None:
        """Never raises: what went wrong is for those who wait. An exit, let out of a task, would stop the loop."""
        try:
            self._done = encode(await work)
        except BaseException as error:
            self._error = error

    async def result(self) -> bytes:
        self._waiting += 1
        try:
            await self.over.wait()
        except asyncio.CancelledError:
            if self._waiting == 1 and not self.over.is_set():
                await self._give_up()
            raise
        finally:
            self._waiting -= 1
        if self._done is None:
            raise self._error
        return self._done

    async def _give_up(self) -> None:
        """Nobody wants it any more. The last one goes when it has cleaned up, as if it were part of their own task."""
        assert self._task is not None
        self.given_up = True
        self._task.cancel()
        await self.over.wait()


_inside: ContextVar[tuple[_Act, ...]] = ContextVar("interlock acts", default=())
"""The acts that the code now running is part of."""


def is_part_of_an_act() -> bool:
    """Does an act that is under way wait for the code now running? What it left behind may go on without it."""
    return any(not act.over.is_set() for act in _inside.get())


@contextmanager
def part_of_an_act() -> Generator[None]:
    """For an act that runs in the thread of who wants it; what it does on the loop is part of it there too."""
    doing = _Act()
    within = _inside.set((*_inside.get(), doing))
    try:
        yield
    finally:
        _inside.reset(within)
        doing.over.set()


def _drop(work: Awaitable[Any]) -> None:
    """Work that was never begun is let go; to what has ended this does nothing."""
    if inspect.iscoroutine(work):
        work.close()
    elif asyncio.isfuture(work):
        work.cancel()
