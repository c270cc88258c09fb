"""`x-mcp-header`: parameters of a tool that are said again as `Mcp-Param-*` headers (2026-07-28, transports/http).

A tool's schema is read once; both sides work with what was found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

import msgspec

from ...web.asgi.message import TOKEN
from ...wire.errors import HeaderMismatch, LocalError
from ...wire.http_headers import PREFIX
from ...wire.json.lenient import is_number
from ...wire.lazy_regex import pattern
from .header_codec import decode_value, encode_value, text_of

__all__ = ["ParamHeader", "read_param_headers", "headers_of", "check_param_headers"]

_ANNOTATION = "x-mcp-header"
_WHOLE = pattern(r"(-?[0-9]{1,40})(?:\.0{1,40})?")
_LARGEST = 2**53 - 1
_KINDS = {"string": "a string", "integer": "an integer within ±(2^53 - 1)", "boolean": "true or false"}
_DEEPEST = 32
_MISSING: Any = object()


class ParamHeader(msgspec.Struct, frozen=True):
    """One annotated parameter: its header's name (without the prefix), its type, and where it stands."""

    name: str
    kind: str
    path: tuple[str, ...]


def read_param_headers(schema: Mapping[str, Any]) -> tuple[ParamHeader, ...]:
    """All of a tool's input schema, or `LocalError` with the rule it breaks."""
    found = tuple(_below(schema, ()))
    names = [each.name.lower() for each in found]
    if len(set(names)) != len(names):
        raise LocalError(f"{_ANNOTATION}: two parameters have the same header name")
    if len(found) != _annotations(schema, 0):
        raise LocalError(f"{_ANNOTATION}: stands where no plain property does (inside items, anyOf, $defs, …)")
    return found


def _below(schema: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[ParamHeader]:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or len(path) >= _DEEPEST:
        return
    for key, part in cast("Mapping[str, Any]", properties).items():
        if not isinstance(part, Mapping):
            continue
        member = cast("Mapping[str, Any]", part)
        if _ANNOTATION in member:
            yield _checked(member, (*path, key))
        yield from _below(member, (*path, key))


def _checked(member: Mapping[str, Any], path: tuple[str, ...]) -> ParamHeader:
    name, kind = member[_ANNOTATION], member.get("type")
    if not isinstance(name, str) or not TOKEN.fullmatch(name):
        raise LocalError(f"{_ANNOTATION}: {name!r:.60} is no header name")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise LocalError(f"{_ANNOTATION}: {'.'.join(path)} must be a string, an integer or a boolean")
    return ParamHeader(name, kind, path)


def _annotations(value: Any, depth: int, of_names: bool = False) -> int:
    """How often the annotation stands anywhere in the schema; as the name of a property it is none."""
    if depth > 2 * _DEEPEST:
        return 0
    if isinstance(value, Mapping):
        members = cast("Mapping[str, Any]", value)
        here = 0 if of_names else int(_ANNOTATION in members)
        return here + sum(
            _annotations(part, depth + 1, key == "properties" and not of_names) for key, part in members.items()
        )
    if isinstance(value, list):
        return sum(_annotations(part, depth + 1) for part in cast("list[Any]", value))
    return 0


def headers_of(params: tuple[ParamHeader, ...], arguments: Mapping[str, Any]) -> dict[str, str]:
    """The headers a client sends with these arguments; null and absent ones have none."""
    headers: dict[str, str] = {}
    for param in params:
        if (value := _sayable(_at(arguments, param.path))) is not None:
            headers[PREFIX + param.name] = encode_value(text_of(value))
    return headers


def check_param_headers(
    params: tuple[ParamHeader, ...], arguments: Mapping[str, Any], headers: Mapping[str, str]
) -> None:
    """Raise `HeaderMismatch` unless the headers (by lower-case name) say what the body says."""
    for param in params:
        name = PREFIX + param.name
        said, value = headers.get(name.lower()), _at(arguments, param.path)
        if value is _MISSING or value is None:
            if said is not None:
                raise HeaderMismatch(f"{name} is there, its argument is not")
        elif said is None:
            raise HeaderMismatch(f"{name} is missing: {_why_wanted(param, value)}")
        elif not _says_same(decode_value(said), value):
            raise HeaderMismatch(f"{name} differs from the argument in the body")


def _why_wanted(param: ParamHeader, value: Any) -> str:
    if _sayable(value) is not None:
        return "the argument is said in a header too"
    # XHDR-018 makes no exception for these, and a client that keeps to XHDR-008 has no header to send.
    return f"its argument, {'.'.join(param.path)}, must be {_KINDS[param.kind]} to be said there too"


def _at(arguments: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = arguments
    for key in path:
        if not isinstance(value, Mapping):
            return _MISSING
        value = cast("Mapping[str, Any]", value).get(key, _MISSING)
    return value


def _says_same(said: str, value: Any) -> bool:
    if not is_number(value):
        return isinstance(value, str | bool) and said == text_of(value)
    # numbers are compared as numbers, 42.0 is 42; no exponents, no other spellings that Python would read
    whole = _WHOLE.fullmatch(said)
    return whole is not None and int(whole[1]) == value


def _sayable(value: Any) -> str | int | None:
    """What a header says of an argument, or None of what none can say (XHDR-007, XHDR-008)."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # 42.0 is an integer to JSON Schema, and 42 in a header
    if isinstance(value, str | bool) or (isinstance(value, int) and -_LARGEST <= value <= _LARGEST):
        return value
    return None
