"""The guards of one server, decided when it is made: what nobody asked for is not there when a call comes."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, cast
from weakref import WeakSet

from ...revisions.shaping import plain
from ...state.rate_table import RateTable
from ...wire.errors import LocalError
from ...wire.exchange import Among, BadArguments, Exchange, Filter, Handler, Result
from .concurrency import Concurrency, Gate, bounded, check_seconds, gate_of
from .invoke import Caller
from .loop_watchdog import Stalls
from .rate_limits import HTTP_LIMITS, Buckets, RateLimits, rate_limited

__all__ = ["Guards", "Redact", "Sanitize"]

Sanitize = Callable[[str, dict[str, Any]], dict[str, Any] | Awaitable[dict[str, Any]]]
"""Takes the name of a tool and its result as plain JSON; gives the result that goes out."""
Redact = Callable[[Any], Any]
"""Takes the data of a log message as plain JSON, or its logger's name; gives what goes out."""


class Guards:
    """Time, number, rate, output and logs: one place that a server asks.

    `timeout` and `concurrency` are of every tool without its own and of all tools together. `rate_limits` hold over
    HTTP, and elsewhere if they say so. `sanitize` sees every result of a tool before it goes out, `redact` every log
    message, instead of the usual patterns. A handler that blocks the loop for `stall_seconds` is named in the log.
    """

    def __init__(
        self,
        *,
        timeout: float | None = None,
        concurrency: Concurrency | int | None = None,
        rate_limits: RateLimits | None = HTTP_LIMITS,
        sanitize: Sanitize | None = None,
        redact: Redact | None = None,
        stall_seconds: float | None = 1.0,
    ) -> None:
        check_seconds(timeout)
        self._timeout = timeout
        self._gate = gate_of(concurrency)
        self._limits = rate_limits
        self._buckets: WeakSet[Buckets] = WeakSet()
        self._workers = 1
        self._table: tuple[RateTable | None, str] = (None, "")
        if rate_limits is not None:
            rate_limits.check()
        self._sanitize, self._redact = sanitize, redact
        self.stalls = Stalls(stall_seconds) if stall_seconds is not None else None
        """Who watches the loop; None where nobody does."""

    def tool(
        self,
        call: Caller,
        function: Callable[..., Any],
        name: str,
        *,
        timeout: float | None,
        concurrency: Concurrency | int | None,
    ) -> Caller:
        """The call of a tool within its bounds and those of the server: the tool's own are the inner ones."""
        check_seconds(timeout)
        if self.stalls is not None:
            self.stalls.know(function, f"the tool {name}")
        gates: list[Gate] = [gate for gate in (self._gate, gate_of(concurrency)) if gate is not None]
        return bounded(call, name, timeout=self._timeout if timeout is None else timeout, gates=gates)

    def filter(self) -> Filter | None:
        """What stands around every request, whatever carries it."""
        limits = self._limits
        asked = self._sanitize is not None or self._redact is not None or (limits is not None and limits.local)
        return self._around if asked else None

    def _around(self, handler: Handler) -> Handler:
        if self._sanitize is not None:
            handler = _sanitized(handler, self._sanitize)
        if self._redact is not None:
            handler = _redacted(handler, self._redact)
        if self._limits is not None and self._limits.local:
            handler = self._limited(handler, self._limits, local=True)
        return handler

    def http_filter(self) -> Filter | None:
        """What stands around requests that come over a network, outside of everything else."""
        limits = self._limits
        if limits is None or limits.local:
            return None
        return lambda handler: self._limited(handler, limits, local=False)

    def _limited(self, handler: Handler, limits: RateLimits, *, local: bool) -> Handler:
        made: list[Buckets] = []
        limited = rate_limited(handler, limits, local=local, made=made)
        self._buckets.update(made)
        self.spread(self._workers)
        self.share_rates(*self._table)
        return limited

    def share_rates(self, table: RateTable | None, endpoint: str) -> None:
        """Count rates in `table`, together with the other workers of `endpoint`; None counts in this process."""
        self._table = table, endpoint
        for buckets in self._buckets:
            buckets.share(table, endpoint)

    def spread(self, workers: int) -> None:
        """This process is one of so many that serve the same callers: each of them allows its part of every rate,
        unless they count together."""
        self._workers = workers
        for buckets in self._buckets:
            buckets.spread(workers)


def _sanitized(handler: Handler, sanitize: Sanitize) -> Handler:
    async def sanitized(exchange: Exchange) -> Result:
        result = await handler(exchange)
        if exchange.method != "tools/call":
            return result
        found = sanitize(exchange.params.name, cast("dict[str, Any]", plain(result)))
        clean = await found if inspect.isawaitable(found) else found
        if not isinstance(clean, dict):  # pyright: ignore[reportUnnecessaryIsInstance] - an author's function
            raise LocalError("sanitize gave no result: return the dict, changed or not")
        return _marked_like(result, clean)

    return sanitized


def _marked_like(result: Result, clean: dict[str, Any]) -> Result:
    """The rewritten result, as what the first one was: older revisions refuse wrong arguments (-32602) and wrap
    structured output by its tool's declaration, whatever `sanitize` made of the text."""
    output = clean.get("structuredContent")
    if type(result.get("structuredContent")) is Among and isinstance(output, dict):
        clean = {**clean, "structuredContent": Among(cast("dict[str, Any]", output))}
    return BadArguments(clean) if type(result) is BadArguments else clean


def _redacted(handler: Handler, redact: Redact) -> Handler:
    def redacted(exchange: Exchange) -> Awaitable[Result]:
        exchange.redact = redact
        return handler(exchange)

    return redacted
