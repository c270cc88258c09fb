"""From a function's signature to the decoder of its arguments and their JSON Schema. Built once, at registration."""

from __future__ import annotations

import functools
import inspect
import sys
import typing
from collections.abc import Callable
from typing import Any, cast

import msgspec

from ...wire.errors import LocalError
from ...wire.json.reader import JsonReader
from ...wire.signatures import signature_of
from .annotations import NO_DEFAULT, Made, default_of, optional, readable
from .builder import TypeWriter, check_default, with_default
from .dataclass_defaults import Fill, filler_of
from .docstrings import Docs, read_docstring
from .models import decode_custom

__all__ = ["Signature", "docs_of", "hints_of", "is_context", "name_of", "parameters_of", "plain_name", "read_signature"]

_PLAIN = (str, int, float, bool, type(None), bytes)
_COPIED = (list, dict, set, bytearray)


class _Field(msgspec.Struct, frozen=True):
    """A parameter that is an argument."""

    name: str
    hint: Any
    default: Any


class Signature(msgspec.Struct, frozen=True):
    """What a handler takes: its arguments, and the name of the parameter for the context, if it has one."""

    decoder: JsonReader[Any]
    schema: dict[str, Any]
    context: str | None
    names: tuple[str, ...]
    fill: Fill | None = None
    """What completes the records in arguments, where msgspec leaves something out."""

    def decode(self, raw: msgspec.Raw | bytes) -> dict[str, Any]:
        """Arguments out of JSON. Raises `msgspec.ValidationError` for what does not fit."""
        return self._given(self.decoder.decode(raw))

    def from_text(self, values: typing.Mapping[str, Any]) -> dict[str, Any]:
        """Arguments out of values that are all text, as in a prompt or a URI: `int` means a text of digits."""
        return self._given(msgspec.convert(values, self.decoder.type, strict=False, dec_hook=decode_custom))

    def _given(self, found: msgspec.Struct) -> dict[str, Any]:
        if self.fill is not None:
            self.fill(found)
        return msgspec.structs.asdict(found)


def read_signature(function: Callable[..., Any], context_type: type, *, closed: bool = False) -> Signature:
    """Read the type hints of `function`; the parameter annotated with `context_type` is not an argument.

    With `closed` arguments that it does not have are refused, and the schema says so.
    """
    context: str | None = None
    fields: list[_Field] = []
    hints = hints_of(function)
    for name, parameter in parameters_of(function).items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise LocalError(f"{name_of(function)}: {parameter} cannot come from JSON: name every parameter")
        if is_context(hints.get(name), context_type):
            if context is not None:
                raise LocalError(f"{name_of(function)}: one parameter for the {context_type.__name__} is enough")
            context = name
        elif name == "ctx" and name not in hints:
            told = f"write ctx: {context_type.__name__}, or callers are asked to fill it in"
            raise LocalError(f"{name_of(function)}: ctx is the context by its annotation: {told}")
        else:
            fields.append(_field(function, name, hints.get(name, Any), parameter.default))
    try:
        return _signature(fields, context, docs_of(function), closed)
    except NameError as error:
        told = f"{name_of(function)}: {error}: what the annotations of a class name is looked for in its module"
        raise LocalError(f"{told}, so define it there and not inside of a function") from None
    except (TypeError, ValueError, LocalError) as error:
        raise LocalError(f"{name_of(function)}: {error}") from None


def _signature(fields: list[_Field], context: str | None, docs: Docs, closed: bool) -> Signature:
    members = [_struct_field(field) for field in fields]
    arguments = msgspec.defstruct("Arguments", members, kw_only=True, forbid_unknown_fields=closed)
    decoder = JsonReader(arguments, dec_hook=decode_custom)
    names, fill = tuple(field.name for field in fields), filler_of(field.hint for field in fields)
    return Signature(decoder, _schema(fields, docs, closed), context, names, fill)


def _schema(fields: list[_Field], docs: Docs, closed: bool) -> dict[str, Any]:
    """The root stands in place: MCP wants `type: object` there, not a reference."""
    if not fields:  # server/tools#tool; hosts refuse an object schema without `properties`, though it is legal
        return {"type": "object", "properties": {}, "additionalProperties": False}
    writer = TypeWriter(field.hint for field in fields)
    properties = {
        field.name: _parameter(writer, node, field, docs.parameters.get(field.name))
        for field, node in zip(fields, writer.nodes, strict=True)
    }
    required = [field.name for field in fields if field.default is NO_DEFAULT]
    return {
        "type": "object",
        "properties": properties,
        **({"required": required} if required else {}),
        **({"additionalProperties": False} if closed else {}),
        **({"$defs": writer.definitions} if writer.definitions else {}),
    }


def _parameter(writer: TypeWriter, node: Any, field: _Field, said: str | None) -> dict[str, Any]:
    """What the type says; the docstring says the rest where it does not."""
    schema = writer.write(node)
    if said and "description" not in (getattr(node, "extra_json_schema", None) or {}):
        schema = {**schema, "description": said}
    if field.default is NO_DEFAULT or isinstance(field.default, Made):
        return schema
    return with_default(schema, field.default)


