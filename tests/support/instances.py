"""Instances of a JSON Schema definition: the smallest valid one, a full one, one per alternative inside it.

A full instance has every member the schema names. Where the schema offers alternatives (``anyOf``), the first
stands in the base instance; each other one gives a *variant* that differs from the base only below its focus.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from support.schema_source import Document, Schema

Path = tuple[str | int, ...]
Hint = Callable[[Path], Any]

NO_HINT = object()
FORMATS = {"uri": "note://one", "uri-template": "note://{id}", "byte": "aGVsbG8="}


@dataclass(frozen=True)
class Variant:
    """An instance and the place where it differs from the base instance."""

    value: Any
    focus: Path = ()


@dataclass(frozen=True)
class Instances:
    """Builds instances of one document's definitions; ``hint`` may dictate the value at a path."""

    document: Document
    hint: Hint

    def minimal(self, name: str) -> Any:
        """Only what is required, the first alternative everywhere."""
        return self._minimal(self.document.reference(name), ())

    def full(self, name: str) -> Iterator[Variant]:
        """The base instance, then one variant for each other alternative."""
        return self._full(self.document.reference(name), (), ())

    def _minimal(self, schema: Schema, path: Path) -> Any:
        schema = self._merged(schema)
        if "anyOf" in schema:
            return self._minimal(schema["anyOf"][0], path)
        if kind_of(schema) == "object":
            members = schema.get("properties", {})
            return {name: self._minimal(members.get(name, {}), (*path, name)) for name in schema.get("required", [])}
        return [] if kind_of(schema) == "array" else self._scalar(schema, path)

    def _full(self, schema: Schema, path: Path, inside: tuple[str, ...]) -> Iterator[Variant]:
        name = self.document.referred(schema)
        if name is not None and name in inside:
            # A definition that contains itself ends here, with the smallest instance that ends it.
            yield Variant(self._last_resort(schema, path))
            return
        inside = inside if name is None else (*inside, name)
        schema = self._merged(schema)
        if "anyOf" in schema:
            for number, branch in enumerate(schema["anyOf"]):
                for variant in self._full(branch, path, inside):
                    yield variant if number == 0 else Variant(variant.value, variant.focus or path)
        elif kind_of(schema) == "object":
            yield from self._objects(schema, path, inside)
        elif kind_of(schema) == "array":
            for variant in self._full(schema.get("items", {}), (*path, 0), inside):
                yield Variant([variant.value], variant.focus)
        else:
            yield Variant(self._scalar(schema, path))

    def _objects(self, schema: Schema, path: Path, inside: tuple[str, ...]) -> Iterator[Variant]:
        members = dict(schema.get("properties", {}))
        if isinstance(schema.get("additionalProperties"), dict):
            members.setdefault("key", schema["additionalProperties"])
        choices = {name: list(self._full(part, (*path, name), inside)) for name, part in members.items()}
        base = {name: variants[0].value for name, variants in choices.items()}
        yield Variant(base)
        for name, variants in choices.items():
            for variant in variants[1:]:
                yield Variant(base | {name: variant.value}, variant.focus)

    def _last_resort(self, schema: Schema, path: Path) -> Any:
        schema = self._merged(schema)
        for branch in reversed(schema.get("anyOf", [])):
            if self.document.referred(branch) is None and kind_of(branch) not in ("object", "array"):
                return self._scalar(branch, path)
        return self._minimal(schema, path)

    def _scalar(self, schema: Schema, path: Path) -> Any:
        hinted = self.hint(path)
        if hinted is not NO_HINT and "const" not in schema:
            return hinted
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return schema["enum"][0]
        values = {"integer": 1, "number": 0.5, "boolean": True, "null": None}
        return values.get(kind_of(schema), FORMATS.get(schema.get("format", ""), "text"))

    def _merged(self, schema: Schema) -> Schema:
        """Follow pointers and fold ``allOf`` into one object schema."""
        schema = self.document.resolve(schema)
        if "allOf" not in schema:
            return schema
        merged: Schema = {"type": "object", "properties": {}, "required": []}
        for branch in [*schema["allOf"], {key: part for key, part in schema.items() if key != "allOf"}]:
            part = self._merged(branch)
            merged["properties"] |= part.get("properties", {})
            merged["required"] += part.get("required", [])
        return merged


def kind_of(schema: Schema) -> str:
    """The type an instance gets: the first that the schema names, ``string`` where it names none."""
    kind = schema.get("type", "object" if "properties" in schema else "string")
    return kind[0] if isinstance(kind, list) else kind
