"""From a function's signature to the decoder of its arguments and their JSON Schema. Built once, at registration."""

from __future__ import annotations

import copy
import functools
import inspect
import typing
from collections.abc import Callable
from typing import Any, cast

import msgspec

from ..wire.errors import LocalError

__all__ = ["Signature", "hints_of", "read_signature"]

_PLAIN = (str, int, float, bool, type(None), bytes)


class Signature(msgspec.Struct, frozen=True):
    """What a handler takes: its arguments, and the name of the parameter for the context, if it has one."""

    decoder: msgspec.json.Decoder[Any]
    schema: dict[str, Any]
    context: str | None
    names: tuple[str, ...]


def read_signature(function: Callable[..., Any], context_type: type) -> Signature:
    """Read the type hints of `function`; the parameter annotated with `context_type` is not an argument."""
    hints = hints_of(function)
    fields: list[Any] = []
    context: str | None = None
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise LocalError(f"{_name(function)}: {parameter} cannot come from JSON: name every parameter")
        hint = hints.get(name, Any)
        if isinstance(hint, type) and issubclass(hint, context_type):
            context = name
        elif parameter.default is parameter.empty:
            fields.append((name, hint))
        else:
            fields.append((name, hint, _default(parameter.default)))
    arguments = msgspec.defstruct("Arguments", fields, kw_only=True)
    try:
        decoder, schema = msgspec.json.Decoder(arguments), _schema(arguments)
    except TypeError as error:
        raise LocalError(f"{_name(function)}: {error}") from None
    return Signature(decoder, schema, context, tuple(field[0] for field in fields))


def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The type hints of anything callable."""
    inner = cast(Any, function)
    if isinstance(inner, functools.partial):
        inner = cast(Any, inner).func
    hinted = inner if inspect.isroutine(inner) or inspect.isclass(inner) else type(inner).__call__
    try:
        return typing.get_type_hints(hinted, include_extras=True)
    except NameError as error:
        raise LocalError(f"{_name(function)}: a type hint cannot be resolved ({error})") from None


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", repr(function))


def _default(value: Any) -> Any:
    """A default for every call anew: what one request does to it is nobody else's."""
    return value if isinstance(value, _PLAIN) else msgspec.field(default_factory=lambda: copy.deepcopy(value))


def _schema(arguments: type) -> dict[str, Any]:
    """The schema with its root in place: MCP wants `type: object` there, not a reference."""
    (root,), parts = msgspec.json.schema_components([arguments], ref_template="#/$defs/{name}")
    name = root["$ref"].rpartition("/")[2] if "$ref" in root else None
    found = dict(parts.pop(name)) if name is not None else dict(root)
    found.pop("title", None)
    if not found.get("required"):
        found.pop("required", None)
    if not found.get("properties"):
        found = {
            "type": "object",
            "additionalProperties": False,
        }  # what 2025-11-25 recommends for no parameters
    return found | ({"$defs": parts} if parts else {})
