"""How much of its rate each caller has used, in a file that all workers of one machine see.

A caller's bucket is one number: the time at which it is full again. So an entry is 16 bytes, and a look at it is one
read and one write of the page cache, without the store. There is no lock, since a worker that is stopped while it holds
one would stop all others: two workers that count at the same instant may count one call instead of two.
"""

from __future__ import annotations

import hashlib
import os
import struct
from time import time

__all__ = ["RateTable"]

_ENTRY = struct.Struct("<8sd")  # a hash of the caller, and when its bucket is full
_SETS, _WAYS = 4096, 8  # a caller's hash names a set, in which it has any of eight places: 32,768 callers, 512 KiB
_SLACK, _ROUNDING = 1.0, 1e-4  # seconds: a float of the present time is exact to a quarter of a microsecond
_SET_BYTES = _WAYS * _ENTRY.size


class RateTable:
    """Opened by each worker for itself. Raises `OSError` where the file cannot be used."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
        self._file = os.open(path, flags, 0o600)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def take(self, caller: bytes, per_second: float, burst: float, now: float | None = None) -> float:
        """0.0 when `caller` may go on; else the seconds until it may. What is refused costs the caller nothing."""
        now = time() if now is None else now
        digest = hashlib.blake2b(caller, digest_size=16).digest()
        start = int.from_bytes(digest[8:], "little") % _SETS * _SET_BYTES
        name = digest[:8]
        place, full = self._find(start, name)
        if not now <= full <= now + burst / per_second + _SLACK:
            full = now  # it was full already; or the clock was set back, and the number means nothing
        wait = full - now - (burst - 1) / per_second
        if wait > _ROUNDING:
            return wait
        os.pwrite(self._file, _ENTRY.pack(name, full + 1 / per_second), start + place)
        return 0.0

    def _find(self, start: int, name: bytes) -> tuple[int, float]:
        """Where this caller's entry is, and its time; for a new caller the place that was full first."""
        found = os.pread(self._file, _SET_BYTES, start).ljust(_SET_BYTES, b"\0")
        entries = list(_ENTRY.iter_unpack(found))
        for at, (known, full) in enumerate(entries):
            if known == name:
                return at * _ENTRY.size, full
        return min(range(_WAYS), key=lambda at: entries[at][1]) * _ENTRY.size, 0.0
