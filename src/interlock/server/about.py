"""What a server says about itself: its name, its revisions, its hints for caches, what it adds to its capabilities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Raw

from ..revisions.revision import Revision
from ..revisions.table import names_of
from ..wire.exchange import Result
from ..wire.frames import encode
from ..wire.meta import SERVER_INFO, check_capabilities
from ..wire.types.capabilities import ServerCapabilities
from ..wire.types.common import Implementation
from .pages import cache_hints

__all__ = ["About"]

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
