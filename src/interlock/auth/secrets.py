"""A string that must not be seen: tokens, codes, verifiers, client secrets.

It shows nothing of itself in repr, str, format, pickles or comparisons of other types; who needs the text says so.
"""

from __future__ import annotations

import hmac
from typing import Any, NoReturn, TypeVar

__all__ = ["Secret", "Hidden"]

T = TypeVar("T")


class Secret:
    """`Secret("abc").reveal()` is the only way back."""

    __slots__ = ("__text",)

    def __init__(self, text: str) -> None:
        self.__text = text

    def reveal(self) -> str:
        return self.__text

    def __repr__(self) -> str:
        return "Secret(…)"

    def __str__(self) -> str:
        return "[secret]"

    def __bool__(self) -> bool:
        return bool(self.__text)

    def __eq__(self, other: object) -> bool:
        """In constant time; a plain string is never equal, so that none is compared by accident."""
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self.__text.encode(), other.__text.encode())

    def __hash__(self) -> int:
        return hash(self.__text)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not pickled")

    def __getstate__(self) -> Any:
        raise TypeError("a secret is not copied")


class Hidden(dict[str, T]):
    """Names and secrets, as forms and answers have them: shown are the names. What reports an error often shows the
    variables around it, too."""

    def __repr__(self) -> str:
        return f"Hidden({', '.join(self)})"
