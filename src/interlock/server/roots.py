"""Does a path lie where the client's user works? Roots are places to stay within, not a guard (client/roots)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from .questions import Root

__all__ = ["within"]


def within(path: str | os.PathLike[str], roots: Iterable[Root]) -> bool:
    """True when `path`, its links followed, is one of the roots or below one."""
    real = Path(path).resolve()
    return any(real.is_relative_to(place) for root in roots if (place := _place(root)) is not None)


def _place(root: Root) -> Path | None:
    parts = urlsplit(root.uri)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return None
    return Path(unquote(parts.path)).resolve()
