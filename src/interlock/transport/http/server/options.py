"""What can be said about an HTTP endpoint, as `Server.asgi` and `Server.run` take it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypedDict

from ....auth.resource_server.protection import Protection
from .authentication import Authenticate
from .backends import Shared
from .request import Timing
from .sessions import SessionBounds

__all__ = ["HttpOptions"]


class HttpOptions(TypedDict, total=False):
    """What can be said about an endpoint; the defaults stand at `HttpApp`."""

    path: str
    allowed_hosts: Iterable[str]
    allowed_origins: Iterable[str]
    authenticate: Authenticate | None
    auth: Protection | None
    body_bytes: int
    timing: Timing
    sessions: SessionBounds | None
    state: Shared | None
    health: str | None
    always_stream: bool
    trusted_proxies: Iterable[str]
    strict_json: bool | None
