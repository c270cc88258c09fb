"""What the arguments of a call become, and what is raised when they cannot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Raw

__all__ = ["Arguments", "Unmendable"]

Arguments = Callable[[Raw], Any]
"""From the arguments as they came to those of the function, by their names in a dict, or in their order in a tuple for
a function that is called directly. Raises `Unmendable`, or `msgspec.ValidationError` for what is no object."""


class Unmendable(ValueError):
    """What is wrong, a line for each argument."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines
