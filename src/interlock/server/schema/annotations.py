"""What stands in `Annotated[…]` and in defaults, in words that msgspec understands.

`msgspec.Meta` is the native way. The constraints of `annotated_types`, the `Field(...)` of pydantic and a plain text as
description are understood as well, by the names of their attributes: none of these libraries is imported. What such a
library asks and we cannot keep is refused at registration: a check that an author wrote must not be lost in silence.
"""

from __future__ import annotations

import collections.abc
import types
from collections.abc import Callable
from typing import Annotated, Any, Literal, NotRequired, Required, Union, cast, get_args, get_origin

import msgspec

from ...wire.errors import LocalError
from .pydantic_types import adapted, is_adaptable

__all__ = ["NO_DEFAULT", "Made", "default_of", "optional", "readable", "said_in_class"]

NO_DEFAULT: Any = object()


class Made(msgspec.Struct, frozen=True):
    """A default that is made for every call."""

    make: Callable[[], Any]


_NUMBER = ("gt", "ge", "lt", "le", "multiple_of")
_LENGTH = ("min_length", "max_length")
_CONSTRAINTS = (*_NUMBER, *_LENGTH, "pattern", "tz")
_WORDS = ("title", "description", "examples")
_FOREIGN = frozenset({"annotated_types", "pydantic", "pydantic_core"})
_HARMLESS = frozenset({"strict", "unit", "frozen", "repr", "deprecated"})
_UNIONS = (Union, types.UnionType)
_LISTS = (collections.abc.Iterable, collections.abc.Collection)  # msgspec knows the others


def readable(hint: Any, extras: tuple[Any, ...] = ()) -> Any:
    """The same type with everything that is said about it, here and inside, as `msgspec.Meta`."""
    origin = get_origin(hint)
    if origin is Annotated:
        return readable(hint.__origin__, (*hint.__metadata__, *extras))
    if is_adaptable(hint):
        hint, extras = adapted(hint, extras)
    elif origin is not None and origin is not Literal:
        hint = _rebuilt(hint, origin)
    return _with(hint, extras) if extras else hint


def _rebuilt(hint: Any, origin: Any) -> Any:
    inside = get_args(hint)
    told = tuple(readable(each) for each in inside)
    if origin in _UNIONS:
        return Union[told]  # noqa: UP007 - built at run time
    if origin in _LISTS:
        return list.__class_getitem__(told[0])
    return hint if told == inside else origin[told]


def optional(hint: Any) -> Any:
    """`x: int = None` means what it does: None may be said, too."""
    return hint if _takes_none(hint) else Union[hint, None]  # noqa: UP007 - built at run time


def _takes_none(hint: Any) -> bool:
    if get_origin(hint) is Annotated:
        return _takes_none(hint.__origin__)
    return hint is Any or (type(None) in get_args(hint) and get_origin(hint) in _UNIONS)


def default_of(default: Any) -> tuple[Any, tuple[Any, ...]]:
    """A parameter's default and what it says about the parameter: pydantic's `Field(...)` says both."""
    if not _is_field(default):
        return default, ()
    if default.is_required():
        return NO_DEFAULT, (default,)
    if default.default_factory is not None:
        return Made(default.default_factory), (default,)
    return default.default, (default,)


def _is_field(value: Any) -> bool:
    """pydantic's FieldInfo, by what it can do."""
    return callable(getattr(value, "is_required", None)) and hasattr(value, "default_factory")


def said_in_class(hint: Any, *, checks: bool = True) -> str | None:
    """The description of a field in a class. msgspec reads the class itself, so a limit of others would be lost.

    Without `checks` nothing is read by it, and such a limit may stand there.
    """
    while get_origin(hint) in (Required, NotRequired):
        (hint,) = get_args(hint)
    if get_origin(hint) is not Annotated:
        return None
    for extra in hint.__metadata__:
        if checks and _is_foreign(extra):
            raise LocalError(f"{extra!r} is not checked in a field of a class: use msgspec.Meta there, or a model")
    return next((extra for extra in hint.__metadata__ if isinstance(extra, str)), None)


# --- one Meta out of everything that was said ---------------------------------------------------------


def _with(hint: Any, extras: tuple[Any, ...]) -> Any:
    limits: dict[str, Any] = {}
    words: dict[str, Any] = {}
    for extra in extras:
        _read(extra, limits, words)
    hint = _limited(hint, limits)
    return Annotated[hint, msgspec.Meta(**words)] if words else hint


def _read(extra: Any, limits: dict[str, Any], words: dict[str, Any]) -> None:
    if isinstance(extra, str):
        words["description"] = extra
        return
    found = {name: value for name in _CONSTRAINTS if (value := getattr(extra, name, None)) is not None}
    said = {name: value for name in _WORDS if (value := getattr(extra, name, None)) is not None}
    if isinstance(documentation := getattr(extra, "documentation", None), str):
        said["description"] = documentation
    limits.update(_tidy(found, extra))
    words.update(said)
    if isinstance(more := getattr(extra, "extra_json_schema", None) or getattr(extra, "json_schema_extra", None), dict):
        words["extra_json_schema"] = {**words.get("extra_json_schema", {}), **cast("dict[str, Any]", more)}
    _check_understood(extra, bool(found or said))
    if _is_field(extra):
        for inner in extra.metadata:
            _read(inner, limits, words)


def _tidy(limits: dict[str, Any], extra: Any) -> dict[str, Any]:
    if limits.get("min_length") == 0:
        del limits["min_length"]
    if "pattern" in limits:
        limits["pattern"] = getattr(limits["pattern"], "pattern", limits["pattern"])  # a compiled one has its text
    if "tz" in limits and not isinstance(limits["tz"], bool):
        if limits["tz"] is not ...:  # annotated_types: any zone; msgspec cannot ask for one of them
            raise LocalError(f"{extra!r} cannot be checked: ask for any time zone, or check it in the function")
        limits["tz"] = True
    return limits


def _check_understood(extra: Any, understood: bool) -> None:
    """Only for the libraries whose words we claim to know; others may annotate for whom they like (PEP 593)."""
    if not _is_foreign(extra):
        return
    if _is_field(extra):
        if extra.alias is not None or extra.validation_alias is not None:
            raise LocalError(f"{extra!r}: an alias is not supported, name the parameter as callers should")
        return
    names = {name for name, value in _members(extra).items() if value is not None}
    known = {*_CONSTRAINTS, *_WORDS, *_HARMLESS, "documentation"}
    if (names and not names <= known) or not (understood or names):
        raise LocalError(f"{extra!r} in Annotated cannot be checked here: check it in the function, or use a model")


def _is_foreign(extra: Any) -> bool:
    return cast("type[Any]", type(extra)).__module__.partition(".")[0] in _FOREIGN


def _members(extra: Any) -> dict[str, Any]:
    slots = cast("tuple[str, ...]", getattr(extra, "__slots__", ()))
    return {**{name: getattr(extra, name, None) for name in slots}, **getattr(extra, "__dict__", {})}


def _limited(hint: Any, limits: dict[str, Any]) -> Any:
    """Limits on a union are for the members that they fit: None has no length."""
    if not limits:
        return hint
    if get_origin(hint) not in _UNIONS:
        return Annotated[hint, msgspec.Meta(**limits)]
    members = get_args(hint)
    told = [_limited(member, {name: limits[name] for name in limits if _fits(member, name)}) for member in members]
    if lost := [name for name in limits if not any(_fits(member, name) for member in members)]:
        raise LocalError(f"{', '.join(lost)} fits no member of {hint}")
    return Union[tuple(told)]  # noqa: UP007 - built at run time


def _fits(member: Any, limit: str) -> bool:
    kind = get_origin(member) or member
    if kind is Annotated:
        kind = get_origin(member.__origin__) or member.__origin__
    if limit in _NUMBER:
        return kind in (int, float)
    if limit == "pattern":
        return kind is str
    if limit == "tz":
        return getattr(kind, "__module__", "") == "datetime"
    return kind not in (int, float, bool, type(None))
