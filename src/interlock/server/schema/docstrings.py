"""What a docstring says: the text about the tool, and a line for each parameter.

Google (`Args:`), NumPy (`Parameters` and a ruler) and Sphinx (`:param name:`) styles are read. The text that describes
the tool is all paragraphs but the sections that speak to Python programmers: parameters, what is returned or raised.
"""

from __future__ import annotations

import inspect
import re

import msgspec

from ...wire.lazy_regex import pattern

__all__ = ["Docs", "read_docstring"]

_PARAMETERS = frozenset(
    {"args", "arguments", "parameters", "params", "keyword args", "keyword arguments", "other parameters"}
)
_DROPPED = frozenset({"returns", "return", "yields", "yield", "raises", "receives", "warns"})
_KEPT = frozenset({"example", "examples", "note", "notes", "warning", "warnings", "see also", "references", "todo"})
_GOOGLE_NAME = pattern(r"^\*{0,2}(\w+)\s*")
_NUMPY_ITEM = pattern(r"^(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?$")
_SPHINX = pattern(r"^:(\w+)(?:\s+([^:]*))?:\s*(.*)$")
_BULLET = pattern(r"^(\s+|[-*+•>|]|\d+[.)])")


class Docs(msgspec.Struct, frozen=True):
    text: str = ""
    parameters: dict[str, str] = {}


def read_docstring(text: str | None) -> Docs:
    if not text:
        return Docs()
    reader = _Reader(inspect.cleandoc(text).splitlines())
    return Docs(reader.prose(), {name: " ".join(words) for name, words in reader.parameters.items() if words})


class _Reader:
    """Goes through the lines once; `_section` is the section that the present one belongs to, None in the prose."""

    def __init__(self, lines: list[str]) -> None:
        self.parameters: dict[str, list[str]] = {}
        self._kept: list[str] = []
        self._section: str | None = None
        self._numpy = False
        self._indent: int | None = None
        self._names: list[str] = []
        at = 0
        while at < len(lines):
            at += self._take(lines, at)

    def _take(self, lines: list[str], at: int) -> int:
        """Read one line, or the two of a heading with a ruler."""
        line = lines[at]
        if self._ruled(line, lines[at + 1] if at + 1 < len(lines) else ""):
            self._enter(line.strip().casefold(), numpy=True)
            if self._section is None:
                self._kept += lines[at : at + 2]
            return 2
        heading = line.rstrip().removesuffix(":").casefold() if line.rstrip().endswith(":") else ""
        if heading in _PARAMETERS | _DROPPED or (heading in _KEPT and self._section is not None):
            self._enter(heading, numpy=False)
            if self._section is None:
                self._kept.append(line)
        elif field := _SPHINX.match(line):
            self._sphinx(field)
        else:
            self._inside(line)
        return 1

    def _ruled(self, line: str, below: str) -> bool:
        known = line.strip().casefold() in _PARAMETERS | _DROPPED | _KEPT
        return known and len(below.strip()) >= 3 and set(below.strip()) <= {"-", "="}

    def _enter(self, heading: str, numpy: bool) -> None:
        self._section = "parameters" if heading in _PARAMETERS else "dropped" if heading in _DROPPED else None
        self._numpy, self._indent, self._names = numpy, None, []

    def _sphinx(self, field: re.Match[str]) -> None:
        """`:param int count: how many`; `:type`, `:returns:` and the like say nothing to a caller."""
        self._section, self._numpy, self._indent, self._names = "sphinx", False, None, []
        word, names, said = field[1], (field[2] or "").split(), field[3]
        if word in ("param", "parameter", "arg", "argument", "key", "keyword") and names:
            self._names = [names[-1].lstrip("*")]
            self.parameters[self._names[0]] = [said] if said else []

    def _inside(self, line: str) -> None:
        blank, indent = not line.strip(), len(line) - len(line.lstrip())
        if self._section is None:
            self._kept.append(line)
        elif not blank and not indent and not (self._numpy and self._section):
            self._section = None  # back at the margin: the section is over
            self._kept += ["", line]
        elif self._section == "parameters":
            self._item(line.strip(), indent, blank)
        elif self._section == "sphinx" and not blank:
            self._go_on(line.strip())

    def _item(self, line: str, indent: int, blank: bool) -> None:
        if blank:
            return
        self._indent = indent if self._indent is None else self._indent
        found = (_numpy_item if self._numpy else _google_item)(line) if indent <= self._indent else None
        if found is None:
            self._go_on(line)
        else:
            self._names, text = found
            self.parameters.update({name: [text] if text else [] for name in self._names})

    def _go_on(self, words: str) -> None:
        for name in self._names:
            self.parameters[name].append(words)

    def prose(self) -> str:
        """The kept paragraphs. Lines of running text are joined; lists and code keep theirs."""
        paragraphs = re.split(r"\n\s*\n", "\n".join(self._kept).strip())
        return "\n\n".join(_paragraph(paragraph.splitlines()) for paragraph in paragraphs)


def _numpy_item(line: str) -> tuple[list[str], str] | None:
    """The names in `left, right : type`; their text stands on the lines below."""
    found = _NUMPY_ITEM.match(line)
    return ([name.strip().lstrip("*") for name in found[1].split(",")], "") if found else None


def _google_item(line: str) -> tuple[list[str], str] | None:
    """The name and the text of `name (type): text`. The type may hold parentheses and colons of its own."""
    found = _GOOGLE_NAME.match(line)
    if found is None:
        return None
    rest = line[found.end() :]
    if rest.startswith("("):
        rest = rest[_closing(rest) + 1 :].lstrip()
    return ([found[1]], rest[1:].strip()) if rest.startswith(":") else None


def _closing(text: str) -> int:
    """Where the parenthesis that opens `text` is closed; the end of the text if it is not."""
    depth = 0
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return at
    return len(text)


def _paragraph(lines: list[str]) -> str:
    if not lines:
        return ""
    if any(_BULLET.match(line) for line in lines[1:]) or lines[0].startswith((">>>", "```")):
        return "\n".join(line.rstrip() for line in lines)
    return " ".join(line.strip() for line in lines)
