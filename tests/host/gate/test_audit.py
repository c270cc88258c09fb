"""The book: private, appended to, never lost silently, bounded."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from interlock.host.gate import audit as audit_module
from interlock.host.gate.audit import AuditFailed, Entry, FileAudit, MemoryAudit


def entry(name: str = "send", **more) -> Entry:
    return Entry(
        at="2026-01-01T00:00:00.000+00:00",
        call="x-1",
        step="decision",
        principal="interlock local",
        kind="tool",
        server="mail",
        name=name,
        **more,
    )


def names_in(path) -> list[str]:
    return [json.loads(line)["name"] for line in path.read_bytes().splitlines()]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deep" / "audit.jsonl"


@pytest.fixture
def audit(path):
    audit = FileAudit(path)
    yield audit
    audit.close()


def test_a_line_per_entry_in_a_file_of_its_owner(audit, path):
    audit.write(entry("a", decision="allow"))
    audit.write(entry("b\n\x1b[2J", decision="deny"))
    assert names_in(path) == ["a", "b\n\x1b[2J"] and len(path.read_bytes().splitlines()) == 2
    assert path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o777 == 0o700
    assert "outcome" not in json.loads(path.read_bytes().splitlines()[0]), "what is not known is not there"


def test_what_was_written_before_stays(path):
    for name in ("a", "b"):
        audit = FileAudit(path, durable=True)
        audit.write(entry(name))
        audit.close()
    assert names_in(path) == ["a", "b"]


def test_a_file_that_is_moved_or_deleted_is_begun_anew(audit, path, monkeypatch):
    monkeypatch.setattr(audit_module, "_LOOK_SECONDS", 0.0)
    audit.write(entry("a"))
    path.rename(path.with_suffix(".old"))
    audit.write(entry("b"))
    path.unlink()
    audit.write(entry("c"))
    assert names_in(path) == ["c"] and names_in(path.with_suffix(".old")) == ["a"]


def test_full_files_are_kept_up_to_a_number(path):
    audit = FileAudit(path, most_bytes=400, keep=2)
    for number in range(20):
        audit.write(entry(f"n{number:02}"))
    audit.close()
    files = [path.with_name(name) for name in ("audit.jsonl.2", "audit.jsonl.1", "audit.jsonl")]
    kept = [name for file in files for name in names_in(file)]
    assert kept == [f"n{number:02}" for number in range(20 - len(kept), 20)] and len(kept) > 4
    assert all(file.stat().st_size <= 400 and file.stat().st_mode & 0o777 == 0o600 for file in files)
    assert {file.name for file in path.parent.iterdir()} == {*(file.name for file in files), "audit.jsonl.lock"}


def test_one_line_longer_than_a_file_may_be_is_written_all_the_same(path):
    audit = FileAudit(path, most_bytes=10, keep=0)
    for name in ("a", "b"):
        audit.write(entry(name))
    audit.close()
    assert names_in(path) == ["b"]


WRITE = """
import sys
from interlock.host.gate.audit import Entry, FileAudit
audit = FileAudit(sys.argv[1], most_bytes=2000, keep=100)
for number in range(50):
    audit.write(Entry(at="x", call="x", step="decision", principal="p", kind="tool", server="s", name=sys.argv[2]))
"""


def test_several_processes_write_into_one_book_and_no_line_is_lost(path):
    running = [subprocess.Popen([sys.executable, "-c", WRITE, str(path), name]) for name in "abc"]
    assert [process.wait(60) for process in running] == [0, 0, 0]
    files = [file for file in path.parent.iterdir() if not file.name.endswith(".lock")]
    found = [name for file in files for name in names_in(file)]
    assert sorted(found) == sorted("abc" * 50) and len(files) > 2


def test_what_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "audit.jsonl", tmp_path):
        with pytest.raises(AuditFailed, match="cannot be written") as caught:
            FileAudit(path).write(entry())
        assert caught.value.hint


def test_a_book_that_others_can_read_is_not_used(audit, path):
    audit.write(entry("a"))
    audit.close()
    path.chmod(0o644)
    with pytest.raises(AuditFailed, match="others than its owner"):
        audit.write(entry("b"))
    assert names_in(path) == ["a"]


def test_a_link_is_not_followed(audit, path, tmp_path):
    path.parent.mkdir()
    (tmp_path / "elsewhere").touch(0o600)
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(AuditFailed):
        audit.write(entry())
    assert (tmp_path / "elsewhere").read_bytes() == b""


def test_half_a_line_fails_and_spoils_only_itself(audit, path, monkeypatch):
    write = os.write
    audit.write(entry("a"))
    monkeypatch.setattr(os, "write", lambda file, line: write(file, line[:20]))
    with pytest.raises(AuditFailed, match="in part only"):
        audit.write(entry("b"))
    monkeypatch.undo()
    audit.write(entry("c"))
    lines = path.read_bytes().splitlines()
    assert [json.loads(line)["name"] for line in (lines[0], lines[2])] == ["a", "c"] and len(lines[1]) == 20


def test_memory_keeps_the_newest():
    audit = MemoryAudit(most=2)
    for name in "abc":
        audit.write(entry(name))
    assert [each.name for each in audit.entries] == ["b", "c"]


def test_several_lines_are_written_at_the_price_of_one(audit, path, monkeypatch):
    audit.write(entry("a"))
    pieces: list[bytes] = []
    write = os.write

    def counted(file: int, data: bytes) -> int:
        pieces.append(data)
        return write(file, data)

    monkeypatch.setattr(os, "write", counted)
    audit.write_many([entry("b"), entry("c"), entry("d")])
    assert names_in(path) == ["a", "b", "c", "d"] and len(pieces) == 1


def test_several_lines_do_not_overfill_a_file(path):
    audit = FileAudit(path, most_bytes=400, keep=10)
    audit.write_many([entry(f"n{number:02}") for number in range(10)])
    audit.close()
    files = [file for file in path.parent.iterdir() if not file.name.endswith(".lock")]
    assert sorted(name for file in files for name in names_in(file)) == [f"n{number:02}" for number in range(10)]
    assert all(file.stat().st_size <= 400 for file in files) and len(files) > 2


def test_several_lines_that_cannot_be_written_are_said_to_be_so(tmp_path):
    with pytest.raises(AuditFailed, match="cannot be written"):
        FileAudit(tmp_path).write_many([entry("a"), entry("b")])
