"""The stateless era over HTTP, client side: what a server wants said in headers as well (`x-mcp-header`).

Only here: other carriers have no headers, and their clients may ignore the annotation (XHDR-013).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from time import monotonic
from typing import Any, cast

from ....protocol.client.identity import Identity
from ....protocol.client.stateless import StatelessClient, rest_of
from ....protocol.input.callback import result_of
from ....revisions.revision import Revision
from ....wire.channel import Link, Patience
from ....wire.errors import HeaderMismatch, InterlockError, LocalError
from ....wire.escaping import display
from ....wire.exchange import Exchange, Result
from ..param_headers import ParamHeader, headers_of, read_param_headers

__all__ = ["StatelessHttpClient"]

log = logging.getLogger("interlock.client")
_REMEMBERED = 10_000  # tools with headers; beyond it the one listed longest ago is forgotten and called without
_PAGES = 100  # of the list that is read again after a mismatch; a tool further back is not looked for
_LOGGED = 100  # warnings about tools left out; a server that lists more of them is not worth the log


class StatelessHttpClient(StatelessClient):
    """Remembers, from the lists that pass by, which arguments travel as `Mcp-Param-*` headers too."""

    def __init__(self, link: Link, revision: Revision, me: Identity, discovered: Mapping[str, Any]) -> None:
        super().__init__(link, revision, me, discovered)
        self._params: dict[str, tuple[ParamHeader, ...]] = {}
        self._left_out = 0

    def offers(self, gate: str) -> bool:
        """A server that declares nothing at all is asked nevertheless.

        Over HTTP every request stands alone, and whoever lacks a method must answer -32601 (HTTP-029): asking costs
        one request and harms nobody. Servers exist that leave `capabilities` empty and still serve tools, and no
        row of 2026-07-28 forbids the question. Who declares something is taken at its word.
        """
        return super().offers(gate) or not self.discovered.get("capabilities")

    def headers_of(self, method: str, params: Mapping[str, Any]) -> Mapping[str, str]:
        """Nothing for a tool that was never listed: its schema is not known (XHDR-027)."""
        if method != "tools/call":
            return {}
        name, arguments = params.get("name"), params.get("arguments")
        if not isinstance(name, str) or not isinstance(arguments, Mapping):
            return {}
        return headers_of(self._params.get(name, ()), cast("Mapping[str, Any]", arguments))

    async def carry(self, exchange: Exchange, params: Mapping[str, Any], meta: Mapping[str, Any]) -> Result:
        if exchange.method == "tools/list":
            return self._usable(await super().carry(exchange, params, meta))
        began, given = monotonic(), exchange.patience or Patience()
        try:
            return await super().carry(exchange, params, meta)
        except HeaderMismatch:
            exchange.patience = rest_of(given, began, exchange.method)
            if exchange.method != "tools/call" or not await self._learned(exchange, params, meta):
                raise
        exchange.patience = rest_of(given, began, exchange.method)
        return await super().carry(exchange, params, meta)  # once, with the headers of the new list (XHDR-025)

    def _usable(self, result: Result) -> Result:
        """The list without the tools whose annotations break a rule (XHDR-011); the rest is remembered."""
        tools = result.get("tools")
        if not isinstance(tools, list):
            return result
        return {**result, "tools": [tool for tool in cast("list[Any]", tools) if self._is_usable(tool)]}

    def _is_usable(self, tool: Any) -> bool:
        if not isinstance(tool, dict):
            return True  # malformed in another way: whoever reads the list says so
        members = cast("dict[str, Any]", tool)
        name, schema = members.get("name"), members.get("inputSchema")
        if not isinstance(name, str) or not isinstance(schema, dict):
            return True
        known = self._params
        known.pop(name, None)
        try:
            found = read_param_headers(cast("dict[str, Any]", schema))
        except LocalError as broken:
            self._left_out += 1
            if self._left_out <= _LOGGED:
                log.warning("! the tool %r was left out: %s", display(name, 100), display(str(broken), 200))
            return False
        if found:
            known[name] = found
            if len(known) > _REMEMBERED:
                del known[next(iter(known))]
        return True

    async def _learned(self, exchange: Exchange, params: Mapping[str, Any], meta: Mapping[str, Any]) -> bool:
        """Read the list again, up to the tool; True when the call now has other headers than those refused."""
        before = self.headers_of("tools/call", params)
        try:
            await self._list_until(params.get("name"), cast(Patience, exchange.patience), meta)
        except InterlockError as error:
            log.debug("= the list of tools could not be read again: %.200r", str(error))
            return False
        return self.headers_of("tools/call", params) != before

    async def _list_until(self, name: Any, patience: Patience, meta: Mapping[str, Any]) -> None:
        cursor: dict[str, Any] = {}
        for _ in range(_PAGES):
            frame = await self.link.call("tools/list", cursor, meta, patience=patience)
            result = result_of(frame, "tools/list", self.revision)
            self._usable(result)
            further = result.get("nextCursor")
            if not isinstance(further, str) or _names(result, name):
                return
            cursor = {"cursor": further}


def _names(result: Result, name: Any) -> bool:
    tools: Any = result.get("tools")
    return isinstance(tools, list) and any(
        isinstance(tool, dict) and cast("dict[str, Any]", tool).get("name") == name for tool in cast("list[Any]", tools)
    )
