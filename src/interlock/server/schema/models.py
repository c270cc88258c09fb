"""Types that msgspec leaves to us: paths, and models that know their own schema, such as pydantic's.

A model is recognised by what it can do (`model_json_schema`, `model_validate`); nothing is imported for it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, cast

import msgspec

__all__ = ["decode_custom", "is_model", "is_path", "is_set_by_class", "model_schema"]

_MOST_COMPLAINTS = 4  # the text about an argument is cut somewhere behind them

if TYPE_CHECKING:
    from pathlib import PurePath


def is_model(kind: Any) -> bool:
    return callable(getattr(kind, "model_json_schema", None)) and callable(getattr(kind, "model_validate", None))


def is_path(kind: Any) -> bool:
    """Who has such a type has loaded its module; nobody else should have to."""
    pathlib = sys.modules.get("pathlib")
    return pathlib is not None and isinstance(kind, type) and issubclass(kind, pathlib.PurePath)


def is_set_by_class(kind: Any, name: str) -> bool:
    """Is this field of a dataclass, or of attrs, one that its constructor does not take (`init=False`)?"""
    fields = {each.name: each for each in getattr(kind, "__attrs_attrs__", ())}
    field = getattr(kind, "__dataclass_fields__", fields).get(name)
    return field is not None and not field.init


def model_schema(model: Any, *, gives: bool = False) -> dict[str, Any]:
    """What the model says of itself, by the names that callers use; `gives`: of what it is written as."""
    return cast("dict[str, Any]", model.model_json_schema(mode="serialization") if gives else model.model_json_schema())


def decode_custom(kind: Any, value: Any) -> Any:
    """msgspec's `dec_hook`: from plain data to a type of somebody else."""
    if is_model(kind):
        return _model(kind, value)
    if is_path(kind):
        return _path(kind, value)
    if kind is object:
        return value
    raise NotImplementedError


def _path(kind: type[PurePath], value: Any) -> PurePath:
    if not isinstance(value, str):
        raise ValueError(f"Expected `str`, got `{_kind_of(value)}`")
    if "\0" in value:
        raise ValueError("Expected a path without a null character")
    return kind(value)


def _model(kind: Any, value: Any) -> Any:
    """As JSON where the model can: there a date is a text, also for a model that is strict about types."""
    from_json = getattr(kind, "model_validate_json", None)
    try:
        return from_json(msgspec.json.encode(value)) if callable(from_json) else kind.model_validate(value)
    except ValueError as error:
        raise ValueError(_in_one_line(error)) from None


def _in_one_line(error: ValueError) -> str:
    """The first complaints and their places: a page of text with links helps no model that must mend a call."""
    list_errors = getattr(error, "errors", None)
    if not callable(list_errors):
        return str(error)
    found = cast("list[dict[str, Any]]", list_errors())
    if not found:
        return str(error)
    more = [f"and {len(found) - _MOST_COMPLAINTS} more"] if len(found) > _MOST_COMPLAINTS else []
    return "; ".join([*(_complaint(each) for each in found[:_MOST_COMPLAINTS]), *more])


def _complaint(found: dict[str, Any]) -> str:
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in found.get("loc", ()))
    told = str(found.get("msg", "it does not fit"))
    return f"{told} (in {place.lstrip('.')})" if place else told


def _kind_of(value: Any) -> str:
    if value is None:
        return "null"
    names = {"dict": "object", "list": "array"}
    return names.get(type(value).__name__, type(value).__name__)
