"""The event loop of a process that only serves: it ends when its work does, whatever a handler still thinks it does."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Callable, Coroutine, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Protocol

__all__ = [
    "run_main",
    "set_aside",
    "Watcher",
    "counting",
]


log = logging.getLogger("interlock.server")
_AFTER_CANCEL = 0.5  # seconds that tasks get once they were cancelled, before the process goes without them
_PYTHONS_OWN = 1_000  # objects: Python 3.12 begins with some hundred set aside; who sets something aside has thousands
_YOUNG = 10_000  # objects beyond those freed again, after which garbage is looked for
_USUAL = (700, 2000)  # what Python's versions have there


class Watcher(Protocol):
    """Looks after a loop from beside it."""

    def watch(self, loop: asyncio.AbstractEventLoop) -> AbstractContextManager[None]: ...


def run_main(
    main: Coroutine[Any, Any, None],
    new_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop,
    watcher: Watcher | None = None,
) -> None:
    """Like `asyncio.run`, but a handler that never ends does not keep the process: it had its grace."""
    loop = new_loop()
    try:
        asyncio.set_event_loop(loop)
        with _collector_as_it_is(), watcher.watch(loop) if watcher is not None else nullcontext():
            loop.run_until_complete(main)
            loop.run_until_complete(leave())
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def set_aside(*, clean: bool = True) -> None:
    """Keep the garbage collector from what is no garbage; `run_main` takes it back at its end.

    What is there when a server begins stays until its process ends: modules, classes, the server itself. And what the
    requests in flight hold is freed with their answers. To look through either again and again would hold up the calls
    of that moment, by milliseconds. So the first is set aside, `clean` once all garbage is out of it, and garbage is
    looked for when ten thousand objects more are there than last time: a few megabytes at most. An author who has
    chosen otherwise keeps what he chose.
    """
    if gc.get_freeze_count() < _PYTHONS_OWN:
        if clean:
            gc.collect()
        gc.freeze()
    young, *older = gc.get_threshold()
    if young in _USUAL:
        gc.set_threshold(_YOUNG, *older)


@contextmanager
def _collector_as_it_is() -> Generator[None]:
    aside, threshold = gc.get_freeze_count(), gc.get_threshold()
    try:
        yield
    finally:
        gc.set_threshold(*threshold)
        if aside < _PYTHONS_OWN:
            gc.unfreeze()


async def leave() -> None:
    """Cancelled twice: the first time may be what begins somebody's orderly end, the second time ends that."""
    for _ in range(2):
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        if rest:
            await asyncio.wait(rest, timeout=_AFTER_CANCEL)
    _leave_behind(asyncio.all_tasks() - {asyncio.current_task()})
    await asyncio.get_running_loop().shutdown_asyncgens()


def _leave_behind(deaf: set[asyncio.Task[Any]]) -> None:
    """They end with the process: said once, in place of what Python would say about each of them."""
    if not deaf:
        return
    log.warning("! %d tasks did not let themselves be cancelled: the process ends without them", len(deaf))
    asyncio.get_running_loop().set_exception_handler(_hush)
    for task in deaf:
        task._log_destroy_pending = False  # pyright: ignore


def _hush(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None: ...


def counting(kind: type[asyncio.AbstractEventLoop]) -> Callable[[], asyncio.AbstractEventLoop]:
    """A loop of this kind that counts."""
    make: Callable[..., asyncio.Task[Any]] = kind.create_task
    look: Callable[[Any], float] = kind.time

    def create_task(self: Any, coro: Any, **named: Any) -> asyncio.Task[Any]:
        self.uses += 1
        return make(self, coro, **named)

    def time(self: Any) -> float:
        self.uses += 1
        return look(self)

    return type("CountingLoop", (kind,), {"create_task": create_task, "time": time, "uses": 0})
