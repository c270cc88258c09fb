"""The texts a configuration is made of: JSON as editors keep it, files of variables, files that hold one secret.

No message here shows a text that was read: what is in such files may be a secret.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, cast

from ...wire.errors import LocalError
from ...wire.escaping import display
from ...wire.lazy_regex import pattern

__all__ = ["ConfigError", "check_depth", "members_in", "read_text", "variables_in"]

_DEEPEST = 64  # levels of a configuration; deeper is refused
# A string or comment that is not closed reaches to the end of the text and is kept: read once, then refused as JSON.
_STRING = r'"[^"\\]*(?:\\[\s\S][^"\\]*)*"?'
_COMMENTS = pattern(rf"//[^\n]*|/\*[\s\S]*?\*/|({_STRING}|/\*[\s\S]*)")
_LAST_COMMAS = pattern(rf"({_STRING})|,(?=\s*[}}\]])")
_VARIABLE = pattern(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_.]*)\s*=(.*)")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "$": "$"}


class ConfigError(LocalError):
    """A configuration cannot be used; the message names the file, the server and the member, never a value."""


def read_text(path: Path, most: int, where: str) -> str:
    """A small text file of UTF-8, with or without a mark at its beginning."""
    try:
        with open(path, "rb") as file:
            data = file.read(most + 1)
    except OSError as error:
        raise ConfigError(f"{where}: {display(str(path), 300)} cannot be read: {error.strerror}") from None
    if len(data) > most:
        raise ConfigError(f"{where}: {display(str(path), 300)} is larger than {most} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{where}: {display(str(path), 300)} is no UTF-8 (byte {error.start})") from None


def members_in(text: str, where: str) -> dict[str, Any]:
    """The object in a file of JSON. Comments and last commas, which editors allow, are passed over."""
    plain = _LAST_COMMAS.sub(lambda found: found[1] or " ", _COMMENTS.sub(_blank, text))
    try:
        found = json.loads(plain, object_pairs_hook=lambda pairs: _once(pairs, where))
    except json.JSONDecodeError as error:
        raise ConfigError(f"{where}: no JSON: {error.msg} (line {error.lineno}, column {error.colno})") from None
    except RecursionError:
        raise ConfigError(f"{where}: nested deeper than {_DEEPEST} levels") from None
    if not isinstance(found, dict):
        raise ConfigError(f'{where}: must be an object, like {{"mcpServers": {{...}}}}')
    check_depth(found, where)
    return cast("dict[str, Any]", found)


def check_depth(value: Any, where: str) -> None:
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > _DEEPEST:
            raise ConfigError(f"{where}: nested deeper than {_DEEPEST} levels")
        level = [member for each in level for member in _members_of(each)]


def _members_of(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [*cast("dict[str, Any]", value).values()]
    return [*cast("list[Any]", value)] if isinstance(value, list) else []


def _blank(found: re.Match[str]) -> str:
    """A string as it is; a comment as blanks of its size, so that places in messages stay right."""
    if found[1] is not None:
        return found[1]
    return "".join(char if char == "\n" else " " for char in found[0])


def _once(pairs: list[tuple[str, Any]], where: str) -> dict[str, Any]:
    """Which of two servers of one name would be started? Neither."""
    members = dict(pairs)
    if len(members) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ConfigError(f"{where}: the member {display(twice, 60)!r} is there twice")
    return members


def variables_in(text: str, where: str) -> dict[str, str]:
    """`NAME=value` per line, as in .env files: comments, `export`, and quotes; nothing is expanded or run."""
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _VARIABLE.fullmatch(line)
        if match is None:
            raise ConfigError(f"{where}: line {number} is not NAME=value")
        found[match[1]] = _unquoted(match[2].strip(), f"{where}: line {number}")
    return found


def _unquoted(value: str, where: str) -> str:
    quote = value[:1]
    if quote not in ("'", '"'):
        return re.split(r"\s#", value, maxsplit=1)[0].rstrip()
    match = re.fullmatch(rf"{quote}([^{quote}\\]*(?:\\.[^{quote}\\]*)*){quote}(?:\s*#.*)?", value)
    if match is None:
        raise ConfigError(f"{where}: the quote is not closed")
    if quote == "'":
        return match[1]
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[0]), match[1])
