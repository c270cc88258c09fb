"""Dataclasses as Python makes them: with all their fields in the instance.

msgspec leaves a default of a dataclass at the class when it reads one from JSON. Python code does not see the
difference, but msgspec does when it writes: such a field is not in the JSON, and `vars()` does not have it either. So
what was read is gone through once, where a tool takes such a class at all. Python itself does the same with a default
of `field(init=False)`, such as the kind of a record: there what is to be written is gone through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

import msgspec
from msgspec import inspect as mi

from .models import is_set_by_class

__all__ = ["Fill", "filler_of"]

_SCALARS = {int, float, str, bool, type(None)}
Fill = Callable[[Any], None]


def filler_of(hints: Iterable[Any], *, made_here: bool = False) -> Fill | None:
    """What completes values of these types, in place; None if nothing can be missing in them.

    `made_here`: by Python, which leaves at the class only what its constructor does not take (`init=False`).
    """
    seen: set[int] = set()
    missing = _at_class if made_here else _has_default
    return _fill if any(_leaves_out(node, seen, missing) for node in mi.multi_type_info(hints)) else None


def _has_default(kind: Any, field: mi.Field) -> bool:
    return field.default is not msgspec.NODEFAULT


def _at_class(kind: Any, field: mi.Field) -> bool:
    return _has_default(kind, field) and is_set_by_class(kind, field.name)


def _leaves_out(node: Any, seen: set[int], missing: Callable[[Any, mi.Field], bool]) -> bool:
    """Is there, anywhere inside, a dataclass with a default that stands in its class?"""
    if id(node) in seen:
        return False
    seen.add(id(node))
    if isinstance(node, mi.DataclassType) and any(missing(node.cls, field) for field in node.fields):
        return True
    inside: list[Any] = [field.type for field in getattr(node, "fields", ())]
    inside += getattr(node, "types", ()) or getattr(node, "item_types", ())
    inside += [getattr(node, name) for name in ("type", "item_type", "key_type", "value_type") if hasattr(node, name)]
    return any(_leaves_out(each, seen, missing) for each in inside)


def _fill(value: Any) -> None:
    """As deep as the JSON was, which the reader of frames has bounded."""
    if isinstance(value, list | tuple | set | frozenset):
        _fill_each(cast("Iterable[Any]", value))
    elif isinstance(value, dict):
        _fill_each(cast("dict[Any, Any]", value))
        _fill_each(cast("dict[Any, Any]", value).values())
    elif hasattr(value, "__dataclass_fields__"):
        _fill_fields(value)
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            _fill(getattr(value, name))


def _fill_each(values: Iterable[Any]) -> None:
    for each in values:
        if each.__class__ not in _SCALARS:  # a long array is mostly of them: 10 times as fast as looking into each
            _fill(each)


def _fill_fields(value: Any) -> None:
    from dataclasses import fields  # who has such a class has loaded them; a server without one starts without them

    held = getattr(value, "__dict__", None)  # one with slots has all of them
    for field in fields(value):
        if not hasattr(value, field.name):  # `init=False`, and nobody has set it yet
            continue
        found = getattr(value, field.name)
        if held is not None and field.name not in held:
            held[field.name] = found
        _fill(found)
