"""What was and what is, side by side for a person: line by line, everything that cannot be seen written out.

Nothing of what is new is ever cut: who approves must have been able to read all of it. What is the same at the
beginning and at the end is found in any text; where comparing the middle would take too long, both stand there whole.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator

import msgspec

from ...wire.escaping import display

__all__ = ["compared", "difference", "escaped", "readable"]

_MOST_LINES = 120  # of both, to be compared one by one: the time grows with their cube, and the text is a stranger's


def readable(text: str | bytes) -> str:
    """JSON on many lines and escaped; a text in it that has lines of its own stays on one."""
    return escaped(msgspec.json.format(text, indent=2) if isinstance(text, str) else _indented(text))


def escaped(text: str) -> str:
    """Line by line, whole: nothing moves a cursor, hides, or turns the direction of what is read."""
    return "\n".join(display(line, len(line)) for line in text.split("\n"))


def difference(before: str, after: str) -> str:
    """Of two texts of JSON: lines that are gone begin with -, new ones with +. An empty `before` was not kept."""
    return compared(readable(before) if before else "", readable(after))


def compared(before: str, after: str) -> str:
    """The same of two texts that are escaped already."""
    new = after.split("\n")
    if not before:
        return _marked("+ ", new)
    return "\n".join(_marks(before.split("\n"), new))


def _marks(old: list[str], new: list[str]) -> Iterator[str]:
    head = _same(old, new)
    tail = _same(old[head:][::-1], new[head:][::-1])
    yield from ("  " + line for line in old[:head])
    yield from _middle(old[head : len(old) - tail], new[head : len(new) - tail])
    yield from ("  " + line for line in old[len(old) - tail :])


def _same(one: list[str], other: list[str]) -> int:
    """How many lines both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((number for number, (a, b) in pairs if a != b), min(len(one), len(other)))


def _middle(old: list[str], new: list[str]) -> Iterator[str]:
    if len(old) + len(new) > _MOST_LINES:
        yield from (*("- " + line for line in old), *("+ " + line for line in new))
        return
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for tag, a_start, a_end, b_start, b_end in matcher.get_opcodes():
        if tag == "equal":
            yield from ("  " + line for line in old[a_start:a_end])
        else:
            yield from ("- " + line for line in old[a_start:a_end])
            yield from ("+ " + line for line in new[b_start:b_end])


def _marked(mark: str, lines: list[str]) -> str:
    return "\n".join(mark + line for line in lines)


def _indented(data: bytes) -> str:
    return msgspec.json.format(data, indent=2).decode()
