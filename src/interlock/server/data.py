"""JSON of what authors return: all that msgspec knows, models that describe themselves (pydantic's way), and paths."""

from __future__ import annotations

import sys
from typing import Any

import msgspec

__all__ = ["encode_data"]


def _to_plain(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True)
    if (paths := sys.modules.get("pathlib")) is not None and isinstance(value, paths.PurePath):
        return str(value)  # who has a path has loaded its module; nobody else needs it
    from .blocks import Media  # a server whose tools give texts starts without it

    if isinstance(value, Media):
        return value.block
    raise NotImplementedError(f"{type(value).__qualname__} is no JSON")


encode_data = msgspec.json.Encoder(enc_hook=_to_plain).encode
"""Any value an author returns, as JSON."""
