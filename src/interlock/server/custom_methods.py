"""Methods and notifications of an author's own, for clients that know them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Raw

from ..revisions.table import OFFICIAL_METHODS
from ..wire.errors import InvalidParams, LocalError
from ..wire.exchange import Exchange, Result
from .context import Context
from .execution.invoke import caller_of
from .execution.thread_pool import Threads
from .schema.signature import read_signature

__all__ = ["Heard", "OwnMethod", "check_method", "check_notification"]

log = logging.getLogger("interlock.server")
_NO_PARAMS = Raw(b"{}")


def check_method(name: str) -> None:
    if name in OFFICIAL_METHODS or name.startswith("notifications/"):
        raise LocalError(f"{name!r} belongs to MCP: choose a name of your own, like 'example/report'")


def check_notification(name: str) -> None:
    if not name.startswith("notifications/"):
        raise LocalError(f"{name!r}: names of notifications start with 'notifications/'")


class OwnMethod:
    """A Handler made of a function: the params become its arguments, the mapping it returns becomes the result."""

    def __init__(self, function: Callable[..., Any], threads: Threads) -> None:
        signature = read_signature(function, Context)
        self.takes_context = signature.context is not None
        self._decode = signature.decoder.decode
        self._call = caller_of(function, signature, threads)

    async def __call__(self, exchange: Exchange) -> Result:
        try:
            arguments = msgspec.structs.asdict(self._decode(exchange.raw or _NO_PARAMS))
        except msgspec.ValidationError as error:
            raise InvalidParams(f"Invalid params: {str(error).replace('`', chr(39))}") from None
        return dict(await self._call(arguments, exchange) or {})


class Heard:
    """A notification that any number may hear: each in turn, and nobody's failure keeps it from the others."""

    def __init__(self, *all: Any) -> None:
        self.all = all
        self.takes_context = any(each.takes_context for each in all)

    def and_by(self, handler: Any) -> Heard:
        """A mounted server is told once, and tells its own."""
        place = getattr(handler, "place", None)
        known = place is not None and any(getattr(each, "place", None) is place for each in self.all)
        return self if known else Heard(*self.all, handler)

    async def __call__(self, exchange: Exchange) -> Result:
        failed: list[Exception] = []
        for handler in self.all:
            try:
                await handler(exchange)
            except Exception as error:
                failed.append(error)
        for error in failed[1:]:
            log.error("! handling the notification %.200r failed", exchange.method, exc_info=error)
        if failed:
            raise failed[0]
        return {}
