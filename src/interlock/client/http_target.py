"""An endpoint as the target of a client. Imported with the first URL: who talks to a process needs none of this."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from ..auth.plans import Plan
from ..revisions.http_probing import HttpProber
from ..transport.authorizing import Authorizer, Turn
from ..transport.endpoints import Endpoint
from ..transport.http_client import HttpLink
from ..wire.errors import ConnectionEnded
from ..wire.limits import Limits

__all__ = ["HttpTarget"]

OnNotice = Callable[[str, dict[str, Any]], None]
OnEnd = Callable[[ConnectionEnded], None]


class HttpTarget:
    """It has no channel: it makes the link itself, and is asked for its era in a way of its own."""

    prober = HttpProber
    pings = False  # no connection that could die unnoticed: every request opens or finds one

    def __init__(self, endpoint: Endpoint, limits: Limits, auth: Plan | None = None) -> None:
        self.endpoint, self.limits = endpoint, limits
        self.authorizer = Authorizer(auth, endpoint) if auth is not None else None
        # A verdict holds for the origin (COMPAT-007), but one origin may have servers of both eras behind its paths.
        self.key = (endpoint.origin, urlsplit(endpoint.url).path)
        self.name = endpoint.origin

    def link(self, on_notice: OnNotice, on_end: OnEnd | None = None) -> HttpLink:
        begin = None if self.authorizer is None else partial(Turn, self.authorizer)
        return HttpLink(self.endpoint, self.limits, on_notice, on_end, begin)
