"""Where the schema of a revision comes from, and the repairs it needs before it may judge anything.

Two sources, in this order:

* the official ``schema.json`` files, which live beside the repository and are not part of it;
* the package ``mcp-types``, if it happens to be installed: its wire models of the two newest revisions are
  turned back into JSON Schema.

A revision with neither source is *unchecked*: tests say so and skip, they never pass silently.
"""

from __future__ import annotations

import importlib
import json
import types
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
HANDSHAKE_REVISIONS = REVISIONS[:4]
MODERN_REVISION = REVISIONS[4]

SCHEMA_DIR = Path(__file__).resolve().parents[3] / "shared" / "spec" / "schema"
PACKAGED = {"2025-11-25": "mcp_types._v2025_11_25", "2026-07-28": "mcp_types._v2026_07_28"}
DIALECT_2020 = "https://json-schema.org/draft/2020-12/schema"

Schema = dict[str, Any]


@dataclass(frozen=True)
class Document:
    """The repaired definitions of one revision; ``keyword`` is what they stand under."""

    revision: str
    dialect: str
    keyword: str
    definitions: dict[str, Schema]
    source: str

    def reference(self, name: str) -> Schema:
        return {"$ref": f"#/{self.keyword}/{name}"}

    def referred(self, schema: Schema) -> str | None:
        """The definition a schema points at, if it is nothing but a pointer."""
        target = schema.get("$ref")
        return None if target is None else target.rsplit("/", 1)[1]

    def resolve(self, schema: Schema) -> Schema:
        """Follow pointers until a schema that says something itself."""
        while (name := self.referred(schema)) is not None:
            schema = self.definitions[name]
        return schema


@cache
def load_document(revision: str) -> Document | None:
    """The repaired schema of ``revision``, or None where no source has it."""
    if revision not in REVISIONS:
        raise ValueError(f"unknown revision {revision!r}")
    document = official_document(revision) or packaged_document(revision)
    if document is not None:
        repair(document)
    return document


def official_document(revision: str) -> Document | None:
    path = SCHEMA_DIR / revision / "schema.json"
    if not path.is_file():
        return None
    content = json.loads(path.read_text(encoding="utf-8"))
    keyword = "$defs" if "$defs" in content else "definitions"
    return Document(revision, content["$schema"], keyword, content[keyword], "official")


# --- mcp-types: pydantic models back to JSON Schema ---


def packaged_document(revision: str) -> Document | None:
    if revision not in PACKAGED:
        return None
    try:
        pydantic = importlib.import_module("pydantic")
        module = importlib.import_module(PACKAGED[revision])
    except ImportError:
        return None
    adapters = [(name, "validation", pydantic.TypeAdapter(kind)) for name, kind in wire_types(module)]
    named, shared = pydantic.TypeAdapter.json_schemas(adapters, by_alias=True)
    definitions = dict(shared["$defs"])
    for (name, _mode), schema in named.items():
        definitions.setdefault(name, schema)
    for schema in definitions.values():
        forbid_explicit_null(schema)
    return Document(revision, DIALECT_2020, "$defs", definitions, "mcp-types")


def wire_types(module: types.ModuleType) -> Iterator[tuple[str, Any]]:
    """Models and type aliases a wire module defines itself, without what it imported to write them."""
    for name, value in vars(module).items():
        imported = name in {
            "Annotated",
            "Any",
            "Literal",
            "Union",
            "ConfigDict",
            "Field",
            "WireModel",
            "TypeAliasType",
        }
        if name[0].isupper() and not imported:
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


# --- Repairs: places where the generated JSON Schema says something else than the specification ---

ELICITED_SCALAR = {"type": ["string", "number", "boolean"]}
ELICITED_VALUE = {"anyOf": [{"type": "array", "items": {"type": "string"}}, ELICITED_SCALAR]}


def repair(document: Document) -> None:
    """Put right what the schema generator narrowed or lost (handshake guide, section 14)."""
    definitions = document.definitions
    if elicited := definitions.get("ElicitResult"):
        # SCH-19: TypeScript's `number` in a union came out as `integer`.
        older = document.revision == "2025-06-18"
        elicited["properties"]["content"]["additionalProperties"] = deepcopy(
            ELICITED_SCALAR if older else ELICITED_VALUE
        )
    for bound in ("default", "minimum", "maximum"):
        if bound in (numbers := definitions.get("NumberSchema", {}).get("properties", {})):
            numbers[bound] = {"type": "number"}
    # The file tagged 2025-03-26 lost Resource.size; later copies have it again.
    definitions["Resource"]["properties"].setdefault("size", {"type": "integer"})
    if "JSONValue" in definitions:
        # The same narrowing once more, and the union's `null` was dropped altogether.
        value = document.reference("JSONValue")
        definitions["JSONValue"] = {
            "anyOf": [
                {"type": "object", "additionalProperties": value},
                {"type": "array", "items": value},
                {"type": ["string", "number", "boolean", "null"]},
            ]
        }
