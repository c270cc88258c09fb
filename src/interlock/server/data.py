"""JSON of what authors return: all that msgspec knows, models that describe themselves (pydantic's way), and paths."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

import msgspec

from .blocks import Media

__all__ = ["encode_data", "from_plain", "schema_hook"]


def schema_hook(kind: Any) -> dict[str, Any]:
    """The schema of such a type, for msgspec to put in its place."""
    if hasattr(kind, "model_json_schema") and hasattr(kind, "model_validate"):
        return dict(kind.model_json_schema(mode="serialization", ref_template="#/$defs/{model}"))
    if isinstance(kind, type) and issubclass(kind, PurePath):
        return {"type": "string"}
    raise NotImplementedError


def from_plain(kind: Any, value: Any) -> Any:
    """Plain data as such a type; raises where it does not fit."""
    return kind.model_validate(value) if hasattr(kind, "model_validate") else kind(value)


def _to_plain(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True)
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, Media):
        return value.block
    raise NotImplementedError(f"{type(value).__qualname__} is no JSON")


encode_data = msgspec.json.Encoder(enc_hook=_to_plain).encode
"""Any value an author returns, as JSON."""
