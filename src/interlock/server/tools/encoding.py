"""JSON of what authors return: all that msgspec knows, models that describe themselves (pydantic's way), paths, and the
kinds of lists and mappings that Python has besides its own two."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Mapping, MappingView, Set
from types import GeneratorType
from typing import Any, cast

import msgspec

__all__ = ["encode_data"]

_LISTS = (deque, range, Set, MappingView, GeneratorType)  # by name: tables of other libraries can be gone through, too


def _to_plain(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True)
    if (paths := sys.modules.get("pathlib")) is not None and isinstance(value, paths.PurePath):
        return str(value)  # who has a path has loaded its module; nobody else needs it
    if hasattr(cast("type[Any]", type(value)), "__get_pydantic_core_schema__"):  # a URL, a secret: none of its models
        return cast(Any, sys.modules["pydantic_core"]).to_jsonable_python(value)
    if isinstance(value, Mapping):
        return dict(cast("Mapping[Any, Any]", value))
    if isinstance(value, _LISTS):
        return list(cast("Set[Any]", value))
    from ..content import Media  # a server whose tools give texts starts without it

    if isinstance(value, Media):
        return value.block
    raise NotImplementedError(f"{type(value).__qualname__} is no JSON")


encode_data = msgspec.json.Encoder(enc_hook=_to_plain).encode
"""Any value an author returns, as JSON."""
