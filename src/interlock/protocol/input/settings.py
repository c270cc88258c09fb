"""How one server asks stateless clients. A file of its own: every server has rules, and few ever ask by them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

__all__ = ["Sealer", "AskingRules"]


class Sealer(Protocol):
    """Keeps a state secret and whole while it is in the client's hands."""

    def seal(self, payload: bytes) -> str: ...

    def open(self, sealed: str) -> bytes | None:
        """The payload, or None for anything this sealer did not make."""
        ...

    async def consume(self, nonce: str, until: float) -> bool:
        """True the first time, for states that count once; False whenever it is shown again."""
        ...


def _never(method: str, params: Any) -> bool:
    return False


class AskingRules(msgspec.Struct, frozen=True, kw_only=True):
    """How one server asks stateless clients."""

    sealer: Sealer
    clock: Callable[[], float]
    """Seconds since the epoch: all replicas must agree on it."""
    seconds: float = 600.0
    """How long a state is good for, and how long a parked run waits."""
    grace: float = 0.0
    """Seconds to wait for further questions after the last one, instead of a few turns of the loop."""
    total_seconds: float = 3600.0
    """How long all rounds of one request may take together."""
    audience: str = ""
    """Whose states these are: servers that share keys do not share states."""
    state_bytes: int = 64 * 1024
    """A longer state is an internal error on its way out and refused on its way in."""
    parked_runs: int = 1000
    """Runs that may wait in memory at once; a further one is refused with -32603."""
    parks: Callable[[str, Any], bool] = _never
    """Does the run of this request wait in memory instead of running again?"""
    single_use: Callable[[str, Any], bool] = _never
    """Does each state of this request count only once?"""
