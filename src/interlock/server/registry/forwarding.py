"""A request handed on inside of one process: to a mounted server, or from a handler to a resource beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Raw

from ...protocol.throttling import without_secrets
from ...wire.exchange import Exchange, Params, Question, Result, Timer
from ...wire.messages import encode

__all__ = ["Passed", "renamed"]

_members = msgspec.json.Decoder(dict[str, Raw])


class Passed(Exchange):
    """The same request in other words. Who asks, and all that is said and asked meanwhile, stays the first one's.

    What is not set here (`peer`, `meta`, `live`, the carrier, …) is looked up there, at the moment it is wanted: a run
    that waits for answers goes on under the request that brings them.
    """

    __slots__ = ("_words", "first")

    def __init__(self, first: Exchange, method: str, params: Any, words: Callable[[], Raw | None]) -> None:
        self.first = first
        self.method = method
        self.params = params
        self._words = words

    def __getattr__(self, name: str) -> Any:
        if name == "raw":
            self.raw = self._words()
            return self.raw
        return None if name == "redact" else getattr(self.first, name)

    def silence(self) -> None:
        self.first.silence()

    async def notify(self, method: str, params: Params) -> None:
        """A mounted server takes its secrets out of its log messages before anybody else sees them."""
        redact: Callable[[Any], Any] | None = self.redact
        if method == "notifications/message" and redact is not None:
            said = without_secrets(params, redact)
            if said is None:
                return
            params = said
        await self.first.notify(method, params)

    async def release_stream(self, retry_ms: int) -> bool:
        return await self.first.release_stream(retry_ms)

    async def ask(self, question: Question) -> Result:
        """The time of the run stands still meanwhile, as it does for a run of the first one."""
        timer: Timer | None = getattr(self, "timer", None)
        if timer is None:
            return await self.first.ask(question)
        timer.pause()
        try:
            return await self.first.ask(question)
        finally:
            timer.resume()

    async def once(self, key: str, act: Callable[[], Any]) -> bytes:
        return await self.first.once(key, act)

    def begin_once(self, key: str) -> bytes | None:
        return self.first.begin_once(key)

    def end_once(self, key: str, result: bytes | None) -> None:
        self.first.end_once(key, result)


def renamed(exchange: Exchange, member: str, value: Any) -> Passed:
    """The request with one member of its params replaced; nothing is encoded unless somebody reads the raw words."""
    params = msgspec.structs.replace(exchange.params, **{member: value})

    def words() -> Raw | None:
        if exchange.raw is None:
            return None
        return Raw(encode({**_members.decode(exchange.raw), member: value}))

    return Passed(exchange, exchange.method, params, words)
