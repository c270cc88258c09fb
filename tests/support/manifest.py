"""The requirements manifest: the rows we own, the tests that show them, the reasons for those without.

A row stands in ``behaviours/requirements.tsv``. A test shows it with ``@pytest.mark.requirement("ID", ...)``.
A row that no test can show has a line ``ID<TAB>reason`` in one of ``behaviours/reasons/*.tsv``.
"""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Iterable
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from support.schema_source import REVISIONS

__all__ = [
    "TESTS",
    "Listener",
    "Manifest",
    "Reason",
    "Row",
    "Shown",
    "collect_shown",
    "read_reasons",
    "read_rows",
    "spec_differences",
]

TESTS = Path(__file__).resolve().parents[1]
ROWS_FILE = TESTS / "behaviours" / "requirements.tsv"
REASONS_FOLDER = TESTS / "behaviours" / "reasons"
SPEC_FOLDER = TESTS.parents[1] / "shared" / "spec"  # beside the repository, where there is one

HANDSHAKE_AREAS = (
    *("BASE", "SCH", "META", "LIFE", "CAP", "CANC", "PROG", "PING", "TRANS-STDIO", "TRANS-CUST"),
    *("ELIC", "SAMP", "ROOTS", "LOG"),
    *("RES", "COMPL", "PAGE"),
    *("TOOLS", "PROMPT", "ICON"),
    "JSCH",
    *("TRANS-HTTP", "TRANS-SSE", "SEC", "PRIN", "AUTH"),
)
MODERN_AREAS = (
    *("JSONRPC", "RESULT", "ERR", "STATELESS", "META", "SCHEMA", "VERSION", "DISCOVER", "EXTNEG"),
    *("STDIO", "TRANSPORT", "CANCEL", "PROGRESS", "TRACE", "DEPR", "COMPAT"),
    *("MRTR", "ELICIT", "SAMP", "ROOTS", "HTTP", "HDR", "XHDR", "CACHE", "SUBS"),
    *("TOOLS", "PROMPT", "ICONS", "LOG"),
    "JSCHEMA",
    *("RES", "COMPL", "PAGE"),
    *("SEC", "AUTH", "AUTH-DISC", "AUTH-REG", "AUTH-SEC", "EXT-CC", "EXT-EMA", "EXT-DPOP", "EXT-WIF"),
)
OWNED = {"handshake": HANDSHAKE_AREAS, "modern": MODERN_AREAS}
BINDING = frozenset({"MUST", "MUST NOT", "SHOULD", "SHOULD NOT"})  # in small letters too
SHORTEST_REASON = 20


@dataclass(frozen=True)
class Row:
    """One requirement, as the table words it."""

    id: str
    area: str
    applies_to: str
    level: str
    revisions: str
    text: str

    @property
    def binding(self) -> bool:
        """Must there be a test or a reason? A MAY needs neither."""
        return self.level.upper() in BINDING

    @property
    def applies_in(self) -> frozenset[str]:
        """The revisions of the row; what it says in brackets is commentary."""
        first, _, last = self.revisions.partition(" (")[0].partition("..")
        return frozenset(name for name in REVISIONS if first <= name <= (last or first))


@dataclass(frozen=True)
class Reason:
    """Why a row has no test, and where that is written."""

    id: str
    text: str
    where: str

    @property
    def objection(self) -> str | None:
        """What is wrong with the sentence, if anything."""
        if len(self.text) < SHORTEST_REASON or " " not in self.text:
            return f"{self.where}: the reason for {self.id} is no sentence: {self.text!r}"
        return None


@dataclass
class Shown:
    """What the tests claim: row id → test → the revision it runs in (None: not bound to one)."""

    tests: dict[str, dict[str, str | None]] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)
    """Files that could not be collected, so that their claims are unknown."""

    def revisions_of(self, id: str) -> frozenset[str]:
        """The revisions in which a row is shown; a test that is not bound to a revision speaks for all."""
        found = set(self.tests.get(id, {}).values())
        return frozenset(REVISIONS) if None in found else frozenset(name for name in found if name)


# --- reading ---


def read_rows(path: Path = ROWS_FILE) -> dict[str, Row]:
    with path.open(encoding="utf-8", newline="") as file:
        lines = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        next(lines)
        rows = [Row(*line) for line in lines if line]
    found = {row.id: row for row in rows}
    if len(found) != len(rows):
        raise ValueError(f"{path}: an id stands there twice")
    return found


def read_reasons(folder: Path = REASONS_FOLDER) -> list[Reason]:
    """All reasons of all files. Blank lines and lines that begin with # are skipped."""
    found = []
    for path in sorted(folder.glob("*.tsv")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            if line.strip() and not line.startswith("#"):
                id, _, text = line.partition("\t")
                found.append(Reason(id.strip(), text.strip(), f"{path.name}:{number}"))
    return found


def collect_shown(paths: Iterable[Path] = (TESTS,)) -> Shown:
    """Let pytest collect the tests in this process; nothing is run.

    Not to be called inside a running pytest: start ``tools/coverage_spec.py --json`` instead.
    """
    listener = Listener()
    options = ["--collect-only", "-qq", "-p", "no:cacheprovider", f"-c={TESTS.parent / 'pyproject.toml'}"]
    with redirect_stdout(StringIO()) as told:
        code = pytest.main([*options, *map(str, paths)], plugins=[listener])
    if code in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.INTERNAL_ERROR):
        raise RuntimeError(f"pytest could not collect: {told.getvalue()}")
    return listener.shown()


