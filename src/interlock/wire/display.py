"""Text of a peer, made fit for a terminal or a log: it is data, and data does not move cursors."""

from __future__ import annotations

__all__ = ["display", "display_lines"]


def display(text: str, limit: int = 2000) -> str:
    """`text` with everything unprintable escaped, and cut where nobody reads on."""
    shown = text[:limit]
    if not shown.isprintable():
        shown = "".join(char if char.isprintable() else repr(char)[1:-1] for char in shown)
    return shown if len(text) <= limit else f"{shown}… ({len(text)} characters)"


def display_lines(text: str) -> str:
    """All of `text`, on the lines it has: line breaks and tabs stay, everything else unprintable is escaped."""
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return "".join(char if char.isprintable() or char in "\n\t" else repr(char)[1:-1] for char in text)