def _field(function: Callable[..., Any], name: str, hint: Any, given: Any) -> _Field:
    try:
        default, said = default_of(given)
        hint = readable(hint, said)
    except (LocalError, TypeError) as error:
        raise LocalError(f"{name_of(function)}: parameter {name}: {error}") from None
    if default is inspect.Parameter.empty:
        default = NO_DEFAULT
    field = _Field(name, optional(hint) if default is None else hint, default)
    try:
        if default is not NO_DEFAULT and not isinstance(default, Made):
            check_default(default, field.hint)
    except (msgspec.ValidationError, ValueError) as error:
        told = f"{name_of(function)}: the default of {name}, {default!r:.60}, does not fit its annotation: {error}"
        raise LocalError(f"{told}: change the default or the annotation") from None
    return field


def _struct_field(field: _Field) -> Any:
    """A default is made for every call anew: what one request does to it is nobody else's. A sentinel stays itself."""
    default = field.default
    if default is NO_DEFAULT:
        return field.name, field.hint
    if isinstance(default, Made):
        return field.name, field.hint, msgspec.field(default_factory=default.make)
    if isinstance(default, _PLAIN):
        return field.name, field.hint, default
    return field.name, field.hint, msgspec.field(default_factory=_maker(default))


def _maker(value: Any) -> Callable[[], Any]:
    kind = cast("type[Any]", type(value))
    if issubclass(kind, (*_COPIED, msgspec.Struct)) or hasattr(kind, "__dataclass_fields__"):
        from copy import deepcopy  # few parameters have such a default

        try:
            deepcopy(value)
        except Exception:  # it holds what cannot be copied: it is shared, as Python does
            return lambda: value
        return lambda: deepcopy(value)
    return lambda: value


# --- what a callable is ---------------------------------------------------------------------------------


def parameters_of(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Its parameters but for those that a partial has filled already: they are nobody else's to choose."""
    try:
        found = dict(signature_of(function).parameters)
    except (TypeError, ValueError):
        raise LocalError(f"{name_of(function)} has no signature that can be read: wrap it in a function") from None
    filled: set[str] = set()
    inner: Any = function
    while isinstance(inner, functools.partial):
        filled |= set(cast(Any, inner).keywords)
        inner = cast(Any, inner).func
    first = next(iter(found), "")
    if first in ("self", "cls") and inspect.isfunction(inner) and found[first].annotation is inspect.Parameter.empty:
        raise LocalError(f"{name_of(function)}: register the method of an object, not the function of its class")
    return {name: parameter for name, parameter in found.items() if name not in filled}


def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The type hints of anything callable."""
    hinted = _inner(function)
    if inspect.isclass(hinted):
        hinted = cast(Any, hinted).__init__
    elif not inspect.isroutine(hinted):
        hinted = type(hinted).__call__
    try:
        return typing.get_type_hints(hinted, include_extras=True)
    except NameError:
        pass  # types of the function around it, which a text cannot find
    except TypeError as error:
        raise LocalError(f"{name_of(function)}: a type hint cannot be resolved ({error})") from None
    try:
        return typing.get_type_hints(hinted, localns=_names_around(hinted), include_extras=True)
    except NameError as error:
        told = f"{name_of(function)}: a type hint cannot be resolved ({error})"
        raise LocalError(f"{told}: define it above, or import it for real, not only for type checkers") from None


def _names_around(function: Any) -> dict[str, Any]:
    """The local names of the functions around this one, as far as they are still running: registration is one call
    inside them."""
    around = set(getattr(inspect.unwrap(function), "__qualname__", "").split(".<locals>.")[:-1])
    names: dict[str, Any] = {}
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        if frame.f_code.co_name in {name.rpartition(".")[2] for name in around}:
            names = {**frame.f_locals, **names}
        frame = frame.f_back
    return names


def docs_of(function: Callable[..., Any]) -> Docs:
    """The docstring of the function that does the work; `functools.partial` has one of its own about nothing."""
    return read_docstring(getattr(_inner(function), "__doc__", None))


def plain_name(function: Callable[..., Any]) -> str:
    """What a function is called, for callers."""
    found = getattr(_inner(function), "__name__", "")
    if not found:
        raise LocalError(f"{name_of(function)} has no name of its own: give it one with name=")
    return found


def name_of(function: Callable[..., Any]) -> str:
    """How errors call it."""
    return getattr(_inner(function), "__qualname__", repr(function))


def is_context(hint: Any, context_type: type) -> bool:
    """Is this hint the context, also as `Context | None` or annotated?"""
    if typing.get_origin(hint) is typing.Annotated:
        return is_context(hint.__origin__, context_type)
    if isinstance(hint, type):
        return issubclass(hint, context_type)
    members = [each for each in typing.get_args(hint) if each is not type(None)]
    return len(members) == 1 and len(typing.get_args(hint)) == 2 and is_context(members[0], context_type)


def _inner(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = cast(Any, function).func
    return function
