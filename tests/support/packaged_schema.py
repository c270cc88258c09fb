"""A second source: the JSON Schema of the wire models of `mcp-types`, which has the two newest revisions."""

from __future__ import annotations

import importlib
import types
from collections.abc import Iterator
from typing import Any

from pydantic import TypeAdapter

from support.schema_source import Document

__all__ = ["PACKAGED", "load_packaged_document"]

PACKAGED = {"2025-11-25": "mcp_types._v2025_11_25", "2026-07-28": "mcp_types._v2026_07_28"}
DIALECT = "https://json-schema.org/draft/2020-12/schema"
IMPORTED = frozenset({"Annotated", "Any", "Literal", "Union", "ConfigDict", "Field", "WireModel", "TypeAliasType"})


def load_packaged_document(revision: str) -> Document:
    module = importlib.import_module(PACKAGED[revision])
    adapters = [(name, "validation", TypeAdapter(kind)) for name, kind in wire_types(module)]
    named, shared = TypeAdapter.json_schemas(adapters, by_alias=True)
    definitions = {name: schema for (name, _mode), schema in named.items()} | shared["$defs"]
    forbid_explicit_null(definitions)
    return Document(revision, DIALECT, definitions)


def wire_types(module: types.ModuleType) -> Iterator[tuple[str, Any]]:
    """Models and type aliases a wire module defines itself, without what it imported to write them."""
    for name, value in vars(module).items():
        if name[0].isupper() and name not in IMPORTED:
            yield name, value


def forbid_explicit_null(schema: Any) -> None:
    """Undo ``T | None = None``: pydantic's way to say "may be absent" must not allow a null on the wire."""
    if isinstance(schema, list):
        for part in schema:
            forbid_explicit_null(part)
    if not isinstance(schema, dict):
        return
    for part in schema.values():
        forbid_explicit_null(part)
    if isinstance(schema.get("anyOf"), list) and schema.get("default", 0) is None:
        del schema["default"]
        kept = [branch for branch in schema.pop("anyOf") if branch != {"type": "null"}]
        schema.update(kept[0] if len(kept) == 1 else {"anyOf": kept})
