"""What the audit says, and what it must not say."""

from __future__ import annotations

import asyncio
import tempfile
import time
from datetime import datetime
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from interlock.host.gate import audit_writer as ledger_module
from interlock.host.gate.action import Deed
from interlock.host.gate.audit import AuditFailed, Entry, FileAudit, MemoryAudit, as_line
from interlock.host.gate.audit_writer import Ledger
from interlock.wire.errors import LocalError
from interlock.wire.exchange import Principal
from support.properties import many


def written(deed: Deed, hide=()) -> Entry:
    audit = MemoryAudit()
    Ledger(audit, hide).decided(deed, "allow", "rule", "because", "session")
    return audit.entries[0]


def test_a_decision_and_its_outcome_tell_the_story():
    audit = MemoryAudit()
    ledger = Ledger(audit)
    deed = Deed("tool", "mail", "send", {"to": "ada"}, sources={"files"}, principal=Principal("https://i", "me"))
    call = ledger.decided(deed, "allow", "r1", "it may", "always")
    ledger.ended(deed, call, time.perf_counter(), "failed", "no connection", size=12, cut=True)
    first, last = audit.entries
    assert (first.call, first.step, first.kind, first.server, first.name) == (call, "decision", "tool", "mail", "send")
    assert (first.principal, first.sources, first.arguments) == ("https://i me", ("files",), '{"to":"ada"}')
    assert (first.decision, first.rule, first.because, first.scope) == ("allow", "r1", "it may", "always")
    assert (last.call, last.step, last.outcome, last.error) == (call, "outcome", "failed", "no connection")
    assert last.bytes == 12 and last.cut and last.ms >= 0
    assert datetime.fromisoformat(first.at).utcoffset() is not None


def test_calls_are_numbered_and_runs_told_apart():
    deed = Deed("tool", "s", "t")
    one, other = Ledger(MemoryAudit()), Ledger(MemoryAudit())
    calls = [ledger.decided(deed, "deny", "r") for ledger in (one, one, other)]
    assert len(set(calls)) == 3 and calls[0].split("-")[0] == calls[1].split("-")[0] != calls[2].split("-")[0]


