"""All revisions, oldest first. The only list of them."""

from __future__ import annotations

from ..wire.errors import LocalError, MethodNotFound
from .r2024_11_05 import R2024_11_05
from .r2025_03_26 import R2025_03_26
from .r2025_06_18 import R2025_06_18
from .r2025_11_25 import R2025_11_25
from .r2026_07_28 import R2026_07_28
from .revision import Era, Revision

__all__ = ["REVISIONS", "NEWEST", "OFFICIAL_METHODS", "pick", "newest_of", "names_of", "not_served"]

REVISIONS: dict[str, Revision] = {
    row.name: row for row in (R2024_11_05, R2025_03_26, R2025_06_18, R2025_11_25, R2026_07_28)
}
NEWEST = R2026_07_28

OFFICIAL_METHODS = frozenset[str]().union(
    *(row.requests for row in REVISIONS.values()),
    *(row.questions for row in REVISIONS.values()),
    # the experimental tasks of 2025-11-25, not offered
    ("tasks/get", "tasks/result", "tasks/list", "tasks/cancel", "tasks/update"),
)
"""Names the specification has taken in any revision: authors cannot define them."""

_QUESTIONS = frozenset[str]().union(*(row.questions for row in REVISIONS.values()))


def pick(names: tuple[str, ...] | None) -> dict[str, Revision]:
    """The rows of these names (default: all), oldest first; unknown names are a mistake of the caller."""
    if names is None:
        return dict(REVISIONS)
    unknown = sorted(set(names) - REVISIONS.keys())
    if unknown or not names:
        known = ", ".join(REVISIONS)
        raise LocalError(f"unknown revision {', '.join(unknown) or '(none given)'}: choose from {known}")
    return {name: row for name, row in REVISIONS.items() if name in names}


def newest_of(rows: dict[str, Revision], era: Era) -> Revision | None:
    """The newest row of that era, if there is one."""
    return next((row for row in reversed(rows.values()) if row.era is era), None)


def not_served(method: str) -> MethodNotFound:
    """The refusal of an official method that a client cannot send in its revision."""
    if method in _QUESTIONS:
        return MethodNotFound(f"{method} goes from a server to its client: a client cannot send it to a server")
    return MethodNotFound(f"{method} does not exist in this revision")


def names_of(rows: dict[str, Revision]) -> list[str]:
    """Newest first, as peers want to read it."""
    return list(reversed(rows))
