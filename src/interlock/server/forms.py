"""Forms out of Python types: what `ctx.elicit` asks with, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, cast

import msgspec

from ..revisions.forms import check_content, check_form
from ..wire.errors import InvalidParams, LocalError
from .choices import put_in_order

__all__ = ["Form", "form_of", "check_accepted"]

_VALUE = "value"


class Form(msgspec.Struct, frozen=True):
    """A schema to ask with, and how the content of an accepted answer is read."""

    schema: dict[str, Any]
    read: Callable[[dict[str, Any]], Any]


def form_of(wanted: Any) -> Form:
    """A JSON Schema gives a dict, a record type gives its record, a plain type gives one value."""
    if isinstance(wanted, Mapping):
        schema = dict(cast("Mapping[str, Any]", wanted))
        check_form(schema)
        return Form(schema, dict)
    return _form_of_type(wanted, repr(wanted))


@lru_cache(256)
def _form_of_type(wanted: Any, written: str) -> Form:
    """As it was written: two `Literal`s of the same choices are equal, whatever their order."""
    try:
        described = put_in_order(msgspec.json.schema(wanted), wanted)
    except (TypeError, ValueError) as error:
        raise LocalError(f"no form can be made of {wanted!r}: {error}") from None
    schema = _resolved(described, described.get("$defs", {}))
    if schema.get("type") == "object" and "properties" in schema:
        return _record(wanted, schema)
    field = _field(schema, described.get("$defs", {}))
    single = {"type": "object", "properties": {_VALUE: field}, "required": [_VALUE]}
    check_form(single)
    return Form(single, lambda content: _convert(content.get(_VALUE), wanted))


def _record(wanted: Any, described: dict[str, Any]) -> Form:
    definitions = described.pop("$defs", {})
    properties = cast("dict[str, Any]", described["properties"])
    fields = {name: _field(field, definitions) for name, field in properties.items()}
    schema = {"type": "object", "properties": fields, "required": list(described.get("required", []))}
    check_form(schema)
    return Form(schema, lambda content: _convert(content, wanted))


def _resolved(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema a reference stands for, its definitions kept beside it."""
    reference = schema.get("$ref")
    if not isinstance(reference, str):
        return dict(schema)
    found = cast("dict[str, Any]", definitions.get(reference.rpartition("/")[2], {}))
    beside = {key: value for key, value in schema.items() if key != "$ref"}
    return {**found, **beside, "$defs": definitions}


def _field(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """One field: references followed, `| None` left out (an optional field may stay empty), choices with their type."""
    field = _resolved(schema, definitions)
    field.pop("$defs", None)
    options = cast("list[dict[str, Any]]", field.get("anyOf", []))
    real = [option for option in options if option.get("type") != "null"]
    if options and len(real) == 1:
        rest = {key: value for key, value in field.items() if key not in ("anyOf", "default")}
        return {**_field(real[0], definitions), **rest}
    if "items" in field:
        field["items"] = _field(cast("dict[str, Any]", field["items"]), definitions)
    if "enum" in field and "type" not in field:
        field["type"] = "string"
    if field.get("default", ...) is None:
        del field["default"]
    return field


def _convert(content: Any, wanted: Any) -> Any:
    try:
        return msgspec.convert(content, wanted)
    except msgspec.ValidationError as error:
        told = str(error).replace("`", "'")
        raise InvalidParams(f"The answer does not fit what was asked for: {told}") from None


def check_accepted(form: Form, content: Any) -> None:
    """Raise `InvalidParams` for content that does not fit; what fits can be read."""
    check_content(form.schema, content)
    form.read(content)