def test_equal_arguments_have_equal_digests_in_one_run_only():
    audit = MemoryAudit()
    ledger = Ledger(audit)
    for arguments in ({"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 1}):
        ledger.decided(Deed("tool", "s", "t", arguments), "deny", "r")
    first, same, other = (each.digest for each in audit.entries)
    assert first == same != other
    assert written(Deed("tool", "s", "t", {"a": 1, "b": 2})).digest != first, "nobody can guess what is behind it"


@pytest.mark.parametrize(
    "arguments",
    [
        {"password": "geheim77"},
        {"text": "my token: geheim77"},
        {"deep": [{"url": "https://me:geheim77@example.com"}]},
        {"note": "the value geheim77 from the configuration"},
        {"quoted": 'x"geheim77'},
        {"geheim77": 1},
    ],
)
def test_secrets_are_not_written(arguments):
    entry = written(Deed("tool", "s", "t", arguments), hide=["geheim77", 'x"geheim77'])
    assert "geheim77" not in str(entry) and "[redacted]" in entry.arguments


@pytest.mark.parametrize(
    "arguments", [{"password": "geheim77"}, {"text": "my token: geheim77"}, {"u": ["https://me:geheim77@example.com"]}]
)
@pytest.mark.parametrize("book", ["memory", "file"])
def test_what_looks_like_a_secret_is_not_written_without_hide(arguments, book, tmp_path):
    """By its looks alone, without `hide`, whichever way the line is written."""
    audit = MemoryAudit() if book == "memory" else FileAudit(tmp_path / "audit.jsonl")
    ledger, deed = Ledger(audit), Deed("tool", "s", "t", arguments)
    call = ledger.decided(deed, "allow", "r", "because token=geheim77")
    ledger.ended(deed, call, 0.0, "failed", "password: geheim77")
    ledger.flush()
    text = str(audit.entries) if book == "memory" else (tmp_path / "audit.jsonl").read_text()
    assert text.count("[redacted]") == 3 and "geheim77" not in text
    audit.close()


def test_secrets_in_names_errors_and_reasons_are_not_written():
    audit = MemoryAudit()
    ledger = Ledger(audit, ["geheim77"])
    deed = Deed("resource", "s", "https://example.com/?key=abcdef&x=geheim77")
    call = ledger.decided(deed, "deny", "r", "because of geheim77")
    ledger.ended(deed, call, 0.0, "failed", "token=abcdef geheim77")
    assert "geheim77" not in str(audit.entries) and "abcdef" not in str(audit.entries)


def test_what_is_hidden_later_is_hidden_from_then_on():
    audit = MemoryAudit()
    ledger = Ledger(audit)
    ledger.hide(["geheim77", "abc"])
    ledger.decided(Deed("tool", "s", "t", {"a": "geheim77 abc"}), "deny", "r")
    assert audit.entries[0].arguments == '{"a":"[redacted] abc"}', "three letters are in too many words"


def test_long_arguments_are_cut_after_they_are_redacted():
    entry = written(Deed("tool", "s", "t", {"a": "x" * 1985 + " geheim77 " + "y" * 5000}), hide=["geheim77"])
    assert len(entry.arguments) < 2100 and "gehei" not in entry.arguments
    assert "characters)" in entry.arguments


def test_of_arguments_too_long_to_search_nothing_is_written():
    entry = written(Deed("tool", "s", "n" * 100_000, {"a": "geheim77" + "x" * 70_000}))
    assert entry.arguments == "(70016 bytes)" and entry.name == "(100000 characters)"


def test_nothing_in_a_line_moves_a_cursor():
    deed = Deed("tool", "s\x1b", "t\u202e", {"a": "b\u2066\x9b"}, sources={"o\x07"})
    entry = written(deed)
    assert all(text.isprintable() for text in (entry.server, entry.name, entry.arguments, *entry.sources))


def test_no_arguments_are_shown_as_such():
    assert written(Deed("tool", "s", "t")).arguments == "null" and written(Deed("tool", "s", "t", {})).arguments == "{}"


# --- outcomes, a moment later ---------------------------------------------------------------------

SENT = Deed("tool", "mail", "send")


class Batches:
    """An audit that takes several outcomes at once, and fails when it is told to."""

    def __init__(self) -> None:
        self.decisions: list[Entry] = []
        self.batches: list[list[str]] = []
        self.errors: list[str] = []
        self.full = False

    def write(self, entry: Entry) -> None:
        self.decisions.append(entry)

    def write_many(self, entries) -> None:
        if self.full:
            raise AuditFailed("the disk is full")
        self.batches.append([entry.call for entry in entries])
        self.errors += [entry.error for entry in entries]

    def close(self) -> None:
        pass


def end(ledger: Ledger, *calls: str, error: str = "") -> None:
    for call in calls:
        ledger.ended(SENT, call, time.perf_counter(), "failed" if error else "done", error)


async def until(is_true) -> None:
    async with asyncio.timeout(10):
        while not is_true():
            await asyncio.sleep(0.005)


async def test_outcomes_are_written_together_and_by_themselves():
    audit = Batches()
    ledger = Ledger(audit)
    end(ledger, "a", "b", "c")
    assert audit.batches == [], "whoever waits for the result does not wait for its line"
    await until(lambda: audit.batches)
    end(ledger, "d")
    await until(lambda: len(audit.batches) > 1)
    assert audit.batches == [["a", "b", "c"], ["d"]]


async def test_a_decision_does_not_wait():
    audit = Batches()
    Ledger(audit).decided(SENT, "allow", "r")
    assert len(audit.decisions) == 1


async def test_no_more_than_a_number_of_outcomes_wait():
    audit = Batches()
    end(Ledger(audit), *(f"n{number}" for number in range(130)))
    assert [len(batch) for batch in audit.batches] == [64, 64]


async def test_outcomes_that_the_loop_does_not_come_to_are_written_before_a_second_is_over(monkeypatch):
    audit = Batches()
    ledger = Ledger(audit)
    assert ledger_module._PAUSE < ledger_module._LONGEST_PAUSE < 1.0
    monkeypatch.setattr(ledger_module, "_LONGEST_PAUSE", 1e9)
    end(ledger, "a")
    ledger.decided(SENT, "allow", "r")
    assert audit.batches == []
    monkeypatch.setattr(ledger_module, "_LONGEST_PAUSE", 0.0)
    ledger.decided(SENT, "allow", "r")
    assert audit.batches == [["a"]]


def test_without_a_loop_nothing_waits():
    audit = Batches()
    end(Ledger(audit), "a", "b")
    assert audit.batches == [["a"], ["b"]]


def test_what_one_loop_left_is_written_by_the_next():
    audit = Batches()
    ledger = Ledger(audit)

    async def leave() -> None:
        end(ledger, "a")

    async def take_up() -> None:
        end(ledger, "b")
        await until(lambda: any("b" in batch for batch in audit.batches))

    asyncio.run(leave())
    asyncio.run(take_up())
    assert [call for batch in audit.batches for call in batch] == ["a", "b"]


async def test_all_that_waits_can_be_written_now_and_once():
    audit = Batches()
    ledger = Ledger(audit)
    end(ledger, "a")
    ledger.flush()
    ledger.flush()
    assert audit.batches == [["a"]]


async def test_what_is_hidden_before_the_line_is_written_is_not_in_it():
    audit = Batches()
    ledger = Ledger(audit)
    end(ledger, "a", error="geheim77 was wrong")
    ledger.hide(["geheim77"])
    ledger.flush()
    assert audit.errors == ["[redacted] was wrong"]


async def test_every_outcome_that_could_not_be_written_is_told(caplog):
    audit, lost = Batches(), []
    audit.full = True
    ledger = Ledger(audit, lost=lambda deed, error: lost.append((deed, str(error))))
    end(ledger, "a", "b")
    await until(lambda: lost)
    assert lost == [(SENT, "the disk is full")] * 2
    quiet = Ledger(audit)
    end(quiet, "c")
    quiet.flush()
    assert "was not written down: the disk is full" in caplog.text


async def test_outcomes_are_written_behind_the_next_decision_when_there_are_enough():
    audit = Batches()
    ledger = Ledger(audit)
    end(ledger, *(f"n{number}" for number in range(ledger_module._ENOUGH)))
    ledger.decided(SENT, "allow", "r")
    ledger.decided(SENT, "allow", "r")
    assert audit.batches == [], "what is decided now is sent first"
    order: list[str] = []
    asyncio.get_running_loop().call_soon(lambda: order.append(f"sent, {len(audit.batches)} batches"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert order == ["sent, 0 batches"] and [len(batch) for batch in audit.batches] == [ledger_module._ENOUGH]


TEXTS = st.text(max_size=30) | st.sampled_from(['say "no"', "back\\slash", "50 %s {name}", "\ue000", "é 中 \U0001f600"])


@given(TEXTS, TEXTS, TEXTS, st.sets(TEXTS, max_size=2), st.sampled_from(["", "session"]))
@many(60)
def test_a_line_in_a_file_is_what_an_entry_says(name, because, value, sources, scope):
    with tempfile.TemporaryDirectory() as folder:
        files, entries = FileAudit(Path(folder, "audit")), MemoryAudit()
        try:
            deed = Deed("tool", "s", name, {"a": value}, sources=sources)
        except LocalError:
            return  # texts that are no Unicode
        for audit in (files, entries):
            ledger = Ledger(audit)
            for _ in range(2):  # the second is made of what the first left
                ledger.decided(deed, "allow", "rule", because, scope)
        files.close()
        lines = Path(folder, "audit").read_bytes().splitlines()
    found = [msgspec.json.decode(line, type=Entry) for line in lines]
    varying = {"at": "", "call": "", "digest": ""}
    assert [replace(entry, **varying) for entry in found] == [replace(entry, **varying) for entry in entries.entries]
    assert all(as_line(entry) == line + b"\n" for entry, line in zip(found, lines, strict=True))


def test_an_audit_made_of_the_one_for_files_is_given_entries(tmp_path):
    class Copied(FileAudit):
        def write(self, entry: Entry) -> None:
            copies.append(entry)
            super().write(entry)

    copies: list[Entry] = []
    audit = Copied(tmp_path / "audit")
    Ledger(audit).decided(SENT, "allow", "r")
    audit.close()
    assert len(copies) == 1 and (tmp_path / "audit").read_bytes() == as_line(copies[0])
