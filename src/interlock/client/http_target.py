"""An endpoint as the target of a client. Imported with the first URL: who talks to a process needs none of this."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import Token
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from ..auth.client.driver import Authorizer, Turn
from ..auth.client.providers import Plan
from ..protocol.client.identity import Identity
from ..revisions.revision import Revision
from ..transport.http.client.call_headers import call_headers, with_headers
from ..transport.http.client.link import HttpLink
from ..transport.http.client.probe import HttpProber
from ..web.outbound.endpoint import Endpoint
from ..wire.errors import ConnectionEnded
from ..wire.limits import Limits

__all__ = ["HttpTarget"]

OnNotice = Callable[[str, dict[str, Any]], None]
OnEnd = Callable[[ConnectionEnded], None]


class HttpTarget:
    """It has no channel: it makes the link itself, and is asked for its era in a way of its own."""

    pings = False  # no connection that could die unnoticed: every request opens or finds one

    def __init__(
        self,
        endpoint: Endpoint,
        limits: Limits,
        renewed: Callable[[], Endpoint] | None = None,
        auth: Plan | None = None,
    ) -> None:
        """`renewed` gives it anew for every connection: its headers may have changed since."""
        self.authorizer = Authorizer(auth, endpoint) if auth is not None else None
        self.endpoint, self.limits, self._renewed = endpoint, limits, renewed
        # A verdict holds for the origin (COMPAT-007), but one origin may have servers of both eras behind its paths.
        self.key = (endpoint.origin, urlsplit(endpoint.url).path)
        self.name = endpoint.label

    def say(self, headers: Mapping[str, str] | None) -> Token[Any]:
        """What is sent from here on, in this task, has these headers too; a call without any has none of another's."""
        own = with_headers(self.endpoint, headers) if headers else None
        return call_headers.set((None, {}) if own is None else (self.endpoint, own))

    def unsay(self, before: Token[Any]) -> None:
        call_headers.reset(before)

    @property
    def prober(self) -> Callable[..., HttpProber]:
        return HttpProber if self.authorizer is None else self._authorized

    def _authorized(self, dial: Any, rows: dict[str, Revision], me: Identity, **more: Any) -> HttpProber:
        if self.authorizer is not None:
            self.authorizer.speak(rows)
        return HttpProber(dial, rows, me, **more)

    def link(self, on_notice: OnNotice, on_end: OnEnd | None = None) -> HttpLink:
        call_headers.set((None, {}))  # a connection is everybody's, whoever's call opens it
        if self._renewed is not None:
            self.endpoint = self._renewed()
        begin = None if self.authorizer is None else partial(Turn, self.authorizer)
        return HttpLink(self.endpoint, self.limits, on_notice, on_end, begin)
