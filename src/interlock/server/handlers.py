"""The answers to the methods of MCP, in the newest revision's words: one table from a method to what it leads to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
from msgspec import Raw

from ..revisions.revision import Revision
from ..revisions.table import names_of
from ..wire.errors import InvalidParams, MethodNotFound
from ..wire.exchange import Exchange, Handler, Principal, Result
from ..wire.messages import encode
from ..wire.meta import SERVER_INFO, check_capabilities
from ..wire.types.capabilities import ServerCapabilities
from ..wire.types.common import Implementation
from ..wire.types.completion import PromptRef
from .registry.paging import Catalogue, cache_hints
from .registry.registry import Offers

__all__ = [
    "Answers",
    "About",
    "declared",
]


_Declared = Mapping[str, Mapping[str, Any]]


class About:
    """The part of a server that is the same in every answer."""

    def __init__(
        self,
        info: Implementation,
        rows: dict[str, Revision],
        *,
        instructions: str | None = None,
        experimental: _Declared | None = None,
        extensions: _Declared | None = None,
        cache_seconds: float = 60.0,
        cache_scope: str = "private",
        identify: bool = True,
    ) -> None:
        check_capabilities(experimental, extensions)
        self.info, self.rows, self.instructions = info, rows, instructions
        self.declared = {
            "experimental": {key: dict(value) for key, value in (experimental or {}).items()},
            "extensions": {key: dict(value) for key, value in (extensions or {}).items()},
        }
        """What the author adds to the capabilities that are derived."""
        self.hints = cache_hints(cache_seconds, cache_scope)
        """What lists say to caches."""
        self.identity = {SERVER_INFO: Raw(encode(info))} if identify else {}
        """Who answers, as `_meta` says it."""

    def introduction(self, capabilities: ServerCapabilities, *, private: bool = False) -> Result:
        """The answer to `server/discover`."""
        found: Result = {
            "supportedVersions": names_of(self.rows),
            "capabilities": capabilities,
            **self.hints_for(private),
            **({"_meta": dict(self.identity)} if self.identity else {}),
        }
        return found | ({"instructions": self.instructions} if self.instructions else {})

    def hints_for(self, private: bool) -> dict[str, Any]:
        """What is not the same for everybody is in no shared cache, whatever the author said before."""
        return {**self.hints, "cacheScope": "private"} if private else self.hints


_LISTED = {"listChanged": True}
_FORMS: dict[str, dict[str, Any]] = {
    "tools": _LISTED,
    "resources": {"subscribe": True, **_LISTED},
    "prompts": _LISTED,
    "completions": {},
    "logging": {},
}


def declared(own: Mapping[str, Mapping[str, Any]], **offered: bool) -> ServerCapabilities:
    """What is offered in its declared form, and what the author adds in a mapping of its own, if it is not empty."""
    found: dict[str, Any] = {name: form for name, form in _FORMS.items() if offered.get(name)}
    return msgspec.convert(found | {name: value for name, value in own.items() if value}, ServerCapabilities)


class Answers:
    """What one server says when it is asked by a method of MCP."""

    def __init__(self, about: About, offers: Offers) -> None:
        self._about, self._offers, self._tools, self._tool_of = about, offers, offers.tools, offers.tools.get
        self.lends_pages = True
        """False once somebody may change a result: he gets his own of what is kept for all."""

    def table(self) -> dict[str, Handler]:
        offers = self._offers
        return {
            "tools/call": self._call_tool,
            "server/discover": self._discover,
            "tools/list": self._list_tools,
            "resources/list": self._list_resources,
            "resources/templates/list": self._list_templates,
            "resources/read": offers.resources.read,
            "prompts/list": self._list_prompts,
            "prompts/get": self._get_prompt,
            "completion/complete": self._complete,
            "subscriptions/listen": self._listen,
        }

    def capabilities(self) -> ServerCapabilities:
        return declared(self._about.declared, **self._offers.kinds())

    async def _discover(self, exchange: Exchange) -> Result:
        return self._about.introduction(self.capabilities(), private=self._offers.limited)

    # --- lists ------------------------------------------------------------------------------------

    def _list(self, catalogue: Catalogue[Any], offered: bool, exchange: Exchange) -> Result:
        if not offered:
            raise MethodNotFound(f"This server does not offer {exchange.method.partition('/')[0]}")
        limited = self._offers.limited
        page = catalogue.page(
            exchange.params.cursor,
            self._about.hints_for(limited),
            self._shown_to(exchange.peer.principal) if limited else None,
        )
        if self.lends_pages:
            return page
        return {name: [*value] if isinstance(value, list) else value for name, value in page.items()}

    def _shown_to(self, principal: Principal) -> Callable[[Any], bool]:
        return lambda item: not self._offers.hides(item, principal)

    async def _list_tools(self, exchange: Exchange) -> Result:
        return self._list(self._tools, self._tools.offered, exchange)

    async def _list_resources(self, exchange: Exchange) -> Result:
        return self._list(self._offers.resources.fixed, self._offers.resources.offered, exchange)

    async def _list_templates(self, exchange: Exchange) -> Result:
        return self._list(self._offers.resources.templates, self._offers.resources.offered, exchange)

    async def _list_prompts(self, exchange: Exchange) -> Result:
        return self._list(self._offers.prompts, self._offers.prompts.offered, exchange)

    # --- what is named ----------------------------------------------------------------------------

    def _call_tool(self, exchange: Exchange) -> Awaitable[Result]:
        tool_of = self._tool_of
        tool = tool_of(exchange.params.name)
        if tool is None or (self._offers.limited and self._offers.hides(tool, exchange.peer.principal)):
            if not self._tools.offered:
                raise MethodNotFound("This server does not offer tools")
            raise InvalidParams(f"Unknown tool: {exchange.params.name[:200]!r}")
        return tool.call(exchange)

    async def _get_prompt(self, exchange: Exchange) -> Result:
        prompt = self._offers.referred(exchange.params.name, None, exchange.peer.principal)
        if prompt is None:
            if not self._offers.prompts.offered:
                raise MethodNotFound("This server does not offer prompts")
            raise InvalidParams(f"Unknown prompt: {exchange.params.name[:200]!r}")
        return await prompt.get(exchange)

    def _complete(self, exchange: Exchange) -> Awaitable[Result]:
        ref = exchange.params.ref
        prompt, template = (ref.name, None) if isinstance(ref, PromptRef) else (None, ref.uri)
        found = self._offers.referred(prompt, template, exchange.peer.principal)
        if getattr(found, "origin", None) is not None:  # of a server that is mounted here, and completes it
            return found.complete(exchange)
        return self._offers.completions.complete(exchange, hidden=found is None)

    # --- what lasts -------------------------------------------------------------------------------

    async def _listen(self, exchange: Exchange) -> Result:
        return await self._offers.changes.listen(exchange, self.capabilities())
