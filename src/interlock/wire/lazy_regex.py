"""Regular expressions that are compiled when they are first used: a program that starts pays for those it needs."""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast

__all__ = ["pattern"]

_VERBS = ("match", "fullmatch", "search", "sub", "split", "finditer", "findall")


def pattern(source: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Like `re.compile`, later. A mistake in `source` shows with the first use, so each one needs a test."""
    return cast("re.Pattern[AnyStr]", _Pattern(source, flags))


class _Pattern:
    """Becomes as fast as the real one: from the first use on, it has its methods."""

    def __init__(self, source: Any, flags: int) -> None:
        self._said = source, flags

    def __getattr__(self, name: str) -> Any:
        if name not in _VERBS:
            raise AttributeError(name)
        made: Any = re.compile(*self._said)
        for verb in _VERBS:
            setattr(self, verb, getattr(made, verb))
        return getattr(self, name)
