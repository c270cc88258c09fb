"""Types that only signatures name, of modules that few programs need.

A name that is imported for type checkers alone makes `typing.get_type_hints` fail, and whatever is built on it: tools
that write documentation, containers that inject. Importing it for real would make every program pay. So a room keeps
such names in a module of its own, from where they are loaded when somebody evaluates the hint, and not before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["finder"]


def finder(module: str, where: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of `module` (PEP 562), which takes each name from where it is."""

    def find(name: str) -> Any:
        if name not in where:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return getattr(import_module(where[name], module.rpartition(".")[0]), name)

    return find
