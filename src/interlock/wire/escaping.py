"""Text of a peer, made fit for a terminal or a log: it is data, and data does not move cursors."""

from __future__ import annotations

from collections.abc import Iterator

from .lazy_regex import pattern

__all__ = [
    "MAX_BLOCK_LINES",
    "IndentedText",
    "break_lines",
    "cut_columns",
    "display",
    "display_block",
    "display_lines",
    "is_visible",
]

MAX_BLOCK_LINES = 40  # of a peer's text that stands beside a question; a screen has about as many
_BLOCK_COLUMNS = 80
_MIN_COLUMNS = 20  # a narrower terminal is treated as if it had so many
_BLOCK_INDENT, _CONTINUATION = "  | ", "    "

# Printable by Unicode's categories, and yet drawn as nothing: joiners, fillers of Hangul, inherent vowels of Khmer,
# variation selectors, the blanks of Braille, hieroglyphs and musical notation. Bidirectional controls and zero-width
# characters are not printable anyway.
_BLANK = pattern(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U00013441\U00013442\U0001d159\U000e0100-\U000e01ef]"
)


def is_visible(text: str) -> bool:
    """Every character of it is drawn, and none moves the cursor or turns the direction of reading."""
    return text.isprintable() and (text.isascii() or _BLANK.search(text) is None)


def display(text: str, limit: int = 2000) -> str:
    """`text` with everything invisible escaped, cut at `limit` characters."""
    shown = text[:limit]
    if not is_visible(shown):
        shown = "".join(char if is_visible(char) else ascii(char)[1:-1] for char in shown)
    return shown if len(text) <= limit else f"{shown}… ({len(text)} characters)"


def display_lines(text: str) -> str:
    """All of `text`, on the lines it has: line breaks and tabs stay, everything else invisible is escaped."""
    if is_visible(text.replace("\n", "").replace("\t", "")):
        return text
    return "".join(char if char in "\n\t" or is_visible(char) else ascii(char)[1:-1] for char in text)


class IndentedText:
    """Text that comes in pieces: each of its lines is indented, and broken before it has `columns` columns. A terminal
    would break it at the left margin, where only our own lines begin. `columns=None`: lines are as long as they are."""

    def __init__(self, indent: str, columns: int | None) -> None:
        self._indent = indent
        self._columns = max(columns, _MIN_COLUMNS) if columns is not None else None
        self._column: int | None = None  # None: at the beginning of a line

    def feed(self, text: str) -> str:
        """The next piece, escaped already, as it is to be written."""
        pieces: list[str] = []
        for char in text.replace("\t", "    "):
            if char == "\n":
                pieces.append(f"{self._indent.rstrip()}\n" if self._column is None else "\n")
                self._column = None
                continue
            width = 1 if char.isascii() else 2  # no character has more columns; one that has fewer is broken early
            if self._column is not None and self._columns is not None and self._column + width >= self._columns:
                pieces.append("\n")
                self._column = None
            if self._column is None:
                pieces.append(self._indent)
                self._column = len(self._indent)
            pieces.append(char)
            self._column += width
        return "".join(pieces)


def cut_columns(text: str, columns: int) -> str:
    """As much of one line as surely has no more than `columns` columns."""
    return IndentedText("", columns).feed(text[:columns]).partition("\n")[0]


def break_lines(text: str, columns: int | None) -> str:
    """Each line that is too long goes on below, indented; it is broken after a space, where there is one."""
    if columns is None or len(text) * 2 < columns:
        return text
    columns = max(columns, _MIN_COLUMNS + len(_CONTINUATION))
    return "\n".join(piece for line in text.split("\n") for piece in _pieces(line.replace("\t", "    "), columns))


def _pieces(line: str, columns: int) -> Iterator[str]:
    indent = ""
    while len(piece := cut_columns(line, columns - len(indent))) < len(line):
        piece = piece[: piece.rfind(" ", len(piece) // 2) + 1] or piece
        yield indent + piece
        line, indent = line[len(piece) :], _CONTINUATION
    yield indent + line


def display_block(text: str, *, lines: int | None = MAX_BLOCK_LINES, columns: int | None = _BLOCK_COLUMNS) -> str:
    """A peer's text as a block that cannot be taken for anything else: escaped, each line behind `  | `, and no more
    than `lines` of them."""
    escaped = display_lines(text.replace("\r\n", "\n").rstrip("\n"))
    if not escaped:
        return _BLOCK_INDENT.rstrip()
    found = IndentedText(_BLOCK_INDENT, columns).feed(escaped).split("\n")
    if lines is not None and len(found) > lines:
        found[lines:] = [f"{_BLOCK_INDENT}… ({len(found) - lines} more lines)"]
    return "\n".join(found)
