"""Types that only pydantic can read: its own, such as URLs and secrets, its dataclasses, and unions with its models.

Such a type gets a model that stands for it, made of pydantic's `TypeAdapter`. Nothing is imported for it: who has such
a type has loaded that library.
"""

from __future__ import annotations

import sys
import types
from typing import Annotated, Any, Union, cast, get_args, get_origin

from msgspec import Struct

from ...wire.errors import LocalError
from .models import is_model

__all__ = ["adapted", "is_adaptable"]

_UNIONS = (Union, types.UnionType)
_NONE = type(None)


def is_adaptable(hint: Any) -> bool:
    """Does it need to be read by pydantic as a whole? A model alone, or with None, does not: it reads itself."""
    if "pydantic" not in sys.modules:
        return False
    if get_origin(hint) not in _UNIONS:
        return _is_foreign(hint) and not is_model(hint)
    members = [each for each in get_args(hint) if each is not _NONE]
    return len(members) > 1 and any(_is_foreign(_bare(each)) for each in members)


def adapted(hint: Any, extras: tuple[Any, ...] = ()) -> tuple[Any, tuple[Any, ...]]:
    """What stands for it, and what is left of the `extras` around it: a discriminator is pydantic's to read."""
    optional = get_origin(hint) in _UNIONS and _NONE in get_args(hint)
    inner = Union[tuple(each for each in get_args(hint) if each is not _NONE)] if optional else hint  # noqa: UP007
    telling = [extra for extra in extras if getattr(extra, "discriminator", None) is not None]
    model = _model(cast(Any, Annotated)[(inner, *telling)] if telling else inner)
    rest = tuple(extra for extra in extras if extra not in telling or hasattr(extra, "is_required"))
    return (Union[model, None] if optional else model), rest  # noqa: UP007 - built at run time


def _is_foreign(kind: Any) -> bool:
    """Has it a schema of pydantic's? Its dataclasses have their fields, everything else a function that makes one."""
    marks = ("__get_pydantic_core_schema__", "__pydantic_fields__")
    return any(hasattr(kind, mark) for mark in marks) and not (isinstance(kind, type) and issubclass(kind, Struct))


def _bare(hint: Any) -> Any:
    return hint.__origin__ if get_origin(hint) is Annotated else hint


class _Whatever(type):
    """msgspec asks whether what was read is of the type: what pydantic made of it is."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return True


def _model(hint: Any) -> type:
    """A class that does what a model does (models.py), for a type that is none."""
    try:
        adapter: Any = cast(Any, sys.modules["pydantic"]).TypeAdapter(hint)
    except Exception as error:  # of many kinds, all of which say that it cannot be read
        raise LocalError(f"pydantic cannot read {hint!r:.200}: {str(error).partition(chr(10))[0]:.200}") from None

    def schema(mode: str = "validation") -> dict[str, Any]:
        return adapter.json_schema(mode=mode)

    members = {
        "model_json_schema": staticmethod(schema),
        "model_validate": staticmethod(adapter.validate_python),
        "model_validate_json": staticmethod(adapter.validate_json),
    }
    return _Whatever("Adapted", (), members)
