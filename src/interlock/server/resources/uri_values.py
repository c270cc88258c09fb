"""The values inside of a URI: decoded once, and refused where they could lead somewhere else.

A value of a path never climbs and never hides: no `..`, no slash or backslash, raw or encoded, no control character.
What becomes a file name (`{+path}`, `{/path*}`, whatever is annotated `Path`) is held to more: no drive letter, and no
escape left that a second decoding would turn into any of these.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from urllib.parse import unquote_to_bytes

__all__ = ["any_text", "free_text", "is_relative_path", "pairs", "path_segment", "segment"]

_TRIPLE = "%[0-9A-Fa-f]{2}"
_SEGMENT = re.compile(rf"(?:[A-Za-z0-9._~!$'()*+,;=:@-]|{_TRIPLE})+")  # no `&`: it ends a value in a query
_FREE = re.compile(rf"(?:[A-Za-z0-9._~!$'()*+,;=:@/?-]|{_TRIPLE})*")
_ANY = re.compile(rf"(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|{_TRIPLE})+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_FOLDERS = frozenset({".", ".."})
_DRIVE = re.compile(".:", re.DOTALL)  # of any character: `ntpath` takes them all
_STILL_ENCODED = re.compile(r"%(?:2[eEfF5]|5[cC]|00)")


def segment(raw: str) -> str | None:
    """One segment, decoded, if it names nothing but a thing of its own folder."""
    if not _SEGMENT.fullmatch(raw):
        return None
    if "%" not in raw:  # then its letters hide nothing
        return raw if raw not in _FOLDERS else None
    value = _decoded(raw)
    return value if value is not None and _stays(value) else None


def path_segment(raw: str) -> str | None:
    """One segment of what becomes a path."""
    value = segment(raw)
    return value if value is not None and _is_file_name(value) else None


def free_text(raw: str) -> str | None:
    """A value of a query or a fragment: any text, slashes too, but for NUL."""
    value = _decoded(raw) if _FREE.fullmatch(raw) else None
    return None if value is None or "\0" in value else value


def any_text(raw: str) -> str | None:
    """A value whose author judges it: whatever can be decoded."""
    return _decoded(raw) if _ANY.fullmatch(raw) else None


def is_relative_path(value: str) -> bool:
    """May this decoded text be joined to a folder and stay below it, as far as the text goes?"""
    return all(part and _stays(part) and _is_file_name(part) for part in value.split("/"))


def pairs(raw: str, mark: str, names: Collection[str], many: Collection[str]) -> dict[str, str | list[str]] | None:
    """`a=1&b=2`: these names only, each once but for those that take `many` values."""
    found: dict[str, str | list[str]] = {}
    for pair in raw.split(mark):
        name, equals, rest = pair.partition("=")
        value = free_text(rest) if equals or mark == ";" else None  # `;name` says that it is empty (RFC 6570 §3.2.7)
        if value is None or name not in names or (name in found and name not in many):
            return None
        if name in many:
            held = found.setdefault(name, [])
            assert isinstance(held, list)
            held.append(value)
        else:
            found[name] = value
    return found


def _stays(value: str) -> bool:
    return value not in _FOLDERS and "/" not in value and "\\" not in value and not _CONTROL.search(value)


def _is_file_name(value: str) -> bool:
    """Nor dots and blanks alone: Windows drops blanks and dots at the end, which makes `.. ` climb."""
    return not _DRIVE.match(value) and not _STILL_ENCODED.search(value) and value.strip(". ") != ""


def _decoded(raw: str) -> str | None:
    if "%" not in raw:
        return raw
    try:
        return unquote_to_bytes(raw).decode("utf-8")
    except UnicodeDecodeError:
        return None
