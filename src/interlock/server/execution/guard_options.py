"""The options of `Guards`, for who takes them all by name. Only for types: no server loads this."""

from __future__ import annotations

from typing import TypedDict

from .concurrency import Concurrency
from .guards import Redact, Sanitize
from .rate_limits import RateLimits

__all__ = ["GuardOptions"]


class GuardOptions(TypedDict, total=False):
    """What can be said to a `Server` about its guards; the defaults stand at `Guards`."""

    timeout: float | None
    concurrency: Concurrency | int | None
    rate_limits: RateLimits | None
    sanitize: Sanitize | None
    redact: Redact | None
    stall_seconds: float | None
