"""How often one caller may call tools and ask for completions (server/tools and server/utilities/completion, security).

A token bucket for each caller: a burst at once, then so many a second. The core is pure; the filter that uses it is put
only where a limit is wanted, so that a server without one pays nothing. Over HTTP one is wanted unless its author says
otherwise; whoever owns the process (stdio, memory) is limited only if the author wants that.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from math import ceil, isfinite
from time import monotonic
from typing import Any

import msgspec

from ..wire.errors import InternalError, LocalError
from ..wire.exchange import ANONYMOUS, LOCAL, Exchange, Handler, Result
from ..wire.shares import network_of

__all__ = ["HTTP_LIMITS", "Buckets", "Rate", "RateLimits", "caller_key", "rate_limited"]


class Rate(msgspec.Struct, frozen=True):
    """So many a second in the long run, and `burst` at once after a rest."""

    per_second: float
    burst: int


class RateLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What one caller may do: a principal, or for callers without a name, the address they come from.

    A call over its limit gets a result with `isError`, a completion -32603; both say how long to wait.
    """

    calls: Rate | None = Rate(50, 500)
    """Of `tools/call`, all tools together."""
    completions: Rate | None = Rate(20, 100)
    """Of `completion/complete`."""
    local: bool = False
    """Also for callers over stdio and in memory, which own the process."""
    callers: int = 10_000
    """Callers that are remembered. Beyond that the one that was quiet longest is forgotten, and begins anew."""

    def check(self) -> None:
        """Tell the author of numbers that make no sense."""
        for rate in (self.calls, self.completions):
            if rate is not None:
                Buckets(rate, self.callers)


HTTP_LIMITS = RateLimits()


class Buckets:
    """One bucket for each caller, and for at most `most` of them. Pure: who asks tells the time."""

    def __init__(self, rate: Rate, most: int) -> None:
        if not (isfinite(rate.per_second) and rate.per_second > 0 and rate.burst >= 1 and most >= 1):
            raise LocalError(f"{rate!r} for {most} callers: give numbers above nothing, and a burst of at least 1")
        self._rate, self._most = rate, most
        self._per_second, self._burst = float(rate.per_second), float(rate.burst)
        self._found: dict[Hashable, list[float]] = {}  # tokens and when they were counted; see `take` for the order

    def __len__(self) -> int:
        return len(self._found)

    def spread(self, workers: int) -> None:
        """Others count for themselves: this is one of so many who share the rate, and at least one call at once."""
        self._per_second = self._rate.per_second / workers
        self._burst = max(1.0, self._rate.burst / workers)

    def take(self, caller: Hashable, now: float) -> float:
        """0.0 when it may go on; else the seconds until it may. What is refused costs the caller nothing."""
        found = self._found.get(caller)
        if found is None:
            if len(self._found) >= self._most:
                del self._found[next(iter(self._found))]
            self._found[caller] = [self._burst - 1, now]
            return 0.0
        if 2 * len(self._found) > self._most:  # once room gets short, who asked last is the last to be forgotten
            self._found[caller] = self._found.pop(caller)
        tokens, passed = found[0], now - found[1]
        if passed > 0:
            tokens += passed * self._per_second
            if tokens > self._burst:
                tokens = self._burst
        found[1] = now
        if tokens >= 1:
            found[0] = tokens - 1
            return 0.0
        found[0] = tokens
        return (1 - tokens) / self._per_second


def rate_limited(
    handler: Handler,
    limits: RateLimits,
    clock: Callable[[], float] = monotonic,
    *,
    local: bool,
    made: list[Buckets] | None = None,
) -> Handler:
    """`handler` behind these limits. Without `local` those who own the process pass. `made` is told what counts."""
    refusals = {"tools/call": _told, "completion/complete": _refused}
    wanted = {"tools/call": limits.calls, "completion/complete": limits.completions}
    limited = {
        method: (Buckets(rate, limits.callers), refusals[method]) for method, rate in wanted.items() if rate is not None
    }

    if made is not None:
        made.extend(buckets for buckets, _ in limited.values())

    def limit(exchange: Exchange) -> Any:
        found = limited.get(exchange.method)
        if found is not None and (local or exchange.peer.principal is not LOCAL):
            wait = found[0].take(caller_key(exchange), clock())
            if wait:
                return found[1](wait)
        return handler(exchange)

    return limit


def caller_key(exchange: Exchange) -> Hashable:
    """Whose bucket it is: the principal's, or, where nobody has a name, the address's or the connection's."""
    principal = exchange.peer.principal
    if principal is not ANONYMOUS and principal != ANONYMOUS:
        return principal
    outlet = getattr(exchange, "outlet", None)
    address: str | None = getattr(outlet, "address", None)
    return id(outlet) if address is None else network_of(address)


async def _told(wait: float) -> Result:
    """For the model, who can wait or do something else."""
    return {"content": [{"type": "text", "text": _words("calls", wait)}], "isError": True}


async def _refused(wait: float) -> Result:
    raise InternalError(_words("completions", wait), {"retryAfterSeconds": ceil(wait)})


def _words(what: str, wait: float) -> str:
    return f"Too many {what} in a short time: try again in {ceil(wait)} s"
