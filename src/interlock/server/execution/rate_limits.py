"""How often one caller may call tools and ask for completions (server/tools and server/utilities/completion, security).

A token bucket for each caller: a burst at once, then so many a second. The core is pure; the filter that uses it is put
only where a limit is wanted, so that a server without one pays nothing. Over HTTP one is wanted unless its author says
otherwise; whoever owns the process (stdio, memory) is limited only if the author wants that.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable
from math import ceil, isfinite
from time import monotonic
from typing import Any

import msgspec

from ...state.rate_table import RateTable
from ...wire.errors import InternalError, LocalError
from ...wire.exchange import ANONYMOUS, LOCAL, Exchange, Handler, Principal, Result
from ...wire.quota import network_of

__all__ = ["HTTP_LIMITS", "Buckets", "Rate", "RateLimits", "caller_key", "rate_limited"]


log = logging.getLogger("interlock.server")


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
    """One bucket for each caller, and for at most `most` of them. Who asks tells the time."""

    def __init__(self, rate: Rate, most: int, name: str = "calls") -> None:
        if not (isfinite(rate.per_second) and rate.per_second > 0 and rate.burst >= 1 and most >= 1):
            raise LocalError(f"{rate!r} for {most} callers: give numbers above nothing, and a burst of at least 1")
        self.rate, self.name, self._most = rate, name, most
        self._per_second, self._burst = float(rate.per_second), float(rate.burst)
        self._found: dict[Hashable, list[float]] = {}  # tokens and when they were counted; see `take` for the order
        self._table: RateTable | None = None
        self._label = b""
        self._is_reported = False

    def __len__(self) -> int:
        return len(self._found)

    def spread(self, workers: int) -> None:
        """Others count for themselves: this is one of so many who share the rate, and at least one call at once."""
        self._per_second = self.rate.per_second / workers
        self._burst = max(1.0, self.rate.burst / workers)

    def share(self, table: RateTable | None, endpoint: str) -> None:
        """Count in `table`, with all workers of `endpoint`; None counts here again."""
        self._table, self._label = table, f"{endpoint}\n{self.name}\n".encode()

    def report(self) -> None:
        """Tell the author once that the limit was reached: its callers are told what to change, and do not own it."""
        if not self._is_reported:
            self._is_reported = True
            log.warning(
                "! a caller reached the limit of %s: change it with Server(rate_limits=...); callers behind one proxy "
                "are one caller unless trusted_proxies= has its address; said once",
                self.words,
            )

    @property
    def words(self) -> str:
        """The limit, as people read it."""
        return f"{self.rate.per_second:g} {self.name} per second and {self.rate.burst} at once for each caller"

    def take(self, caller: Hashable, now: float) -> float:
        """0.0 when it may go on; else the seconds until it may. What is refused costs the caller nothing."""
        if self._table is not None and (key := _stable_key(caller)) is not None:
            try:
                return self._table.take(self._label + key, self.rate.per_second, self.rate.burst)
            except OSError as error:
                log.warning("! rates are counted by each worker from now on: %s", error)
                self._table = None
        return self._take_here(caller, now)

    def _take_here(self, caller: Hashable, now: float) -> float:
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
    wanted = {
        "tools/call": (limits.calls, "calls", _told),
        "completion/complete": (limits.completions, "completions", _refused),
    }
    limited = {
        method: (Buckets(rate, limits.callers, name), refuse)
        for method, (rate, name, refuse) in wanted.items()
        if rate is not None
    }

    if made is not None:
        made.extend(buckets for buckets, _ in limited.values())

    def limit(exchange: Exchange) -> Any:
        found = limited.get(exchange.method)
        if found is not None and (local or exchange.peer.principal is not LOCAL):
            wait = found[0].take(caller_key(exchange), clock())
            if wait:
                found[0].report()
                return found[1](found[0], wait)
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


def _stable_key(caller: Hashable) -> bytes | None:
    """The same bytes for a caller in every process; None for a connection, which only this process has."""
    if isinstance(caller, str | bytes):
        return repr(caller).encode()
    return msgspec.json.encode(caller) if isinstance(caller, Principal) else None


async def _told(buckets: Buckets, wait: float) -> Result:
    """For the model, which can wait or do something else."""
    return {"content": [{"type": "text", "text": _words(buckets, wait)}], "isError": True}


async def _refused(buckets: Buckets, wait: float) -> Result:
    raise InternalError(_words(buckets, wait), {"retryAfterSeconds": ceil(wait)})


def _words(buckets: Buckets, wait: float) -> str:
    return (
        f"Too many {buckets.name}: {buckets.words} are allowed. Try again in {ceil(wait)} s; who runs this server "
        "changes the limit with Server(rate_limits=...)"
    )
