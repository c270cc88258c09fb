"""Is a path inside of one of the client's roots? By the places that paths lead to, not by how they are written."""

from __future__ import annotations

import os
from collections.abc import Iterable

from .input import Root

__all__ = ["folder_of", "within"]


def within(path: str | os.PathLike[str], roots: Iterable[Root | str]) -> bool:
    """Does `path` lead into one of the roots, or to one of them? Links are followed first, on both sides.

    Names are compared whole: `/srv/data-secret` is not within `/srv/data`. A relative path begins where the process
    works, as it does for `open`. This tells how things are now: whoever can change folders in between can change the
    answer, so open what you were told about without following links, or hold it open and ask again.
    """
    place = _real(os.fspath(path))
    if place is None:
        return False
    folders = (folder_of(root if isinstance(root, str) else root.uri) for root in roots)
    return any(_holds(folder, place) for folder in folders if folder is not None)


def folder_of(uri: str) -> str | None:
    """The folder a `file:` URI of this machine names, with its links followed; None for any other URI."""
    from urllib.parse import unquote, urlsplit  # a server starts without it

    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme != "file" or parts.netloc not in ("", "localhost") or parts.query or parts.fragment:
        return None
    path = unquote(parts.path, errors="surrogateescape")
    if os.name == "nt":
        path = path[1:] if path[2:3] == ":" else path  # /C:/data
    return _real(path) if os.path.isabs(path) else None


def _real(path: str) -> str | None:
    try:
        return os.path.normcase(os.path.realpath(path))
    except (OSError, ValueError):
        return None  # NUL in it, or nowhere at all


def _holds(folder: str, place: str) -> bool:
    try:
        return os.path.commonpath([folder, place]) == folder
    except ValueError:
        return False  # on another drive
