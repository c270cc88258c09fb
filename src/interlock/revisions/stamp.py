"""What every result of the stateless era says of itself: that it is complete, and who made it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Raw

from ..wire.exchange import Result
from ..wire.frames import encode

__all__ = ["NO_STAMP", "Stamp"]


class Stamp:
    """Set on results by the edge, so that revisions without it never make it. A handler brings its own as `.stamp`."""

    __slots__ = ("_alone", "_meta")

    def __init__(self, meta: Mapping[str, Any] | None = None) -> None:
        self._meta = dict(meta or {})
        self._alone = Raw(encode(self._meta)) if self._meta else None

    def on(self, result: Result) -> Result:
        """A result with its type (2026-07-28 basic/index#result-type) and its maker; what it says itself stays."""
        said: Result = {"resultType": "complete", **result}
        if self._alone is not None:
            meta: dict[str, Any] | None = said.get("_meta")
            said["_meta"] = {**self._meta, **meta} if meta else self._alone
        return said


NO_STAMP = Stamp()
