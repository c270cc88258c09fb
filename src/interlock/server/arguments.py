"""What the arguments of a call become, and what is raised when they cannot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Raw

__all__ = ["Arguments", "Unmendable"]

Arguments = Callable[[Raw], dict[str, Any]]
"""From the arguments as they came to the keyword arguments of the function. Raises `Unmendable`, or
`msgspec.ValidationError` for what is no object."""


class Unmendable(ValueError):
    """What is wrong, a line for each argument."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines
