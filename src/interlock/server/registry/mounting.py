"""One server inside of another: what it offers stands in the outer one under a prefix, for as long as it is there.

A request for such an item goes through the whole inner server, so its filters, lifespans and its say about who sees
what stay in force. Tools and prompts are called `prefix_name`. Resources, templates and methods keep their names: a URI
is how resources link to each other, a method is what clients agreed upon.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import msgspec

from ...wire.errors import LocalError
from ...wire.exchange import Exchange, Handler, Result
from ...wire.types.completion import PromptRef
from ...wire.types.resources import ResourceTemplate
from ..tools.tool import LONGEST_TOOL_NAME
from .forwarding import Passed, renamed
from .registry import Offers

__all__ = ["Mount", "Mounted"]


class Mount:
    """A place where a server is mounted."""

    def __init__(self, prefix: str, server: Handler, inner: Offers, outer: Offers) -> None:
        if not (prefix.replace("_", "a").replace("-", "a").isalnum() and prefix.isascii()) and prefix:
            raise LocalError(f"{prefix!r} is no prefix: use letters, digits, '_' or '-', or nothing")
        self.prefix, self.inner, self.outer = prefix, inner, outer
        self._server = server

    def name_of(self, kind: str, name: str) -> str:
        """The name in the outer server."""
        if kind not in ("tools", "prompts") or not self.prefix:
            return name
        found = f"{self.prefix}_{name}"
        if kind == "tools" and len(found) > LONGEST_TOOL_NAME:
            raise LocalError(f"{found!r} is no tool name: it has more than {LONGEST_TOOL_NAME} characters")
        return found

    def wrap(self, kind: str, item: Any) -> Mounted:
        """What stands for an item in the outer server."""
        if kind in ("tools", "prompts"):
            noun = msgspec.structs.replace(item.noun, name=self.name_of(kind, item.noun.name))
            return (_Tool if kind == "tools" else _Prompt)(self, item, noun)
        if kind == "resources":
            return (_Template if isinstance(item.noun, ResourceTemplate) else _Resource)(self, item, item.noun)
        return _Method(self, item, None)

    def pass_on(self, exchange: Exchange) -> Awaitable[Result]:
        """The inner server's answer."""
        return self._server(exchange)


class Mounted:
    """Something of an inner server, in an outer one. What is not said here is as its origin says."""

    def __init__(self, place: Mount, origin: Any, noun: Any) -> None:
        self.place, self.origin, self.noun = place, origin, noun

    def __getattr__(self, name: str) -> Any:
        return getattr(self.origin, name)

    def complete(self, exchange: Exchange) -> Awaitable[Result]:
        """A completion for one of its arguments."""
        return self.place.pass_on(_as_it_is(exchange))


class _Tool(Mounted):
    @property
    def name(self) -> str:
        return self.noun.name

    def call(self, exchange: Exchange) -> Awaitable[Result]:
        return self.place.pass_on(renamed(exchange, "name", self.origin.noun.name))


class _Prompt(Mounted):
    def get(self, exchange: Exchange) -> Awaitable[Result]:
        return self.place.pass_on(renamed(exchange, "name", self.origin.noun.name))

    def complete(self, exchange: Exchange) -> Awaitable[Result]:
        return self.place.pass_on(renamed(exchange, "ref", PromptRef(name=self.origin.noun.name)))


class _Resource(Mounted):
    async def read(self, exchange: Exchange) -> list[Any]:
        return (await self.place.pass_on(_as_it_is(exchange)))["contents"]


class _Template(Mounted):
    async def read(self, uri: str, arguments: dict[str, Any], exchange: Exchange) -> list[Any]:
        return (await self.place.pass_on(_as_it_is(exchange)))["contents"]


class _Method(Mounted):
    async def __call__(self, exchange: Exchange) -> Result:
        return await self.place.pass_on(_as_it_is(exchange))


def _as_it_is(exchange: Exchange) -> Passed:
    return Passed(exchange, exchange.method, exchange.params, lambda: exchange.raw)
