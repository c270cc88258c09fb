"""Log messages of one client: at or above its level, without secrets, and not more of them than anybody reads.

Where there is a session its messages are counted together; a stateless client asks for them with each request, and
each is counted for itself (server/utilities/logging).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from math import isfinite
from typing import Any

from ..revisions.shaping import plain
from ..wire.errors import LocalError
from ..wire.exchange import Params, Peer
from ..wire.redaction import redact_secrets
from ..wire.types.common import LOG_LEVELS

__all__ = [
    "LogMeter",
    "left_out_notice",
    "log_notices",
    "without_secrets",
    "ProgressMeter",
    "QuestionMeter",
]


log = logging.getLogger("interlock.server")
_LOG_BURST = 200.0
_LOGS_PER_SECOND = 50.0
_LOGGER = "interlock"
_RANK = {level: rank for rank, level in enumerate(LOG_LEVELS)}


class LogMeter:
    """A token bucket that counts what did not fit. Pure: the caller tells the time."""

    __slots__ = ("_at", "_dropped", "_tokens", "_told", "_worst")

    def __init__(self, now: float) -> None:
        self._tokens = _LOG_BURST
        self._at = now
        self._told = {True: float("-inf"), False: float("-inf")}
        self._dropped, self._worst = 0, 0

    def admit(self, level: str, now: float) -> bool:
        self._tokens = min(_LOG_BURST, self._tokens + max(0.0, now - self._at) * _LOGS_PER_SECOND)
        self._at = now
        if self._tokens >= 1:
            self._tokens -= 1
            return True
        self._dropped += 1
        self._worst = max(self._worst, _RANK[level])
        return False

    def left_out(self, now: float, *, last: bool) -> dict[str, Any] | None:
        """How many did not fit, at the level of the worst of them; `last`: nothing else is said for this request.

        Of either kind there is one a second, or the counts themselves would be a flood. What is not told adds up.
        """
        if not self._dropped or now - self._told[last] < 1:
            return None
        limits = f"{_LOGS_PER_SECOND:g} a second are sent, {_LOG_BURST:g} at once"
        told = f"{self._dropped} log messages were left out: {limits}"
        notice = {"level": LOG_LEVELS[self._worst], "logger": _LOGGER, "data": told}
        self._told[last], self._dropped, self._worst = now, 0, 0
        return notice


def is_heard(peer: Peer, level: Any) -> bool:
    """Does this client want messages of this level? One that named none wants none."""
    if level not in _RANK:
        raise LocalError(f"{level!r} is no log level: use one of {', '.join(LOG_LEVELS)}")
    return peer.log_level is not None and _RANK[level] >= _RANK[peer.log_level]


def log_notices(peer: Peer, params: Params, redact: Callable[[Any], Any] | None, now: float) -> list[dict[str, Any]]:
    """What is said to this client for one message: nothing, the message, or before it how many were left out."""
    if not is_heard(peer, params.get("level")):
        return []
    meter: LogMeter | None = peer.log_meter
    if meter is None:
        meter = peer.log_meter = LogMeter(now)
    if not meter.admit(params["level"], now):
        return []
    message = without_secrets(params, redact or redact_secrets)
    return [notice for notice in (left_out_notice(peer, now, last=False), message) if notice is not None]


def left_out_notice(peer: Peer, now: float, *, last: bool) -> dict[str, Any] | None:
    """How many messages to this client did not fit since it was told last; None where there is nothing to tell."""
    meter: LogMeter | None = peer.log_meter
    notice = meter.left_out(now, last=last) if meter is not None else None
    return notice if notice is not None and is_heard(peer, notice["level"]) else None  # its level may be another now


def without_secrets(params: Params, redact: Callable[[Any], Any]) -> dict[str, Any] | None:
    """What cannot be redacted is not sent. Data that is no JSON is the author's mistake, and told to them."""
    told = dict(params)
    data = plain(told.get("data"))
    try:
        told["data"] = redact(data)
        if "logger" in told:
            told["logger"] = str(redact(str(told["logger"])))
    except Exception:
        log.exception("! a log message was left out: it could not be redacted")
        return None
    return told


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
