"""Functions of the caller's that are told something: plain or async, and whatever they do harms nobody else."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from ..wire.errors import LocalError
from .subscriptions import Change

__all__ = ["Telling"]

log = logging.getLogger("interlock.client")
_LOGGED = 10  # failures; a peer decides how often a function is told something: the log must not
_MOST = 1024  # async ones under way; what comes beyond it is dropped and counted


class Telling:
    """What a client tells its owner, and what that starts."""

    def __init__(
        self,
        on_notification: Callable[[str, dict[str, Any]], Any] | None = None,
        on_log: Callable[[str, Any, str | None], Any] | None = None,
        on_change: Callable[[Change], Any] | None = None,
    ) -> None:
        given = {"on_notification": on_notification, "on_log": on_log, "on_change": on_change}
        for name, listener in given.items():
            if listener is not None and not callable(listener):
                raise LocalError(f"{name}={listener!r:.60}: give a function")
        self.on_notification, self.on_log, self.on_change = on_notification, on_log, on_change
        self._running: set[asyncio.Task[Any]] = set()
        self._failures = 0
        self.dropped = 0

    def heard(self, method: str, params: dict[str, Any]) -> None:
        """What the server says outside of any call, or to a caller who does not listen."""
        if method == "notifications/message" and self.on_log is not None:
            level, logger = params.get("level"), params.get("logger")
            told = (level if isinstance(level, str) else "info", params.get("data"))
            self._tell("on_log", self.on_log, *told, logger if isinstance(logger, str) else None)
        if self.on_notification is not None:
            self._tell("on_notification", self.on_notification, method, params)

    def changed(self, change: Change) -> None:
        if self.on_change is not None:
            self._tell("on_change", self.on_change, change)

    def _tell(self, name: str, function: Callable[..., Any], *told: Any) -> None:
        if len(self._running) >= _MOST:
            self.dropped += 1
            return
        try:
            given = function(*told)
        except Exception:
            self._failed(name)
            return
        if inspect.isawaitable(given):
            task = asyncio.get_running_loop().create_task(self._awaited(name, given))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def _awaited(self, name: str, work: Awaitable[Any]) -> None:
        try:
            await work
        except Exception:
            self._failed(name)

    def _failed(self, name: str) -> None:
        self._failures += 1
        if self._failures <= _LOGGED:
            log.exception("! %s failed", name)

    async def close(self) -> None:
        """Nothing it started outlives its client."""
        me = asyncio.current_task()
        tasks = [task for task in self._running if task is not me]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
