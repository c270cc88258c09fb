"""URI templates read backwards: from a URI to the values that make the template that URI (RFC 6570).

Three kinds of expression are enough for what servers offer, and each can be read back without guessing:

    {name}      one segment of a path: no `/`, neither raw nor encoded
    {+name}     the rest of a path, with its slashes; one in a template at most
    {?a,b}      a query at the end, its parameters in any order, each optional

Matching never goes back: literals are looked for once, from the left up to `{+name}` and from the right down to it, so
its cost grows with the length of the URI and nothing else. A value that would climb out of a folder (`..`, an encoded
slash, a backslash, an empty segment) or that hides control characters makes no match: the author's `root / path` is
safe without a thought.
"""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

import msgspec

from ..wire.errors import LocalError
from ..wire.limits import LONGEST_URI

__all__ = ["UriTemplate", "is_uri"]

_TRIPLE = r"%[0-9A-Fa-f]{2}"
_WELL_FORMED = re.compile(rf"[A-Za-z][A-Za-z0-9+.-]*:(?:[!#$&-;=?@\[\]_a-zA-Z~]|{_TRIPLE})*")  # RFC 3986
_SEGMENT = re.compile(rf"(?:[A-Za-z0-9._~!$'()*+,;=:@-]|{_TRIPLE})+")  # no `&`: it ends a value in a query
_QUERY_VALUE = re.compile(rf"(?:[A-Za-z0-9._~!$'()*+,;=:@/?-]|{_TRIPLE})*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_EXPRESSION = re.compile(r"\{([^{}]*)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class _Variable(msgspec.Struct, frozen=True):
    name: str
    with_slashes: bool


class UriTemplate:
    """One template, read once. `names` stand in its path, `query` holds the names of its query."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._literals: list[str] = []
        self._variables: list[_Variable] = []
        self.query: tuple[str, ...] = ()
        self._read(text)
        self.names = tuple(variable.name for variable in self._variables)
        self._check()
        wide = [number for number, variable in enumerate(self._variables) if variable.with_slashes]
        self._wide = wide[0] if wide else len(self._variables) - 1

    # --- reading the template -------------------------------------------------------------------

    def _read(self, text: str) -> None:
        at = 0
        for found in _EXPRESSION.finditer(text):
            self._take(text[at : found.start()], found[1])
            at = found.end()
            if self.query and at != len(text):
                raise LocalError(f"{text!r}: {found[0]} must be the last of a template")
        if not self.query:
            self._literals.append(text[at:])

    def _take(self, literal: str, expression: str) -> None:
        self._literals.append(literal)
        if expression.startswith("?"):
            self.query = tuple(self._name(name) for name in expression[1:].split(","))
        else:
            wide = expression.startswith("+")
            self._variables.append(_Variable(self._name(expression[wide:]), wide))

    def _name(self, name: str) -> str:
        if not _NAME.fullmatch(name):
            raise LocalError(f"{self.text!r}: {name!r} cannot be read back: use {{name}}, {{+name}} or {{?a,b}}")
        return name

    def _check(self) -> None:
        everything = (*self.names, *self.query)
        if not everything:
            raise LocalError(f"{self.text!r} has no variable")
        if len(set(everything)) != len(everything):
            raise LocalError(f"{self.text!r} names a variable twice")
        if not is_uri(self._literals[0]) or not all(is_uri("x:" + literal) for literal in self._literals[1:]):
            raise LocalError(f"{self.text!r} is no URI template: write scheme:rest, reserved characters %-encoded")
        if "" in self._literals[1 : len(self._variables)]:
            raise LocalError(f"{self.text!r}: two variables side by side cannot be told apart")
        if sum(variable.with_slashes for variable in self._variables) > 1:
            raise LocalError(f"{self.text!r}: only one {{+name}} can be told apart from the rest")
        if self.query and any("?" in literal for literal in self._literals):
            raise LocalError(f"{self.text!r}: a '?' before {{?{','.join(self.query)}}}")

    # --- reading a URI --------------------------------------------------------------------------

    def match(self, uri: str) -> dict[str, str] | None:
        """The values that make this template `uri`, decoded; None when there are none that are safe."""
        if len(uri) > LONGEST_URI or not is_uri(uri):
            return None
        path, mark, query = uri.partition("?") if self.query else (uri, "", "")
        raw = self._split(path)
        if raw is None:
            return None
        values: dict[str, str] = {}
        for variable, text in zip(self._variables, raw, strict=True):
            value = _path(text) if variable.with_slashes else _segment(text)
            if value is None:
                return None
            values[variable.name] = value
        more = _pairs(query, self.query) if mark else {}
        return None if more is None else values | more

    def _split(self, path: str) -> list[str] | None:
        """The raw text of every variable: literals are found from both ends, `{+name}` is what stays between."""
        first, last = self._literals[0], self._literals[-1]
        if not self._variables:
            return [] if path == first else None
        start, end = len(first), len(path) - len(last)
        if not path.startswith(first) or not path.endswith(last) or start >= end:
            return None
        before: list[str] = []
        for literal in self._literals[1 : self._wide + 1]:
            at = _find(path, literal, start + 1, end)
            if at < 0:
                return None
            before.append(path[start:at])
            start = at + len(literal)
        after: list[str] = []
        for literal in reversed(self._literals[self._wide + 1 : -1]):
            at = _find_last(path, literal, start, end - 1)
            if at < 0:
                return None
            after.append(path[at + len(literal) : end])
            end = at
        return [*before, path[start:end], *reversed(after)] if start < end else None


def is_uri(text: str) -> bool:
    """A scheme, then the characters of a URI only, every percent sign with its two digits."""
    return _WELL_FORMED.fullmatch(text) is not None


def _inside_triple(text: str, at: int) -> bool:
    """Would a literal here begin in the middle of %XX?"""
    return "%" in text[max(at - 2, 0) : at]


def _find(text: str, literal: str, start: int, end: int) -> int:
    at = text.find(literal, start, end)
    while at >= 0 and _inside_triple(text, at):
        at = text.find(literal, at + 1, end)
    return at


def _find_last(text: str, literal: str, start: int, end: int) -> int:
    at = text.rfind(literal, start, end)
    while at >= 0 and _inside_triple(text, at):
        at = text.rfind(literal, start, at + len(literal) - 1)
    return at


def _segment(raw: str) -> str | None:
    """One segment, decoded, if it names nothing but a thing of its own folder."""
    if not _SEGMENT.fullmatch(raw):
        return None
    value = _decoded(raw)
    if value is None or value in (".", "..") or "/" in value or "\\" in value or _CONTROL.search(value):
        return None
    return value


def _path(raw: str) -> str | None:
    """Segments with slashes between them: relative, and each of them safe."""
    segments = [_segment(part) for part in raw.split("/")]
    return "/".join(part for part in segments if part is not None) if None not in segments else None


def _pairs(query: str, names: tuple[str, ...]) -> dict[str, str] | None:
    """`a=1&b=2`: names of the template only, each once. The values are free text and may hold slashes."""
    found: dict[str, str] = {}
    for pair in query.split("&", len(names)):  # one more than there are names is one too many
        name, mark, raw = pair.partition("=")
        value = _decoded(raw) if mark and _QUERY_VALUE.fullmatch(raw) else None
        if value is None or name not in names or name in found or "\0" in value:
            return None
        found[name] = value
    return found


def _decoded(raw: str) -> str | None:
    try:
        return unquote_to_bytes(raw).decode("utf-8")
    except UnicodeDecodeError:
        return None
