"""One member of a settings file set or removed, as an edit of its text: every other byte stays where it is.

Comments, blanks, line ends, the order of members and the way numbers are written belong to the person whose file it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, cast

from ...client.config.parser import ConfigError, members_in
from ...wire.escaping import display
from .json_parser import Member, Node, places, skip_on_line

__all__ = ["HIDDEN", "masked", "remove_member", "set_member", "take_back", "value_at"]

HIDDEN = '"…"'
_SECRET_PARTS = ("env", "headers")  # of an entry: their values are nobody's business
_Edit = tuple[int, int, str]


def value_at(text: str, path: Sequence[str], where: str) -> Any:
    """What the file says at `path`; None where it says nothing."""
    found: Any = members_in(text, where) if text.strip() else {}
    for name in path:
        found = cast("dict[str, Any]", found).get(name) if isinstance(found, dict) else None
    return found


def set_member(text: str, path: Sequence[str], value: Any, where: str) -> str:
    """`text` with `value` at `path`. The objects on the way are made where they are missing."""
    if not text.strip():
        return text + _pretty(_nested(path, value), "", "  ", "\n") + "\n"
    before = members_in(text, where)
    style = _Style(text)
    node, depth = _deepest(places(text, where), path, where)
    if depth == len(path):
        edits = [_replace(text, node, value, style)]
    else:
        edits = [*_insert(text, node, path[depth], _nested(path[depth + 1 :], value), style)]
    changed = _apply(text, edits)
    if not _means(changed, _with(before, path, value), where):
        raise _unsafe(where)
    return changed


def remove_member(text: str, path: Sequence[str], where: str) -> str:
    """`text` without the member at `path`; comments around it stay."""
    before = members_in(text, where)
    node, depth = _deepest(places(text, where), path[:-1], where)
    found = next((number for number, each in enumerate(node.members) if each.name == path[-1]), None)
    if depth != len(path) - 1 or found is None:
        raise ConfigError(f"{where}: there is no {display('.'.join(path), 200)}")
    start, wanted = node.members[found].start, _without(before, path)
    for begin in (_line_break_before(text, start), start):  # the break stays where a comment before it needs it
        changed = _apply(text, [*_remove(node.members, found, begin)])
        if _means(changed, wanted, where):
            return changed
    raise _unsafe(where)


def take_back(text: str, path: Sequence[str], where: str) -> str:
    """`text` as it was before `set_member`, as far as that can be told. Of an object that is empty now nobody knows
    whether it was there: what it may have been is tried, and holds if setting the member again gives this very text."""
    removed, value = remove_member(text, path, where), value_at(text, path, where)
    if value_at(removed, path[:-1], where):
        return removed
    for guess in (_without_object, _empty_object):
        with suppress(ConfigError):
            before = guess(removed, path[:-1], where)
            if before and set_member(before, path, value, where) == text:
                return before
    return removed


def _without_object(text: str, path: Sequence[str], where: str) -> str:
    """Nothing for a file that is about nothing else: it has kept its object to be read by somebody."""
    without = remove_member(text, path, where)
    return without if members_in(without, where) else ""


def _empty_object(text: str, path: Sequence[str], where: str) -> str:
    """As people write it."""
    node, _ = _deepest(places(text, where), path, where)
    return _apply(text, [(node.start, node.end, "{}")])


def masked(text: str, path: Sequence[str], where: str) -> str:
    """`text` to show: of values that are not ours nothing is seen, nor of our variables and headers."""
    if not text.strip():
        return text
    root = places(text, where)
    node, depth = _deepest(root, path, where)
    ours = (node.start, node.end) if depth == len(path) else (0, 0)
    hidden = [each for each in _scalars(root, False) if not ours[0] <= each[0].start < ours[1] or each[1]]
    return _apply(text, [(each.start, each.end, HIDDEN) for each, _ in hidden])


# --- where ---


def _deepest(root: Node, path: Sequence[str], where: str) -> tuple[Node, int]:
    """The value at `path`, or the object on the way that lacks the next name; and how many names were found."""
    node = root
    for depth, name in enumerate(path):
        if node.kind != "object":
            raise ConfigError(f"{where}: {display('.'.join(path[:depth]), 200)} must be an object")
        found = next((each for each in node.members if each.name == name), None)
        if found is None:
            return node, depth
        node = found.value
    return node, len(path)


def _scalars(node: Node, secret: bool) -> Iterator[tuple[Node, bool]]:
    """Every value that is no object and no array, and whether it stands below variables or headers."""
    if node.kind == "scalar":
        yield node, secret
    for item in node.items:
        yield from _scalars(item, secret)
    for member in node.members:
        yield from _scalars(member.value, secret or member.name in _SECRET_PARTS)


# --- how the file is written ---


class _Style:
    """Line ends and indentation as the file has them; a file of one line stays one."""

    def __init__(self, text: str) -> None:
        first = text.find("\n")
        self.newline = "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"
        self.one_line = "\n" not in text.strip() and text.strip() != "{}"
        self.unit = next(filter(None, (_indent(line) for line in text.splitlines() if line.strip())), "  ")

    def render(self, value: Any, indent: str) -> str:
        if self.one_line:
            return json.dumps(value, ensure_ascii=False)
        return _pretty(value, indent, self.unit, self.newline)


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def _indent_at(text: str, at: int) -> str:
    """The blanks at the beginning of the line."""
    start = text.rfind("\n", 0, at) + 1
    return _indent(text[start:at])


def _pretty(value: Any, indent: str, unit: str, newline: str) -> str:
    return json.dumps(value, ensure_ascii=False, indent=unit).replace("\n", newline + indent)


def _nested(path: Sequence[str], value: Any) -> Any:
    for name in reversed(path):
        value = {name: value}
    return value


# --- the edits ---


def _apply(text: str, edits: list[_Edit]) -> str:
    """Of two at one place, the first is put in first."""
    pieces, at = list[str](), 0
    for start, end, instead in sorted(edits, key=lambda edit: edit[0]):
        pieces += [text[at:start], instead]
        at = end
    return "".join([*pieces, text[at:]])


def _replace(text: str, node: Node, value: Any, style: _Style) -> _Edit:
    return node.start, node.end, style.render(value, _indent_at(text, node.start))


def _insert(text: str, node: Node, name: str, value: Any, style: _Style) -> Iterator[_Edit]:
    key = json.dumps(name, ensure_ascii=False) + ": "
    if not node.members:
        yield _first(text, node, key, value, style)
        return
    last = node.members[-1]
    if last.comma is None:
        yield last.value.end, last.value.end, ","
    behind = last.value.end if last.comma is None else last.comma + 1
    end = "" if last.comma is None else ","  # a file with last commas keeps them
    if not _begins_line(text, last.start):
        yield behind, behind, " " + key + json.dumps(value, ensure_ascii=False) + end
        return
    indent = _indent_at(text, last.start)
    at = skip_on_line(text, behind)
    yield at, at, style.newline + indent + key + style.render(value, indent) + end


def _first(text: str, node: Node, key: str, value: Any, style: _Style) -> _Edit:
    """Into an object without members: behind its comments, if it has some."""
    rest = text[node.start + 1 : node.end - 1]
    at = node.start + 1 + len(rest.rstrip())
    if style.one_line:
        return at, at, key + style.render(value, "")
    outer = _indent_at(text, node.start)
    inner = outer + style.unit
    end = "" if "\n" in text[at : node.end] else style.newline + outer
    return at, at, style.newline + inner + key + style.render(value, inner) + end


def _begins_line(text: str, at: int) -> bool:
    start = text.rfind("\n", 0, at) + 1
    return start > 0 and not text[start:at].strip(" \t")


def _remove(members: list[Member], number: int, start: int) -> Iterator[_Edit]:
    """The member from `start` on, with its comma; the comma before it goes when it was the last."""
    member = members[number]
    yield start, member.value.end, ""
    comma = member.comma
    if comma is None and number:
        comma = members[number - 1].comma
    if comma is not None:
        yield comma, comma + 1, ""


def _line_break_before(text: str, start: int) -> int:
    """Where the line of a member begins, its break included; for one in the midst of a line, the blanks before it."""
    start = len(text[:start].rstrip(" \t"))
    if _begins_line(text, start):
        start -= 2 if text[start - 2 : start] == "\r\n" else 1
    return start


# --- what the change must mean ---


def _means(text: str, wanted: dict[str, Any], where: str) -> bool:
    """The judge of every edit: the file is read again before anything is written."""
    try:
        return members_in(text, where) == wanted
    except ConfigError:
        return False


def _unsafe(where: str) -> ConfigError:
    return ConfigError(f"{where}: the file could not be changed safely; nothing was written")


def _with(members: dict[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    inner: Any = members.get(path[0], {})
    return {**members, path[0]: value if len(path) == 1 else _with(inner, path[1:], value)}


def _without(members: dict[str, Any], path: Sequence[str]) -> dict[str, Any]:
    if len(path) == 1:
        return {name: value for name, value in members.items() if name != path[0]}
    return {**members, path[0]: _without(members[path[0]], path[1:])}
