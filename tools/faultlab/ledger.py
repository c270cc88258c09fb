"""Which calls ran, and how often, against what their callers were told.

Every call carries a nonce; the tool appends it to a file before it returns. Afterwards: told ok means exactly one
entry, provably unsent means none, everything else at most one, and no entry that nobody asked for.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

from .lab import Problems

__all__ = ["Ledger", "NOT_SENT", "OK", "UNKNOWN", "UNUSED"]

UNUSED, OK, UNKNOWN, NOT_SENT = range(4)
_ALLOWED = {UNUSED: (0,), OK: (1,), UNKNOWN: (0, 1), NOT_SENT: (0,)}
_NAMES = {UNUSED: "never called", OK: "told ok", UNKNOWN: "told unknown", NOT_SENT: "told not sent"}
_SPACE = 2**48


class Ledger:
    """Outcomes by number of call; a nonce is its number, scattered, so that a swapped answer cannot look right."""

    def __init__(self, path: Path, size: int, random: Random) -> None:
        self.path = path
        path.touch()
        self.outcomes = bytearray(size)
        self._factor = random.randrange(1, _SPACE, 2)
        self._offset = random.randrange(_SPACE)
        self._inverse = pow(self._factor, -1, _SPACE)

    def nonce(self, number: int) -> str:
        return f"{(number * self._factor + self._offset) % _SPACE:012x}"

    def number(self, nonce: str | bytes) -> int:
        """Negative for what is no nonce of ours."""
        try:
            number = (int(nonce, 16) - self._offset) * self._inverse % _SPACE
        except ValueError:
            return -1
        return number if number < len(self.outcomes) else -1

    def told(self, outcome: int) -> int:
        return self.outcomes.count(outcome)

    def check(self, problems: Problems) -> int:
        """Hold the file against the outcomes; gives how many entries there are."""
        entries = bytearray(len(self.outcomes))
        lines = self.path.read_bytes().split()
        for line in lines:
            number = self.number(line)
            if number < 0:
                problems.add(f"an entry nobody asked for: {line[:40]!r}")
            else:
                entries[number] = min(255, entries[number] + 1)
        for number, (outcome, count) in enumerate(zip(self.outcomes, entries, strict=True)):
            if count not in _ALLOWED[outcome]:
                problems.add(f"call {number} was {_NAMES[outcome]} and ran {count} times")
        return len(lines)
