"""Schema facts: what a JSON Schema demands, as text of our own, one schema per line.

    CallToolRequestParams object
      arguments? object
        {} any
      name! string

A line is a step and the facts about the schema there. The first step is a definition; below it `name!` is a required
member and `name?` an optional one, `[]` the items of an array, `{}` all other members, `|`, `&` and `^` one
alternative of `anyOf`, `allOf` and `oneOf`. The facts are JSON types (`string,integer`), the name of a definition, or a
keyword with its JSON value (`minimum=0`). Descriptions, titles and whatever else constrains nothing is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

__all__ = ["Schema", "read_schema", "reduce_schema", "write_schema"]

Schema = dict[str, Any]

ANNOTATIONS = frozenset({"title", "description", "$comment", "examples", "default", "deprecated"})
CONSTRAINTS = frozenset(
    {
        *("const", "enum", "format", "pattern", "minLength", "maxLength"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties"),
    }
)
COMBINERS = {"|": "anyOf", "&": "allOf", "^": "oneOf"}
STEPS = {"[]": "items", "{}": "additionalProperties"}
POINTER = "#/$defs/"
INDENT = "  "


# --- from a JSON Schema document to text ---


def write_schema(document: Schema, heading: str) -> str:
    """The facts of an official document, below a heading."""
    lines = [f"# {heading}", f"$schema {document['$schema']}"]
    for name, schema in reduce_schema(document).items():
        lines += ["", *_write(name, schema, "")]
    return "\n".join(lines) + "\n"


def reduce_schema(document: Schema) -> dict[str, Schema]:
    """The definitions of a document with nothing but what constrains a value; unknown keywords are refused."""
    definitions = document.get("$defs") or document["definitions"]
    return {name: _reduce(schema, name) for name, schema in definitions.items()}


def _reduce(schema: Any, where: str) -> Schema:
    if not isinstance(schema, dict):
        raise ValueError(f"{where}: expected an object, not {schema!r}; add a notation for it")
    found: Schema = {}
    for key, value in schema.items():
        if key in ("type", *CONSTRAINTS):
            found[key] = value
        elif key == "$ref":
            found[key] = POINTER + value.rsplit("/", 1)[1]
        elif key == "required":
            found[key] = sorted(value)
        elif key == "properties":
            found[key] = {name: _reduce(part, f"{where}.{name}") for name, part in value.items()}
        elif key in COMBINERS.values():
            found[key] = [_reduce(part, f"{where}.{key}") for part in value]
        elif key in STEPS.values() and value is not True:
            found[key] = _reduce(value, f"{where}.{key}")
        elif key not in ANNOTATIONS | set(STEPS.values()):
            raise ValueError(f"{where}: unknown keyword {key!r}; list it in ANNOTATIONS or CONSTRAINTS")
    if missing := set(found.get("required", ())) - found.get("properties", {}).keys():
        raise ValueError(f"{where}: required but not described: {sorted(missing)}")
    return {key: value for key, value in found.items() if value != {} or key in STEPS.values()}


def _write(step: str, schema: Schema, indent: str) -> Iterator[str]:
    yield " ".join([indent + step, *(_format_facts(schema) if schema else ["any"])])
    for child, part in _iterate_children(schema):
        yield from _write(child, part, indent + INDENT)


def _format_facts(schema: Schema) -> Iterator[str]:
    if "$ref" in schema:
        yield schema["$ref"].removeprefix(POINTER)
    if "type" in schema:
        yield schema["type"] if isinstance(schema["type"], str) else ",".join(schema["type"])
    for key in sorted(schema.keys() & CONSTRAINTS):
        value = json.dumps(schema[key], separators=(",", ":"))
        yield f"{key}={value}".replace(" ", "\\u0020")  # facts are separated by spaces


def _iterate_children(schema: Schema) -> Iterator[tuple[str, Schema]]:
    for name, part in schema.get("properties", {}).items():
        yield name + ("!" if name in schema.get("required", ()) else "?"), part
    for step, key in STEPS.items():
        if key in schema:
            yield step, schema[key]
    for step, key in COMBINERS.items():
        for part in schema.get(key, ()):
            yield step, part


# --- from text to a JSON Schema document ---


def read_schema(text: str) -> Schema:
    """A JSON Schema document of the facts in `text`."""
    document: Schema = {"$defs": {}}
    path: list[Schema] = []  # the schemas that the line is inside of
    for number, line in enumerate(text.splitlines(), start=1):
        if not line or line.startswith("#"):
            continue
        step, *facts = line.split()
        depth = (len(line) - len(line.lstrip())) // len(INDENT)
        if depth > len(path):
            raise ValueError(f"line {number}: indented by {depth} steps below a line at {len(path) - 1}")
        if step == "$schema":
            document[step] = facts[0]
            continue
        schema = _read_facts(facts)
        if depth == 0:
            document["$defs"][step] = schema
        else:
            _attach(path[depth - 1], step, schema)
        path[depth:] = [schema]
    return document


def _read_facts(facts: Iterable[str]) -> Schema:
    schema: Schema = {}
    for fact in facts:
        key, sign, value = fact.partition("=")
        if sign:
            schema[key] = json.loads(value)
        elif key[0].isupper():
            schema["$ref"] = POINTER + key
        elif key != "any":
            schema["type"] = key.split(",") if "," in key else key
    return schema


def _attach(schema: Schema, step: str, part: Schema) -> None:
    if step in STEPS:
        schema[STEPS[step]] = part
    elif step in COMBINERS:
        schema.setdefault(COMBINERS[step], []).append(part)
    else:
        schema.setdefault("properties", {})[step[:-1]] = part
        if step.endswith("!"):
            schema.setdefault("required", []).append(step[:-1])
