"""How long an HTTP endpoint waits for what, and why a request may end before its answer."""

from __future__ import annotations

from enum import Enum

import msgspec

__all__ = ["End", "Timing"]


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """How long an endpoint waits for what, in seconds."""

    body: float = 30.0
    """For credentials to be checked and the body to come; then it is 503 or 408."""
    quiet: float = 15.0
    """Between two comments on an open stream."""
    stalled: float = 60.0
    """For the client to take what was written; then it counts as gone."""
    watch: float = 0.05
    """Until the connection of a running call is watched, at the latest: most calls are over by half of that."""


class End(Enum):
    """Why a call ends before its answer."""

    GONE = "the client went away"
    STALLED = "the client does not read"
    LATE = "the body did not come in time"
    UNCHECKED = "the credentials were not checked in time"
    STOPPING = "the server is stopping"
    EXPIRED = "the access token has expired: call again with a new one"
    REVOKED = "the sessions of this caller were ended"
