"""What a handler may take as an argument to speak while it works."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from ..wire.errors import LocalError
from ..wire.exchange import Exchange, Peer
from ..wire.types.common import LOG_LEVELS

__all__ = ["Context", "BlockingContext"]

if TYPE_CHECKING:
    from typing_extensions import deprecated
else:

    def deprecated(reason):
        """PEP 702's mark, which editors show; `warnings.deprecated` exists only from Python 3.13 on."""

        def mark(function):
            function.__deprecated__ = reason
            return function

        return mark


_RANK = {level: rank for rank, level in enumerate(LOG_LEVELS)}


class Context:
    """One request, as its handler sees it. Annotate a parameter with it; no ambient state is needed."""

    __slots__ = ("exchange",)

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange

    @property
    def client(self) -> Peer:
        """Who asks, as this request tells it: `ctx.client.name`, `ctx.client.can("sampling")`."""
        return self.exchange.peer

    @property
    def trace(self) -> dict[str, str]:
        """The W3C trace context that came with the request, to pass on."""
        return self.exchange.meta.trace()

    @property
    def cancelled(self) -> bool:
        """True once nobody waits for this request any more; a handler in a thread should look at it."""
        return not self.exchange.live

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> Any:
        """Tell how far the work is, if the caller wants to know. Values must increase."""
        return self._progress(progress, total, message)

    @deprecated("logging over MCP is deprecated in its newest revision: log to stderr or to a telemetry system")
    def log(self, level: str, data: Any, logger: str | None = None) -> Any:
        """Send a log message to the client, if it listens at this level. `data` is any JSON value."""
        return self._log(level, data, logger)

    async def _progress(self, progress: float, total: float | None, message: str | None) -> None:
        token = self.exchange.meta.progress_token
        if token is UNSET:
            return
        told: dict[str, Any] = {"progressToken": token, "progress": progress}
        if total is not None:
            told["total"] = total
        if message is not None:
            told["message"] = message
        await self.exchange.notify("notifications/progress", told)

    async def _log(self, level: str, data: Any, logger: str | None) -> None:
        if level not in _RANK:
            raise LocalError(f"{level!r} is no log level: use one of {', '.join(LOG_LEVELS)}")
        floor = self.exchange.peer.log_level
        if floor is None or _RANK[level] < _RANK[floor]:
            return
        told = {"level": level, "data": data} | ({"logger": logger} if logger else {})
        await self.exchange.notify("notifications/message", told)


class BlockingContext(Context):
    """The same for a handler in a thread: its methods wait instead of being awaited."""

    __slots__ = ("_loop",)

    def __init__(self, exchange: Exchange, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(exchange)
        self._loop = loop

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        self._wait(self._progress(progress, total, message))

    def log(self, level: str, data: Any, logger: str | None = None) -> None:
        self._wait(self._log(level, data, logger))

    def _wait(self, work: Coroutine[Any, Any, None]) -> None:
        """Wait for it on the loop. A thread that outlives its request or its loop has nobody left to speak to."""
        if not self.exchange.live or self._loop.is_closed():
            work.close()
            return
        try:
            waiting = asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError:
            work.close()
            return
        while not self._loop.is_closed() and not waiting.done():
            try:
                waiting.result(timeout=1.0)
            except TimeoutError:
                continue
        if waiting.done() and not waiting.cancelled():
            waiting.result()
