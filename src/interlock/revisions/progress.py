"""Progress of one request: strictly increasing, and not more of it than anybody can look at."""

from __future__ import annotations

from math import isfinite
from typing import Any

from ..wire.exchange import Params

__all__ = ["ProgressMeter"]

_PROGRESS_BURST = 64.0
_PROGRESS_PER_SECOND = 32.0
_NUMBERS = (int, float)


def _is_number(value: Any) -> bool:
    """A number that JSON can say: neither NaN nor an infinity."""
    return type(value) is int or (isinstance(value, _NUMBERS) and not isinstance(value, bool) and isfinite(value))


class ProgressMeter:
    """A token bucket that knows the last value. Pure: the caller tells the time.

    What is over the rate is held, not lost: the newest held one goes out with the next that passes the rate, or
    right before the answer.
    """

    __slots__ = ("_at", "_held", "_last", "_tokens")

    def __init__(self, now: float) -> None:
        self._last = float("-inf")
        self._tokens = _PROGRESS_BURST
        self._at = now
        self._held: dict[str, Any] | None = None

    def admit(self, params: Params, now: float) -> dict[str, Any] | None:
        """The params to send now, or None when there is nothing to send."""
        value: Any = params.get("progress")
        if not _is_number(value) or not value > self._last:  # PROG-04
            return None
        if "total" in params and not _is_number(params["total"]):
            params = {key: item for key, item in params.items() if key != "total"}
        self._last = value
        self._tokens = min(_PROGRESS_BURST, self._tokens + (now - self._at) * _PROGRESS_PER_SECOND)
        self._at = now
        if self._tokens < 1:
            self._held = dict(params)
            return None
        self._tokens -= 1
        self._held = None
        return dict(params)

    def rest(self) -> dict[str, Any] | None:
        """What was held back, for the moment before the answer."""
        held, self._held = self._held, None
        return held
