"""What is printed: text of servers without anything a terminal would act on, JSON that any program reads.

A server's words are data. Everything invisible (control bytes, marks that turn the direction of writing, blanks that
look like nothing) is shown as an escape, in text and in JSON alike; line breaks and tabs stay, in text.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from typing import Any, TextIO

import msgspec

from ...wire.escaping import IndentedText, break_lines, display_lines, is_visible
from ...wire.json.lenient import members_of
from ...wire.lazy_regex import pattern
from .output_buffer import OUTPUT, columns_of

__all__ = [
    "plain",
    "one_line",
    "is_plain_word",
    "quote_name",
    "as_json",
    "say",
    "say_data",
    "say_lines",
    "note",
    "builtins_of",
    "size_of_base64",
    "block_text",
    "contents_text",
    "is_colourful",
    "table",
    "writable",
]

_PLAIN_WORD = pattern(r"[A-Za-z0-9._+-]{1,60}")


def plain(text: str) -> str:
    """The whole text, fit for a terminal."""
    return display_lines(text.replace("\r\n", "\n"))


def one_line(text: str, limit: int = 200) -> str:
    """The beginning, on one line."""
    shown = plain(" ".join(text[: 4 * limit].split()))
    return shown if len(shown) <= limit else f"{shown[: limit - 1]}…"


def is_plain_word(text: str) -> bool:
    return _PLAIN_WORD.fullmatch(text) is not None


def quote_name(text: str, limit: int) -> str:
    """What a server calls itself, at the beginning of a line of ours: in quotes, unless it is a plain word."""
    shown = one_line(text, limit)
    return shown if is_plain_word(shown) else '"' + shown.replace('"', "'") + '"'


def as_json(value: Any, indent: int | None = 2) -> str:
    """One document. Everything unprintable is escaped, so that it may be looked at, too; where the output is not UTF-8,
    everything that is not ASCII: what `writable` would make of it is not JSON."""
    is_unicode = (sys.stdout.encoding or "utf-8").lower().startswith("utf")
    text = json.dumps(value, ensure_ascii=not is_unicode, indent=indent)
    if is_visible(text.replace("\n", "")):
        return text
    shown = "".join(char if char == "\n" or is_visible(char) else json.dumps(char)[1:-1] for char in text)
    return shown.replace("\x7f", "\\u007f")


def builtins_of(value: Any) -> Any:
    """The nouns of the protocol as plain data, by the names of the specification."""
    return msgspec.to_builtins(value)


def say(text: str = "") -> None:
    _print(text, sys.stdout)


def say_lines(text: str) -> None:
    """Lines of ours. On a terminal a long one goes on indented: what it quotes of a server does not begin a line."""
    _print(break_lines(text, columns_of(sys.stdout)), sys.stdout)


def say_data(text: str) -> None:
    """What a server gave, escaped already. On a terminal none of its lines begins at the left margin, where our own
    do; a program that reads it gets it as it is."""
    columns = columns_of(sys.stdout)
    _print(text if columns is None else IndentedText("  ", columns).feed(text), sys.stdout)


def note(text: str) -> None:
    """Beside the output: for the person, not for the program that reads it."""
    _print(break_lines(text, columns_of(sys.stderr)), sys.stderr)


def _print(text: str, stream: TextIO) -> None:
    OUTPUT.write(stream, f"{writable(text, stream)}\n")


def writable(text: str, stream: TextIO) -> str:
    """What the terminal has no letter for is escaped as well, instead of ending the command."""
    encoding = stream.encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def is_colourful(stream: TextIO) -> bool:
    return stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def size_of_base64(data: str) -> int:
    """How many bytes it stands for."""
    return max(0, len(data) * 3 // 4 - data[-2:].count("="))


def block_text(block: Any) -> str:
    """One block of content, for a person. What is no text is named, never dumped."""
    members = members_of(block) or members_of(builtins_of(block))
    kind = members.get("type")
    if kind == "text":
        return plain(str(members.get("text", "")))
    if kind in ("image", "audio"):
        return f"({kind}: {_blob(members, 'data')})"
    if kind == "resource" and members_of(members.get("resource")):
        return contents_text(members["resource"])
    if kind == "resource_link":
        return f"(resource: {one_line(str(members.get('uri')))} {one_line(str(members.get('name', '')))})"
    return f"(a block of a type that is not known here) {as_json(members)}"


def contents_text(contents: dict[str, Any]) -> str:
    """What a resource holds: its text, or how much of what it is."""
    if isinstance(contents.get("text"), str):
        return plain(contents["text"])
    return f"({one_line(str(contents.get('uri')))}: {_blob(contents, 'blob')})"


def _blob(members: dict[str, Any], name: str) -> str:
    kind = one_line(str(members.get("mimeType", "bytes")), 60)
    return f"{kind}, {size_of_base64(str(members.get(name, ''))):,} bytes"


def table(rows: Iterable[tuple[str, str]], indent: str = "  ") -> list[str]:
    """Two columns; a left side that is too wide has a line of its own."""
    rows = list(rows)
    width = min(36, max((len(left) for left, _ in rows), default=0))
    lines: list[str] = []
    for left, right in rows:
        if len(left) <= width:
            lines.append(f"{indent}{left:{width}}  {right}".rstrip())
        else:
            lines += [f"{indent}{left}", *([f"{indent}{'':{width}}  {right}"] if right else [])]
    return lines
