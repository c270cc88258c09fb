"""The path of a URI template, literals and slots in turn, and how a path is cut at these literals from both ends."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ...wire.errors import LocalError
from .uri_values import any_text, path_segment, segment

__all__ = ["Shape", "Slot"]


class Slot(msgspec.Struct, frozen=True, kw_only=True):
    """Where the value of one variable stands."""

    name: str
    wide: bool
    """Holds slashes; there is one of these in a template at most."""
    many: str
    """What stands between several values; empty: it holds one."""
    banned: str
    """Characters that end a value here, so that none may hold them raw."""
    unchecked: bool

    def read(self, raw: str) -> str | list[str] | None:
        """The value, decoded; None if it is none, or not a safe one."""
        if self.banned and any(mark in raw for mark in self.banned if mark != self.many):
            return None
        if self.unchecked:
            return self._all(any_text, raw.split(self.many)) if self.many else any_text(raw)
        if self.wide:
            found = self._all(path_segment, raw.split("/"))
            return found if self.many or found is None else "/".join(found)
        return self._all(segment, raw.split(self.many)) if self.many else segment(raw)

    @staticmethod
    def _all(read: Callable[[str], str | None], parts: list[str]) -> list[str] | None:
        found = [value for part in parts if (value := read(part)) is not None]
        return found if len(found) == len(parts) else None


class Shape:
    """Literals, a slot behind each of them, and a literal at the end."""

    def __init__(self, text: str, steps: list[tuple[str, Slot]], end: str) -> None:
        self.slots = [slot for _, slot in steps]
        self._literals = [*(literal for literal, _ in steps), end]
        if "" in self._literals[1 : len(self.slots)]:
            raise LocalError(f"{text!r}: two variables side by side cannot be told apart")
        wide = [number for number, slot in enumerate(self.slots) if slot.wide]
        if len(wide) > 1:
            raise LocalError(f"{text!r}: only one {{+name}} or {{/name*}} can be told apart from the rest")
        for slot, literal in zip(self.slots, self._literals[1:], strict=True):
            if slot.many and not slot.wide and literal.startswith(slot.many):
                raise LocalError(f"{text!r}: the {slot.many!r} behind {slot.name} cannot be told from those between")
        self._wide = wide[0] if wide else len(self.slots) - 1

    def match(self, path: str) -> dict[str, str | list[str]] | None:
        raw = self._split(path)
        if raw is None:
            return None
        values: dict[str, str | list[str]] = {}
        for slot, text in zip(self.slots, raw, strict=True):
            value = slot.read(text)
            if value is None:
                return None
            values[slot.name] = value
        return values

    def _split(self, path: str) -> list[str] | None:
        """The raw text of every slot: literals are found from both ends, what is wide is what stays between."""
        first, last = self._literals[0], self._literals[-1]
        if not self.slots:
            return [] if path == last else None
        start, end = len(first), len(path) - len(last)
        if not path.startswith(first) or not path.endswith(last):
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
