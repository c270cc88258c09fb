"""What was and what is, side by side for a person: line by line, everything that cannot be seen written out.

Nothing of what is new is ever cut: who approves must have been able to read all of it. Where comparing would take too
long, both stand there whole.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator

import msgspec

from ..wire.display import display

__all__ = ["difference", "escaped", "readable"]

_MOST_LINES = 2000  # of both, to be compared: the time grows with their product, and the text is a stranger's


def readable(text: str | bytes) -> str:
    """JSON on many lines and escaped; a text in it that has lines of its own stays on one."""
    return escaped(msgspec.json.format(text, indent=2) if isinstance(text, str) else _indented(text))


def escaped(text: str) -> str:
    """Line by line, whole: nothing moves a cursor, hides, or turns the direction of what is read."""
    return "\n".join(display(line, len(line)) for line in text.split("\n"))


def difference(before: str, after: str) -> str:
    """Of two texts of JSON: lines that are gone begin with -, new ones with +. An empty `before` was not kept."""
    new = readable(after).split("\n")
    if not before:
        return _marked("+ ", new)
    old = readable(before).split("\n")
    if len(old) + len(new) > _MOST_LINES:
        return "\n".join((_marked("- ", old), _marked("+ ", new)))
    return "\n".join(_compared(old, new))


def _compared(old: list[str], new: list[str]) -> Iterator[str]:
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
