"""What the official suite found, and what counts: pure functions over the `checks.json` of every scenario.

The suite's own exit codes are not enough: for servers they pass over warnings, and a scenario that checked nothing ends
well. Here only a scenario that showed something, warned of nothing and ended well is good. There is no list of expected
failures.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from interlock.wire.escaping import display

__all__ = ["STATUSES", "Outcome", "judge", "last_words", "read_checks", "scenario_names", "summary", "table", "told"]

STATUSES = ("SUCCESS", "FAILURE", "WARNING", "SKIPPED", "INFO")
_BAD = ("FAILURE", "WARNING")
_TO_BE_SHOWN = {
    "server-sse-multiple-streams": "server-sse-streams-functional",
    "auth/offline-access-scope": "sep-2207-offline-access-requested",
}
"""By scenario, checks of what is optional, with which an official SDK succeeds: to be told of it is not enough."""


@dataclass(frozen=True)
class Outcome:
    """One scenario: how often each status occurred, what is wrong with it, and what is worth reading."""

    side: str
    scenario: str
    counts: dict[str, int]
    problems: list[str]
    lines: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        return not self.problems


def scenario_names(listing: str) -> list[str]:
    """The names in what `list` prints: lines like `  - tools-list [2025-06-18,2026-07-28]`."""
    found = [line.split() for line in listing.splitlines()]
    return [words[1] for words in found if len(words) >= 2 and words[0] == "-"]


def read_checks(folder: Path) -> list[dict[str, Any]]:
    """All checks below a folder: the suite makes one more for every run, with a time in its name."""
    checks: list[dict[str, Any]] = []
    for path in sorted(folder.rglob("checks.json")):
        found = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found, list):
            raise ValueError(f"{path.name} holds no list")
        checks += [check for check in cast("list[Any]", found) if isinstance(check, dict)]
    return checks


def judge(side: str, scenario: str, checks: Iterable[dict[str, Any]], *, code: int | None) -> Outcome:
    """Good or not, and why. `code` is what the suite's process ended with; None: it had to be ended."""
    counts = dict.fromkeys(STATUSES, 0)
    lines: list[str] = []
    missed = _TO_BE_SHOWN.get(scenario)
    for check in checks:
        status = str(check.get("status"))
        missed = None if check.get("id") == missed and status == "SUCCESS" else missed
        counts[status] = counts.get(status, 0) + 1
        if status != "SUCCESS":
            lines.append(told(check))
    problems = [f"{counts[status]} {status}" for status in counts if counts[status] and _is_bad(status)]
    problems += [f"{missed} was not shown"] if missed else []
    if code is None:
        problems.append("did not end in time")
    elif code != 0:
        problems.append(f"exit code {code}")
    if not counts["SUCCESS"]:
        problems.append("showed nothing")
    return Outcome(side, scenario, counts, problems, lines)


def _is_bad(status: str) -> bool:
    return status in _BAD or status not in STATUSES


def told(check: dict[str, Any]) -> str:
    """One check in a line or two: what it is, and what the suite says was wrong."""
    words = [f"{check.get('status')} {check.get('id')}: {check.get('description') or check.get('name') or ''}"]
    if check.get("errorMessage"):
        words.append(str(check["errorMessage"]))
    if check.get("details") and check.get("status") in _BAD:
        words.append(json.dumps(check["details"]))
    return "\n    ".join(display(each, 1000) for each in words)


def last_words(folder: Path, lines: int = 12) -> list[str]:
    """The end of what our client said in a scenario that went wrong: the suite keeps it beside the checks."""
    found = [path.read_text(encoding="utf-8", errors="replace") for path in sorted(folder.rglob("stderr.txt"))]
    return [f"| {display(line, 300)}" for text in found for line in text.splitlines()[-lines:]]


def table(outcomes: Iterable[Outcome]) -> str:
    """A line for every scenario, then the sums."""
    rows = list(outcomes)
    heads = ("side", "scenario", *(status.lower() for status in STATUSES), "verdict")
    lines = [
        (row.side, row.scenario, *(str(row.counts[status]) for status in STATUSES), ", ".join(row.problems) or "ok")
        for row in rows
    ]
    sums = tuple(str(sum(row.counts[status] for row in rows)) for status in STATUSES)
    lines.append(("all", f"{sum(row.good for row in rows)} of {len(rows)} good", *sums, ""))
    widths = [max(len(line[column]) for line in (heads, *lines)) for column in range(len(heads))]
    return "\n".join("  ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)).rstrip()
                     for line in (heads, *lines))  # fmt: skip


def summary(outcomes: Iterable[Outcome]) -> tuple[str, int]:
    """What to print, and the exit code: 0 only if something ran and all of it is good.

    What only informs is shown beside a problem alone: the scenarios of authorization tell every request.
    """
    rows = list(outcomes)
    parts = [table(rows)]
    for row in rows:
        lines = [line for line in row.lines if row.problems or not line.startswith("INFO ")]
        if lines or row.problems:
            verdict = ", ".join(row.problems) or "ok"
            parts.append("\n".join([f"{row.side} {row.scenario}: {verdict}", *(f"  {line}" for line in lines)]))
    return "\n\n".join(parts), 0 if rows and all(row.good for row in rows) else 1
