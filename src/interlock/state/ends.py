"""When what ends, without a timer for each: a heap that is looked at when somebody comes by."""

from __future__ import annotations

import math
from heapq import heapify, heappop, heappush

__all__ = ["Ends"]

_SLACK = 64  # outdated items a small heap may hold before it is made anew


class Ends:
    """The end of each name; a later `set` overrules an earlier one."""

    def __init__(self) -> None:
        self._ends: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []

    def set(self, name: str, until: float) -> None:
        if self._ends.get(name) == until:
            return
        self._ends[name] = until
        if until < math.inf:
            heappush(self._heap, (until, name))
            self._compact()

    def remove(self, name: str) -> None:
        self._ends.pop(name, None)

    def pop_due(self, now: float) -> str | None:
        """One whose end has come, the earliest first; it is not asked about again."""
        heap = self._heap
        while heap and heap[0][0] <= now:
            until, name = heappop(heap)
            if self._ends.get(name) == until:
                del self._ends[name]
                return name
        return None

    def _compact(self) -> None:
        """What is touched often leaves its old ends behind: at most as many as there are names, and a few."""
        if len(self._heap) > 2 * len(self._ends) + _SLACK:
            self._heap = [(until, name) for name, until in self._ends.items() if until < math.inf]
            heapify(self._heap)
