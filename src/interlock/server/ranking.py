"""Which of many values somebody means who typed a few characters: the nearest first (server/utilities/completion)."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["ranked"]


def ranked(typed: str, choices: Iterable[str]) -> list[str]:
    """The choices that begin with it, then those that have a word that does, that hold it, that hold its letters in
    their order; in each group as they were given. Capitals do not matter."""
    wanted = typed.casefold()
    groups: tuple[list[str], ...] = ([], [], [], [])
    for choice in choices:
        if (rank := _rank(wanted, choice.casefold())) is not None:
            groups[rank].append(choice)
    return [choice for group in groups for choice in group]


def _rank(wanted: str, choice: str) -> int | None:
    at = choice.find(wanted)
    if at == 0:
        return 0
    while at > 0:
        if not choice[at - 1].isalnum():
            return 1
        if (further := choice.find(wanted, at + 1)) < 0:
            return 2
        at = further
    return 3 if _holds(wanted, choice) else None


def _holds(wanted: str, choice: str) -> bool:
    """Are its letters there in this order? Each is looked for behind the one before."""
    at = -1
    for letter in wanted:
        at = choice.find(letter, at + 1)
        if at < 0:
            return False
    return True
