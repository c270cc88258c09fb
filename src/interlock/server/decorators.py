"""The two forms of a decorator: bare before a function, or called with facts about it first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..wire.errors import LocalError

__all__ = ["adding", "bare_or_not"]

F = TypeVar("F", bound=Callable[..., Any])


def adding(add: Callable[[F], None]) -> Callable[[F], F]:
    """The decorator that adds the function it stands before, and leaves it as it is."""

    def register(function: F) -> F:
        add(function)
        return function

    return register


def bare_or_not(name: str, function: Any, add: Callable[[Any], None]) -> Any:
    """`@server.tool` stands before a function; `@server.tool(...)` makes the decorator that will."""
    if function is None:
        return adding(add)
    if not callable(function):
        raise LocalError(f"@server.{name}({function!r:.60}): say it by name, @server.{name}(name=…)")
    return adding(add)(function)
