"""The schema of each revision: facts kept in tests/schemas, and the repairs they need before they may judge anything.

tools/schema_facts.py writes the facts from the official files; tests compare them with those files where they are at
hand, and with the package `mcp-types`, a second source for the two newest revisions. A revision without its facts
raises: a check that cannot check must not pass.
"""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from support.schema_notation import POINTER, Schema, read_schema

REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
HANDSHAKE_REVISIONS = REVISIONS[:4]
MODERN_REVISION = REVISIONS[4]

FACTS_FOLDER = Path(__file__).resolve().parents[1] / "schemas"
EXAMPLES_FILE = f"{MODERN_REVISION}-examples.txt"
OFFICIAL_FOLDER = Path(__file__).resolve().parents[3] / "shared" / "spec" / "schema"  # only compared with


@dataclass(frozen=True)
class Document:
    """The repaired definitions of one revision."""

    revision: str
    dialect: str
    definitions: dict[str, Schema]

    def reference(self, name: str) -> Schema:
        return {"$ref": POINTER + name}

    def referred(self, schema: Schema) -> str | None:
        """The definition a schema points at, if it is nothing but a pointer."""
        target = schema.get("$ref")
        return None if target is None else target.removeprefix(POINTER)

    def resolve(self, schema: Schema) -> Schema:
        """Follow pointers until a schema that says something itself."""
        while (name := self.referred(schema)) is not None:
            schema = self.definitions[name]
        return schema


@cache
def load_document(revision: str) -> Document:
    """The repaired schema of `revision`."""
    if revision not in REVISIONS:
        raise ValueError(f"unknown revision {revision!r}")
    content = read_schema(_read(f"{revision}.txt"))
    document = Document(revision, content["$schema"], content["$defs"])
    repair(document)
    return document


def load_examples() -> dict[str, Any]:
    """`definition/name` → value, for the official examples of the newest revision; sentences in them are replaced."""
    lines = [line.partition(" ") for line in _read(EXAMPLES_FILE).splitlines() if not line.startswith("#")]
    return {name: json.loads(text) for name, _, text in lines}


def _read(name: str) -> str:
    path = FACTS_FOLDER / name
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing, so nothing can be checked: restore it with git checkout")
    return path.read_text(encoding="utf-8")


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
