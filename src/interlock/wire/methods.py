"""A method is a row: who sends it, what its params are, what it needs and what it may do.

Only facts that hold in every revision stand here. Which revision has which method is said in `revisions/`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from .json.decoder import decoder
from .json.reader import JsonReader
from .types.common import Noun
from .types.completion import CompleteParams
from .types.lifecycle import EmptyParams, InitializeParams, SetLevelParams
from .types.notifications import ListenParams
from .types.prompts import GetPromptParams
from .types.resources import ResourceParams
from .types.tools import CallToolParams, ListParams

__all__ = ["Method", "METHODS", "AUTHOR_METHOD"]


class Method(msgspec.Struct, frozen=True, kw_only=True):
    """One request that a client may send."""

    name: str
    params: type[Noun]
    gate: str | None = None
    """The server capability it stands behind."""
    cacheable: bool = False
    """Carries ttlMs and cacheScope (server/utilities/caching)."""
    may_ask: bool = False
    """May its handler ask the client something before it answers?"""
    named_by: str | None = None
    """The member of params that names its object (`Mcp-Name` over HTTP)."""
    decoder: JsonReader[Any]


def _row(name: str, params: type[Noun], gate: str | None = None, **facts: Any) -> Method:
    return Method(name=name, params=params, gate=gate, decoder=decoder(params), **facts)


_ROWS = (
    _row("server/discover", EmptyParams, cacheable=True),
    _row("tools/list", ListParams, "tools", cacheable=True),
    _row("tools/call", CallToolParams, "tools", may_ask=True, named_by="name"),
    _row("resources/list", ListParams, "resources", cacheable=True),
    _row("resources/templates/list", ListParams, "resources", cacheable=True),
    _row("resources/read", ResourceParams, "resources", cacheable=True, may_ask=True, named_by="uri"),
    _row("prompts/list", ListParams, "prompts", cacheable=True),
    _row("prompts/get", GetPromptParams, "prompts", may_ask=True, named_by="name"),
    _row("completion/complete", CompleteParams, "completions"),
    _row("subscriptions/listen", ListenParams),
    # the old verbs: only the handshake edge ever sees them
    _row("initialize", InitializeParams),
    _row("ping", EmptyParams),
    _row("logging/setLevel", SetLevelParams, "logging"),
    _row("resources/subscribe", ResourceParams, "resources.subscribe"),
    _row("resources/unsubscribe", ResourceParams, "resources.subscribe"),
)

METHODS: dict[str, Method] = {row.name: row for row in _ROWS}
AUTHOR_METHOD = _row("", EmptyParams)  # what a request of an author's own method is read as: its `_meta` alone
