"""What a server keeps for its handlers. They find it through their own request, so nothing is ambient."""

from __future__ import annotations

from typing import Any

from ..wire.errors import LocalError
from ..wire.exchange import Exchange, Handler

__all__ = ["Home", "home_of"]


class _Nothing:
    """No such lifespan was written; None may be what one yields."""


_NOTHING: Any = _Nothing()


class Home:
    """The server that answers a request, and what its lifespans yielded for it."""

    __slots__ = ("app", "connection", "request", "server")

    def __init__(self, server: Handler) -> None:
        self.server = server
        self.app = self.connection = self.request = _NOTHING

    def yielded(self, name: str) -> Any:
        value = getattr(self, name)
        if value is _NOTHING:
            raise LocalError(f"ctx.{name} is what @server.{name}_lifespan yields, and this server has none")
        return value


def home_of(exchange: Exchange) -> Home:
    home: Home | None = getattr(exchange, "home", None)
    if home is None:
        raise LocalError("this request is answered by no Server")
    return home
