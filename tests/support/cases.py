"""One line on the wire and the answer it deserves: the type the bad-bytes corpus is written in."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count
from typing import Any

from support.schema_source import HANDSHAKE_REVISIONS, MODERN_REVISION, REVISIONS

__all__ = [
    "Case",
    "ENVELOPE",
    "MISSING",
    "OK",
    "PARSE",
    "INVALID",
    "PARAMS",
    "UNKNOWN",
    "both_eras",
    "fresh",
    "lines",
]

MISSING = "missing"  # no case uses this word as an id
OK = 0  # a result, not an error
PARSE, INVALID, UNKNOWN, PARAMS = -32700, -32600, -32601, -32602

ENVELOPE = (
    b'"_meta":{"io.modelcontextprotocol/protocolVersion":"%s","io.modelcontextprotocol/clientCapabilities":{}}'
    % MODERN_REVISION.encode()
)

Codes = tuple[int | None, ...]


@dataclass(frozen=True)
class Case:
    """A line (its newline left off) and what a server on stdio answers to it.

    codes           the allowed outcomes, the preferred one first: an error code, ``OK`` for a result,
                    ``None`` for silence
    id              the id the answer carries, or ``MISSING`` when it must have none
    id_recoverable  the line as a whole is refused but its id can still be read: the answer may do without it
    in_array        the answer is an array of one, because the line was a batch
    revisions       where this holds
    """

    label: str
    line: bytes
    codes: Codes
    id: Any = MISSING
    id_recoverable: bool = False
    in_array: bool = False
    revisions: tuple[str, ...] = REVISIONS

    @property
    def code(self) -> int | None:
        """The preferred outcome."""
        return self.codes[0]

    @property
    def stdlib_reads_id(self) -> bool:
        """Whether Python's reader at its most tolerant finds the id in the line."""
        try:
            value = json.loads(self.line, strict=False)
        except (ValueError, RecursionError):
            return False
        return isinstance(value, dict) and self.id != MISSING and same(value.get("id"), self.id)

    def objection(self, answer: Any) -> str | None:
        """What is wrong with ``answer`` (a decoded message, or None for silence); None if nothing is."""
        if answer is None:
            return None if None in self.codes else f"no answer, expected {self.codes}"
        if self.in_array:
            if not isinstance(answer, list) or len(answer) != 1:
                return f"expected an array of one, got {answer!r:.200}"
            answer = answer[0]
        if not isinstance(answer, dict):
            return f"expected an object, got {answer!r:.200}"
        code = OK if "result" in answer else answer.get("error", {}).get("code")
        if code is None or code not in self.codes:
            return f"expected {self.codes}, got {answer!r:.200}"
        return self._objection_to_id(answer)

    def _objection_to_id(self, answer: dict[str, Any]) -> str | None:
        if "id" not in answer:
            return None if self.id == MISSING or self.id_recoverable else f"the id {self.id!r:.60} is not echoed"
        if self.id == MISSING:
            return f"an id out of nowhere: {answer['id']!r:.60}"
        return None if same(answer["id"], self.id) else f"expected id {self.id!r:.60}, got {answer['id']!r:.60}"


def same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and one == other


# --- writing cases ---

numbers = count(1001)


def fresh() -> int:
    """An id no other case has."""
    return next(numbers)


def lines(rows: Iterable[tuple[str, bytes]], codes: Codes, **more: Any) -> list[Case]:
    """Cases of one outcome. ``%d`` in a line stands for a fresh id, which the answer is expected to carry."""
    cases = []
    for label, line in rows:
        number = fresh() if b"%d" in line else MISSING
        filled = line if number == MISSING else line.replace(b"%d", str(number).encode())
        cases.append(Case(label, filled, codes, number, **more))
    return cases


def both_eras(rows: list[tuple[str, bytes]]) -> list[Case]:
    """Fine requests, once as ``ping`` and once as ``server/discover`` in the newest revision's envelope.

    A row's line has ``@`` where method and params belong.
    """
    ping, discover = b'"method":"ping"', b'"method":"server/discover","params":{%s}' % ENVELOPE
    old = [(label, line.replace(b"@", ping)) for label, line in rows]
    new = [(f"{label} (modern)", line.replace(b"@", discover)) for label, line in rows]
    return [
        *lines(old, (OK,), revisions=HANDSHAKE_REVISIONS),
        *lines(new, (OK,), revisions=(MODERN_REVISION,)),
    ]
