"""The way of a request through a server: filters outside, lifespans inside of them, who answers in the middle.

What nobody asked for is not on the way: without filters and lifespans there is one look into a table.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping

from ..wire.errors import MethodNotFound
from ..wire.exchange import Exchange, Filter, Handler, Result
from .lifespans import Lifespans
from .request_scope import Home

__all__ = ["Dispatch"]


class Dispatch:
    """Of one server: `answers` are those to the methods of MCP, `own` those that its author adds, now or later."""

    def __init__(
        self, server: Handler, answers: Mapping[str, Handler], own: Mapping[str, Handler], lives: Lifespans
    ) -> None:
        self._server, self._answers, self._own, self._lives = server, answers, own, lives
        self._home = Home(server)
        self._core: Handler = self._plain
        self._filtered = False
        self.handler: Handler = self._core
        """Where the way begins now."""

    def use(self, filter: Filter) -> None:
        """One more around all others. Lifespans stay inside, also those that are declared later."""
        self.handler = filter(self.handler if self._filtered else lambda exchange: self._core(exchange))
        self._filtered = True

    def live(self) -> None:
        """From now on requests are answered inside of lifespans."""
        self._core = self._alive
        if not self._filtered:
            self.handler = self._core

    def _plain(self, exchange: Exchange) -> Awaitable[Result]:
        exchange.home = self._home
        return (self._answers.get(exchange.method) or self._by_own)(exchange)

    async def _alive(self, exchange: Exchange) -> Result:
        """Each request has a home of its own: what its lifespans yield is for it alone."""
        return await self._lives.around(self._answered, exchange, Home(self._server))

    def _answered(self, exchange: Exchange) -> Awaitable[Result]:
        return (self._answers.get(exchange.method) or self._by_own)(exchange)

    def _by_own(self, exchange: Exchange) -> Awaitable[Result]:
        handler = self._own.get(exchange.method)
        if handler is None:
            raise MethodNotFound(f"Unknown method: {exchange.method[:200]!r}")
        return handler(exchange)
