"""Tools whose author writes the JSON Schema himself: what type hints cannot say (`allOf`, `if`, `$anchor`, …).

The schema goes into the list as it is, and arguments are checked against it before the function sees them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import UnionType
from typing import Annotated, Any, Union, cast, get_args, get_origin, is_typeddict

import msgspec
from msgspec import Raw

from ...wire.errors import LocalError
from ...wire.json.reader import JsonReader
from ...wire.json.schema import Check, Mismatch, validator_of
from ...wire.messages import encode
from ..schema.signature import Signature, hints_of, is_context, name_of, parameters_of
from .errors import Arguments, Unmendable
from .repair import mend_given

__all__ = ["read_given"]


def read_given(
    function: Callable[..., Any], context_type: type, schema: Mapping[str, Any]
) -> tuple[Signature, Arguments]:
    """Where the arguments go: into the one parameter that is not the context, or into `**arguments`."""
    hints = hints_of(function)
    context: str | None = None
    single: list[str] = []
    spread = False
    for name, parameter in parameters_of(function).items():
        if is_context(hints.get(name), context_type):
            context = name
        elif parameter.kind is parameter.VAR_KEYWORD:
            spread = True
        elif parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            single += [name, name]
        else:
            single.append(name)
    if len(single) + spread != 1:
        raise LocalError(f"{name_of(function)}: with input_schema, take all arguments in one dict, or as **arguments")
    if single and not _takes_object(hints.get(single[0], Any)):
        raise LocalError(
            f"{name_of(function)}: with input_schema, {single[0]} gets all arguments as one dict, but it is annotated "
            f"{hints[single[0]]!r:.80}: annotate it dict[str, Any], or take **arguments"
        )
    signature = Signature(JsonReader(dict[str, Any]), _kept(schema), context, tuple(single))
    checked = _checked(signature, validator_of(signature.schema, "input_schema"))
    return signature, _into_one(signature, checked) if single else _into_many(signature, checked)


def _takes_object(hint: Any) -> bool:
    """Can a parameter with this annotation hold a plain dict? What is not a class is given the benefit of the doubt."""
    if hint is Any or is_typeddict(hint):
        return True
    kind = get_origin(hint) or hint
    if kind is Annotated:
        return _takes_object(hint.__origin__)
    if kind in (Union, UnionType):
        return any(_takes_object(member) for member in get_args(hint))
    return not isinstance(kind, type) or issubclass(dict, kind)


def _checked(signature: Signature, check: Check) -> Arguments:
    """The arguments as plain data that fits the schema."""
    decode, schema = signature.decoder.decode, signature.schema

    def checked(raw: Raw) -> dict[str, Any]:
        found: dict[str, Any] = decode(raw)
        try:
            check(found)
        except Mismatch as first:
            return mend_given(raw, found, check, schema, first)
        return found

    return checked


def _kept(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema as it goes out: a copy nobody else holds, checked to be what MCP wants of every tool."""
    try:
        kept = cast("dict[str, Any]", msgspec.json.decode(encode(schema)))
    except (TypeError, ValueError, OverflowError) as error:
        raise LocalError(f"input_schema is no JSON: {error}") from None
    if kept.get("type") != "object":
        raise LocalError('input_schema must say "type": "object": the arguments of a tool are one')
    # An object schema without `properties` is legal, but several hosts and model providers refuse it.
    return kept if "properties" in kept else {**kept, "properties": {}}


def _into_one(signature: Signature, checked: Arguments) -> Arguments:
    (name,) = signature.names
    return lambda raw: {name: checked(raw)}


def _into_many(signature: Signature, checked: Arguments) -> Arguments:
    context = signature.context

    def arguments(raw: Raw) -> dict[str, Any]:
        found = checked(raw)
        if context in found:  # the caller must not reach the context's place
            raise Unmendable([f"{context}: no such argument"])
        return found

    return arguments
