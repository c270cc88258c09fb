"""Whether another worker still lives, by the leases that workers renew in a shared store.

Wall clocks are not compared: they can be set back while a worker dies. A lease holds the monotonic time of its last
renewal and the id of that clock, which all processes of one machine share. A lease with another clock expires when this
process has watched it for the whole time and seen no renewal.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import msgspec

from ....state.store import Entry

__all__ = ["LeaseMonitor", "read_clock_id"]

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_TIME_NAMESPACE = "/proc/self/ns/time"  # a container may have a monotonic clock of its own
MAX_WATCHED = 1024  # leases watched at once, as many as there can be workers; beyond it watching begins again


class _Renewal(msgspec.Struct, array_like=True, frozen=True):
    """The value of a lease."""

    clock: str
    """Empty where the system has no id for it: then only watching decides."""
    time: float


_renewals = msgspec.msgpack.Decoder(_Renewal)


@cache
def read_clock_id() -> str:
    """The same text in all processes that read the same monotonic clock; empty where the system does not tell."""
    try:
        return f"{_BOOT_ID.read_text('ascii').strip()} {os.readlink(_TIME_NAMESPACE)}"
    except (OSError, UnicodeDecodeError):
        return ""


class LeaseMonitor:
    """Judges the leases of others, and gives the value of its own."""

    def __init__(
        self, seconds: float, *, clock: Callable[[], float] = time.monotonic, clock_id: str | None = None
    ) -> None:
        self._seconds = seconds
        self._clock = clock
        self._clock_id = read_clock_id() if clock_id is None else clock_id
        self._watched: dict[int, tuple[int, float]] = {}
        self._judges_from = float("-inf")

    def renewal(self) -> bytes:
        return msgspec.msgpack.encode(_Renewal(self._clock_id, self._clock()))

    def pause(self) -> None:
        """This process stood still itself, perhaps together with the others: they get a whole lease to renew theirs."""
        self._watched.clear()
        self._judges_from = self._clock() + self._seconds

    def is_expired(self, worker: int, lease: Entry) -> bool:
        now = self._clock()
        version, since = self._watched.get(worker, (0, now))
        if version != lease.version:
            if len(self._watched) >= MAX_WATCHED:
                self._watched.clear()
            self._watched[worker] = lease.version, (since := now)
        if now < self._judges_from:
            return False
        if (renewed := self._renewed(lease.value)) is not None:
            return now - renewed >= self._seconds
        return now - since >= self._seconds

    def forget(self, worker: int) -> None:
        self._watched.pop(worker, None)

    def _renewed(self, value: bytes) -> float | None:
        """When it was last renewed by the clock of this process; None where another clock was read."""
        try:
            renewal = _renewals.decode(value)
        except msgspec.DecodeError:
            return None
        return renewal.time if renewal.clock and renewal.clock == self._clock_id else None
