"""The words after a command: which of them are options, which are its own, and what follows `--`.

Small enough for `interlock run` to pay for, and strict: an option that does not exist is an error that names the
nearest one, never a word that silently means something else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from .errors import USAGE, Failure

__all__ = ["Kind", "Number", "Words", "read_words"]


class Number(msgspec.Struct, frozen=True):
    """The value of an option that is a number within bounds."""

    least: float
    most: float
    whole: bool = False

    def read(self, option: str, text: str) -> float:
        digits = text.isascii() and text.replace("" if self.whole else ".", "", 1).isdigit() and len(text) <= 12
        number = float(text) if digits else self.least - 1
        if not self.least <= number <= self.most:
            kind = "a whole number" if self.whole else "a number"
            told = f"{option} {text[:40]!r}: this is {kind} from {self.least:g} to {self.most:.7g}"
            raise Failure(told, code=USAGE)
        return int(number) if self.whole else number


Kind = Literal["flag", "text", "texts"] | Number
"""Given or not; with a value; with a value, as often as wanted; with a number."""


class Words(msgspec.Struct, frozen=True):
    """What was typed, sorted."""

    own: list[str]
    options: dict[str, Any]
    """By name without the dashes; what was not given is missing."""
    command: list[str] | None = None
    """What follows `--`."""

    def flag(self, name: str) -> bool:
        return bool(self.options.get(name))

    def texts(self, name: str) -> list[str]:
        return self.options.get(name, [])


def read_words(words: Sequence[str], known: Mapping[str, Kind]) -> Words:
    """Options may stand anywhere before `--`, as `--name value` or `--name=value`."""
    found, rest, command = Words([], {}), list(words), None
    while rest:
        word = rest.pop(0)
        if word == "--":
            command = rest
            break
        if word.startswith("--") or (word.startswith("-") and len(word) > 1):
            _take(found.options, word, rest, known)
        else:
            found.own.append(word)
    if command is not None and not command:
        raise Failure("after -- comes the command that starts a server", code=USAGE, hint="-- python server.py")
    return msgspec.structs.replace(found, command=command)


def _take(options: dict[str, Any], word: str, rest: list[str], known: Mapping[str, Kind]) -> None:
    option, equals, value = word.partition("=")
    name = option.removeprefix("--")
    kind = known.get(name) if option.startswith("--") else None
    if kind is None or (kind == "flag" and equals):
        raise _no_such(option if kind is None else word, known)
    if kind == "flag":
        options[name] = True
        return
    if not equals:
        if not rest or rest[0] == "--":
            raise Failure(f"{option} needs a value", code=USAGE)
        value = rest.pop(0)
    if kind == "texts":
        options.setdefault(name, []).append(value)
    elif name in options:
        raise Failure(f"{option} is given twice", code=USAGE)
    else:
        options[name] = kind.read(option, value) if isinstance(kind, Number) else value


def _no_such(option: str, known: Mapping[str, Kind]) -> Failure:
    from difflib import get_close_matches  # only who mistypes pays for it

    near = get_close_matches(option, [f"--{name}" for name in known], 1)
    return Failure(
        f"there is no option {option[:60]!r}",
        code=USAGE,
        hint=f"did you mean {near[0]}?" if near and near[0] != option else "--help shows all options",
    )
