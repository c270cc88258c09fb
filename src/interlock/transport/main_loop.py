"""The event loop of a process that only serves: it ends when its work does, whatever a handler still thinks it does."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

__all__ = ["run_main", "Watcher"]

log = logging.getLogger("interlock.server")
_AFTER_CANCEL = 0.5  # seconds that tasks get once they were cancelled, before the process goes without them


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
        with watcher.watch(loop) if watcher is not None else nullcontext():
            loop.run_until_complete(main)
            loop.run_until_complete(leave())
    finally:
        asyncio.set_event_loop(None)
        loop.close()


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
