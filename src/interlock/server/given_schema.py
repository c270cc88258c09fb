"""Tools whose author writes the JSON Schema himself: what type hints cannot say (`allOf`, `if`, `$anchor`, …).

The schema goes into the list as it is. Nothing here judges arguments by it: they are known to be an object, the rest is
the function's to check.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec
from msgspec import Raw

from ..wire.errors import LocalError
from ..wire.frames import encode
from .schema import Signature, hints_of

__all__ = ["Arguments", "read_given"]

Arguments = Callable[[Raw], dict[str, Any]]
"""From the arguments as they came to the keyword arguments of the function."""


def read_given(
    function: Callable[..., Any], context_type: type, schema: Mapping[str, Any]
) -> tuple[Signature, Arguments]:
    """Where the arguments go: into the one parameter that is not the context, or into `**arguments`."""
    hints = hints_of(function)
    context: str | None = None
    single: list[str] = []
    spread = False
    for name, parameter in inspect.signature(function).parameters.items():
        hint = hints.get(name, Any)
        if isinstance(hint, type) and issubclass(hint, context_type):
            context = name
        elif parameter.kind is parameter.VAR_KEYWORD:
            spread = True
        elif parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            single += [name, name]
        else:
            single.append(name)
    if len(single) + spread != 1:
        raise LocalError(f"{function!r}: with input_schema, take all arguments in one dict, or as **arguments")
    signature = Signature(msgspec.json.Decoder(dict[str, Any]), _kept(schema), context, tuple(single))
    return signature, _into_one(signature) if single else _into_many(signature)


def _kept(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema as it goes out: a copy nobody else holds, checked to be what MCP wants of every tool."""
    try:
        kept = cast("dict[str, Any]", msgspec.json.decode(encode(schema)))
    except (TypeError, ValueError, OverflowError) as error:
        raise LocalError(f"input_schema is no JSON: {error}") from None
    if kept.get("type") != "object":
        raise LocalError('input_schema must say "type": "object": the arguments of a tool are one')
    return kept


def _into_one(signature: Signature) -> Arguments:
    decode, (name,) = signature.decoder.decode, signature.names
    return lambda raw: {name: decode(raw)}


def _into_many(signature: Signature) -> Arguments:
    decode, context = signature.decoder.decode, signature.context

    def arguments(raw: Raw) -> dict[str, Any]:
        found: dict[str, Any] = decode(raw)
        if context in found:  # the caller must not reach the context's place
            raise msgspec.ValidationError(f"Object contains unknown field `{context}`")
        return found

    return arguments
