"""Where everything stands in a file of JSON as editors keep it: comments and last commas allowed.

Programs keep their settings in such files, and people write comments into them. Whoever changes one member must know
its place in the text: a file that is read and written anew loses the rest. What a file *means* is judged by
`client/config_text.members_in`; this only finds places, and refuses what it cannot follow.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import msgspec

from ...client.config.parser import ConfigError
from ...wire.lazy_regex import pattern

__all__ = ["Member", "Node", "places", "skip_on_line"]

_GAP = pattern(r"[ \t\r\n]*(?:(?://[^\n]*|/\*[\s\S]*?\*/)[ \t\r\n]*)*")
_ON_LINE = pattern(r"(?:[ \t]*(?://[^\r\n]*(?:\r(?!\n)[^\r\n]*)*|/\*[^\n]*?\*/))*")
_SCALAR = pattern(r'"[^"\\\x00-\x1f]*(?:\\.[^"\\\x00-\x1f]*)*"|[-+.\w]+')
_DEEPEST = 64  # levels; `members_in` refuses deeper ones, too


class Node(msgspec.Struct):
    """A value: `text[start:end]`."""

    start: int
    end: int = 0
    kind: str = "scalar"  # or "object", "array"
    members: list[Member] = []
    items: list[Node] = []


class Member(msgspec.Struct):
    """A name at `start`, its value, and the place of the comma behind it, where there is one."""

    name: str
    start: int
    value: Node
    comma: int | None = None


def places(text: str, where: str) -> Node:
    """The object that is the whole text."""
    scan = _Scan(text, where)
    root = scan.value(0)
    scan.gap()
    if scan.at != len(text) or root.kind != "object":
        raise scan.lost()
    return root


def skip_on_line(text: str, at: int) -> int:
    """Behind the comments that follow on the same line; they belong to what stands before them."""
    found = _ON_LINE.match(text, at)
    return found.end() if found else at


class _Scan:
    def __init__(self, text: str, where: str) -> None:
        self._text, self._where, self.at = text, where, 0

    def lost(self) -> ConfigError:
        line = self._text.count("\n", 0, self.at) + 1
        return ConfigError(f"{self._where}: line {line} is no JSON that can be changed safely")

    def gap(self) -> str:
        """Over blanks and comments, to the next character; nothing at the end."""
        found = _GAP.match(self._text, self.at)
        self.at = found.end() if found else self.at
        return self._text[self.at : self.at + 1]

    def _take(self, wanted: str) -> int:
        if self.gap() != wanted:
            raise self.lost()
        self.at += 1
        return self.at - 1

    def value(self, depth: int) -> Node:
        if depth > _DEEPEST:
            raise self.lost()
        first = self.gap()
        node = Node(self.at)
        if first == "{":
            node.kind, node.members = "object", [*self._members(depth)]
        elif first == "[":
            node.kind, node.items = "array", [*self._items(depth)]
        else:
            self._scalar()
        node.end = self.at
        return node

    def _scalar(self) -> str:
        found = _SCALAR.match(self._text, self.at)
        if found is None:
            raise self.lost()
        self.at = found.end()
        return found[0]

    def _members(self, depth: int) -> Iterator[Member]:
        self._take("{")
        while self.gap() != "}":
            start = self.at
            if self._text[start : start + 1] != '"':
                raise self.lost()
            name = self._name()
            self._take(":")
            member = Member(name, start, self.value(depth + 1))
            member.comma = self._comma("}")
            yield member
        self._take("}")

    def _items(self, depth: int) -> Iterator[Node]:
        self._take("[")
        while self.gap() != "]":
            yield self.value(depth + 1)
            self._comma("]")
        self._take("]")

    def _name(self) -> str:
        try:
            return json.loads(self._scalar())
        except ValueError:
            raise self.lost() from None

    def _comma(self, end: str) -> int | None:
        """The comma behind a member or an item; without one, nothing but the end may follow."""
        if self.gap() == ",":
            return self._take(",")
        if self.gap() != end:
            raise self.lost()
        return None
