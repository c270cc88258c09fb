"""Which of many tools a sentence is about: Okapi BM25 over their names, descriptions and parameters.

A word that few tools have says more than one that all have, a word in the name more than one in the description, and
saying it a hundred times hardly more than saying it twice, so that no server ranks first by repeating itself.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from math import log
from typing import Any, cast

from msgspec import UNSET

from ...wire.lazy_regex import pattern
from ...wire.types.tools import Tool
from .catalogue import Entry

__all__ = ["Ranking", "words_of"]

_WORD = pattern(r"[A-Z]?[a-z]{1,60}|[A-Z]{1,60}(?![a-z])|[0-9]{1,60}|[^\W\d_a-zA-Z]{1,60}")
_SAYS_NOTHING = frozenset(
    (
        *("a", "an", "and", "are", "at", "by", "for", "from", "in", "is", "it", "my", "of", "on", "or", "that", "the"),
        *("this", "to", "what", "with", "you", "your"),
    )
)
_SATURATION, _LENGTH = 1.2, 0.75  # k1 and b, as usual
_IN_NAME = 3  # so many times a word of the name counts
_OFTEN = 4  # times that a word counts at most
_MOST_WORDS = 1_000  # of one tool
_MOST_ASKED = 200  # of a sentence


def words_of(text: str, most: int = _MOST_WORDS) -> list[str]:
    """In small letters, camelCase taken apart, without the plural's s. Scripts without spaces give pairs of signs."""
    found: list[str] = []
    for match in _WORD.finditer(text[: most * 20]):
        word = match[0].lower()
        if word.isascii() or len(word) < 3:
            found.append(word[:-1] if len(word) > 3 and word[-1] == "s" and word[-2] != "s" else word)
        else:
            found.extend(word[at : at + 2] for at in range(len(word) - 1))
        if len(found) >= most:
            break
    return found[:most]


class Ranking:
    """The tools of one version of a catalogue, ready to be searched."""

    def __init__(self, entries: Iterable[Entry[Tool]]) -> None:
        self._lengths: dict[str, int] = {}
        self._found: defaultdict[str, dict[str, int]] = defaultdict(dict)
        for entry in entries:
            words = Counter(_said(entry))
            self._lengths[entry.exposed] = sum(words.values())
            for word, times in words.items():
                self._found[word][entry.exposed] = min(times, _OFTEN)
        self._mean = sum(self._lengths.values()) / max(len(self._lengths), 1) or 1.0

    def scores(self, text: str) -> dict[str, float]:
        """How much each tool that shares a word with the text is about it; the others are not in it."""
        scores: defaultdict[str, float] = defaultdict(float)
        for word in {word: None for word in words_of(text, _MOST_ASKED) if word not in _SAYS_NOTHING}:
            having = self._found.get(word)
            if not having:
                continue
            rare = log(1 + (len(self._lengths) - len(having) + 0.5) / (len(having) + 0.5))
            for name, times in having.items():
                long = 1 - _LENGTH + _LENGTH * self._lengths[name] / self._mean
                scores[name] += rare * times * (_SATURATION + 1) / (times + _SATURATION * long)
        return scores


def _said(entry: Entry[Tool]) -> list[str]:
    tool = entry.item
    title = "" if tool.title is UNSET else tool.title
    named = words_of(f"{entry.server} {tool.name} {title}") * _IN_NAME
    properties: Any = tool.input_schema.get("properties")
    parameters = " ".join(cast("dict[str, Any]", properties)) if isinstance(properties, dict) else ""
    return [*named, *words_of(f"{entry.description} {parameters}")]