class Listener:
    """A pytest plugin that reads the ``requirement`` markers of every collected test."""

    @classmethod
    def of(cls, config: pytest.Config) -> Listener:
        """The one that listens to this run (tests/conftest.py)."""
        found = config.pluginmanager.get_plugin(cls.__name__)
        assert isinstance(found, cls)
        return found

    def __init__(self) -> None:
        self.items: list[pytest.Item] = []
        self.broken: list[str] = []

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.broken.append(f"{report.nodeid}: {str(report.longrepr).strip().splitlines()[-1]}")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        self.items = list(items)

    def shown(self) -> Shown:
        found: dict[str, dict[str, str | None]] = defaultdict(dict)
        for item in self.items:
            if any(True for name in ("skip", "xfail") for _ in item.iter_markers(name)):
                continue  # a test that never runs, or is expected to fail, shows nothing
            for marker in item.iter_markers("requirement"):
                for id in marker.args:
                    found[str(id)][item.nodeid] = revision_of(item)
        return Shown(dict(found), self.broken)


def revision_of(item: pytest.Item) -> str | None:
    """The one revision a parametrised test runs in: a parameter that is one, or that has one (a transcript)."""
    callspec = getattr(item, "callspec", None)
    values = callspec.params.values() if callspec else ()
    found = {str(getattr(value, "revision", value)) for value in values} & set(REVISIONS)
    return found.pop() if len(found) == 1 else None


# --- judging ---


@dataclass
class Manifest:
    """Rows, claims and reasons side by side."""

    rows: dict[str, Row]
    shown: Shown
    reasons: list[Reason]

    @property
    def reasoned(self) -> set[str]:
        return {reason.id for reason in self.reasons}

    def open(self) -> list[Row]:
        """Binding rows with neither a test nor a reason."""
        done = self.shown.tests.keys() | self.reasoned
        return [row for row in self.rows.values() if row.binding and row.id not in done]

    def unknown_in_tests(self) -> dict[str, list[str]]:
        """Ids that tests name and the table does not have, each with its tests."""
        return {id: sorted(tests) for id, tests in self.shown.tests.items() if id not in self.rows}

    def bad_reasons(self) -> list[str]:
        """Reasons without a row, given twice, or that are no sentences."""
        found = [
            f"{reason.where}: there is no row {reason.id}" for reason in self.reasons if reason.id not in self.rows
        ]
        seen: dict[str, str] = {}
        for reason in self.reasons:
            if reason.id in seen:
                found.append(f"{reason.where}: {reason.id} has a reason in {seen[reason.id]} already")
            seen[reason.id] = reason.where
        return found + [told for reason in self.reasons if (told := reason.objection)]

    def needless_reasons(self) -> list[Reason]:
        """Reasons for rows that a test shows all the same."""
        return [reason for reason in self.reasons if reason.id in self.shown.tests]

    def thin(self) -> dict[str, list[str]]:
        """Tested rows and the revisions they apply to in which no test shows them."""
        found = {}
        for id in self.rows.keys() & self.shown.tests.keys():
            missing = self.rows[id].applies_in - self.shown.revisions_of(id)
            if missing:
                found[id] = sorted(missing)
        return {id: found[id] for id in self.rows if id in found}


# --- the specification beside the repository ---


def spec_differences(rows: dict[str, Row], folder: Path = SPEC_FOLDER) -> list[str] | None:
    """How the table differs from the rows of the owned areas; None where there is nothing to compare with."""
    paths = {era: folder / f"requirements-{era}.tsv" for era in OWNED}
    if not all(path.is_file() for path in paths.values()):
        return None
    wanted = {row.id: row for era, path in paths.items() for row in owned_rows(era, path)}
    found = [f"{id} is missing" for id in wanted if id not in rows]
    found += [f"{id} is not a row of an owned area" for id in rows if id not in wanted]
    for id in wanted.keys() & rows.keys():
        for name in ("area", "applies_to", "level", "revisions", "text"):
            ours, theirs = getattr(rows[id], name), getattr(wanted[id], name)
            if ours != theirs:
                found.append(f"{id}: {name} is {ours!r}, the specification has {theirs!r}")
    return sorted(found)


def owned_rows(era: str, path: Path) -> Iterable[Row]:
    """The rows of one file that belong to an owned area, in the form of our table."""
    areas = {re.compile(rf"{area}-\d+"): area for area in OWNED[era]}
    with path.open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            for pattern, area in areas.items():
                if pattern.fullmatch(line["id"]):
                    revisions = line.get("revisions") or REVISIONS[-1]
                    told = (line["applies_to"], line["level"], revisions, line["requirement"])
                    yield Row(line["id"], f"{era} {area}", *told)
