"""How often a server may ask: a user can be bothered, and a model paid for, only so often (client/elicitation#security,
client/sampling#security-considerations)."""

from __future__ import annotations

__all__ = ["QuestionMeter"]

BURST = 200.0
PER_SECOND = 20.0


class QuestionMeter:
    """A token bucket for one connection. Pure: the caller tells the time."""

    __slots__ = ("_at", "_tokens")

    def __init__(self) -> None:
        self._tokens, self._at = BURST, 0.0

    def refusal(self, now: float) -> str | None:
        """Why this question is one too many; None when it is not."""
        self._tokens = min(BURST, self._tokens + max(0.0, now - self._at) * PER_SECOND)
        self._at = now
        if self._tokens < 1:
            return f"more questions than {BURST:g} at once and {PER_SECOND:g} a second"
        self._tokens -= 1
        return None
