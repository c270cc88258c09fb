"""The manifest itself: which markers count, and what is called open, unknown, bad, needless or thin."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.manifest import (
    Manifest,
    Reason,
    Row,
    Shown,
    owned_rows,
    read_reasons,
    read_rows,
    spec_differences,
)

TESTS = Path(__file__).resolve().parents[1]
ASK = (
    "import json, sys; from pathlib import Path; from support.manifest import collect_shown;"
    "found = collect_shown([Path(sys.argv[1])]); print(json.dumps([found.tests, found.broken]))"
)


def collected(folder: Path, source: str) -> tuple[dict, list]:
    """What a file of tests claims; collected in a process of its own, because pytest runs in this one."""
    (folder / "test_it.py").write_text(source)
    command = [sys.executable, "-c", ASK, str(folder / "test_it.py")]
    told = subprocess.run(command, capture_output=True, text=True, cwd=TESTS, timeout=60)
    assert told.returncode == 0, told.stderr
    tests, broken = json.loads(told.stdout)
    return {id: {node.split("::", 1)[1]: at for node, at in found.items()} for id, found in tests.items()}, broken


def test_markers_of_functions_classes_modules_and_parameters(tmp_path: Path):
    tests, broken = collected(
        tmp_path,
        """
import pytest
pytestmark = pytest.mark.requirement("M-1")
@pytest.mark.requirement("C-1")
class TestClass:
    @pytest.mark.requirement("F-1", "F-2")
    def test_method(self): ...
@pytest.mark.parametrize("it", [pytest.param("2025-06-18", marks=pytest.mark.requirement("P-1")), "x"])
def test_function(it): ...
""",
    )
    assert broken == []
    everywhere = {
        "TestClass::test_method": None,
        "test_function[2025-06-18]": "2025-06-18",
        "test_function[x]": None,
    }
    assert tests["M-1"] == everywhere
    assert tests["C-1"] == tests["F-1"] == tests["F-2"] == {"TestClass::test_method": None}
    assert tests["P-1"] == {"test_function[2025-06-18]": "2025-06-18"}


def test_a_test_that_never_runs_shows_nothing(tmp_path: Path):
    source = 'import pytest\n@pytest.mark.requirement("X")\n@pytest.mark.{}\ndef test_it(): ...\n'
    assert collected(tmp_path, source.format("skip")) == ({}, [])
    assert collected(tmp_path, source.format("xfail")) == ({}, [])


def test_a_file_that_cannot_be_collected_is_named(tmp_path: Path):
    tests, broken = collected(tmp_path, "import nothing_of_this_name\n")
    assert tests == {}
    assert len(broken) == 1 and "nothing_of_this_name" in broken[0]


def row(id: str, level: str = "MUST", revisions: str = "2024-11-05..2025-11-25") -> Row:
    return Row(id, "handshake BASE", "both", level, revisions, "Something holds.")


def manifest(rows: list[Row], tests: dict[str, dict[str, str | None]], *reasons: tuple[str, str]) -> Manifest:
    written = [Reason(id, text, f"x.tsv:{number}") for number, (id, text) in enumerate(reasons, start=1)]
    return Manifest({row.id: row for row in rows}, Shown(tests), written)


GOOD = "Only a user interface can show this."


@pytest.mark.parametrize("level", ["MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "must", "should"])
def test_binding_rows_stay_open_until_they_have_a_test_or_a_reason(level: str):
    assert manifest([row("A", level)], {}).open() == [row("A", level)]
    assert manifest([row("A", level)], {"A": {"t": None}}).open() == []
    assert manifest([row("A", level)], {}, ("A", GOOD)).open() == []
    assert manifest([row("A", "MAY")], {}).open() == []


def test_unknown_ids_and_bad_reasons_are_found():
    found = manifest([row("A"), row("B")], {"A": {"t": None}, "Z": {"u": None}}, ("A", GOOD), ("Y", GOOD), ("B", "no"))
    assert found.unknown_in_tests() == {"Z": ["u"]}
    assert [told.split(":", 2)[0] for told in found.bad_reasons()] == ["x.tsv", "x.tsv"]
    assert "no row Y" in found.bad_reasons()[0] and "no sentence" in found.bad_reasons()[1]
    assert [reason.id for reason in found.needless_reasons()] == ["A"]
    assert "already" in manifest([row("A")], {}, ("A", GOOD), ("A", GOOD)).bad_reasons()[0]


def test_a_row_shown_in_too_few_revisions_is_thin():
    rows = [
        row("A", revisions="2025-06-18..2025-11-25 (a remark of 2024-11-05)"),
        row("B", revisions="2025-03-26"),
    ]
    found = manifest(rows, {"A": {"t": "2025-06-18"}, "B": {"t": "2025-03-26", "u": "2025-06-18"}})
    assert found.thin() == {"A": ["2025-11-25"]}
    assert manifest(rows, {"A": {"t": None}, "B": {"t": None}}).thin() == {}


def test_reasons_are_read_from_all_files(tmp_path: Path):
    (tmp_path / "one.tsv").write_text(f"# a remark\nA\t{GOOD}\n\nB {GOOD}\n")
    (tmp_path / "two.tsv").write_text(f"C\t{GOOD}\n")
    found = read_reasons(tmp_path)
    assert [(reason.id, reason.where) for reason in found if reason.objection is None] == [
        ("A", "one.tsv:2"),
        ("C", "two.tsv:1"),
    ]
    assert len(found) == 3  # the line without a tab is kept, as a bad reason


def test_a_row_that_stands_there_twice_is_refused(tmp_path: Path):
    line = "\t".join(["A", "area", "both", "MUST", "2025-06-18", "text"])
    (tmp_path / "rows.tsv").write_text(f"id\t...\n{line}\n{line}\n")
    with pytest.raises(ValueError, match="twice"):
        read_rows(tmp_path / "rows.tsv")


def test_the_table_is_compared_with_the_specification(tmp_path: Path):
    assert spec_differences({}, tmp_path) is None
    head = "id\tarea\tapplies_to\tlevel\trevisions\trequirement\thow_to_test\tsource\n"
    line = "BASE-01\tJSON-RPC base\tboth\tMUST\t2025-06-18\tSomething.\thow\twhere\n"
    (tmp_path / "requirements-handshake.tsv").write_text(head + line + line.replace("BASE-01", "TASK-01"))
    (tmp_path / "requirements-modern.tsv").write_text(head.replace("revisions\t", ""))
    [wanted] = owned_rows("handshake", tmp_path / "requirements-handshake.tsv")
    assert wanted == Row("BASE-01", "handshake BASE", "both", "MUST", "2025-06-18", "Something.")
    assert spec_differences({"BASE-01": wanted}, tmp_path) == []
    softer = Row("BASE-01", "handshake BASE", "both", "MAY", "2025-06-18", "Something.")
    assert "level" in spec_differences({"BASE-01": softer}, tmp_path)[0]
    assert spec_differences({"X": row("X")}, tmp_path) == [
        "BASE-01 is missing",
        "X is not a row of an owned area",
    ]
