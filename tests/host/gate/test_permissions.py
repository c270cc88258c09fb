"""Leaves: for how long they last and what they cover."""

from __future__ import annotations

import pytest

from interlock.auth.client.token_storage import MemoryRecords
from interlock.host.gate import permissions as leaves_module
from interlock.host.gate.action import Deed
from interlock.host.gate.permissions import Leaves
from interlock.host.gate.record_lock import files_in
from interlock.host.user import Leave
from interlock.wire.errors import StoreError
from interlock.wire.exchange import Principal

SEND = Deed("tool", "mail", "send", {"to": "a"})
YES = Leave(granted=True, scope="session")
ALWAYS = Leave(granted=True, scope="always")
NEVER = Leave(granted=False, scope="always")


async def test_once_is_not_remembered():
    leaves = Leaves()
    await leaves.remember(SEND, "r", "pin", Leave(granted=True))
    assert leaves.find(SEND, "r", "pin") is None and leaves.all("mail") == []


@pytest.mark.parametrize("leave", [YES, ALWAYS])
async def test_a_leave_answers_the_question_it_was_asked_and_no_other(leave):
    leaves = Leaves()
    await leaves.remember(SEND, "r", "pin", leave)
    found = leaves.find(SEND.edited({"to": "b"}), "r", "pin")
    assert found is not None and found.granted
    assert leaves.find(SEND, "r", "another pin") is None, "the tool changed"
    assert leaves.find(SEND, "another rule", "pin") is None
    for other in (
        Deed("tool", "mail", "Send"),
        Deed("tool", "files", "send"),
        Deed("prompt", "mail", "send"),
        SEND.by(Principal("https://issuer", "somebody")),
        Deed("tool", "mail", "send", sources={"files"}),
    ):
        assert leaves.find(other, "r", "pin") is None


async def test_leave_covers_the_data_it_was_given_for():
    leaves = Leaves()
    with_files = Deed("tool", "mail", "send", sources={"files", "mail", "notes"})
    await leaves.remember(with_files, "r", "p", YES)
    assert leaves.find(SEND, "r", "p") is not None
    assert leaves.find(Deed("tool", "mail", "send", sources={"notes"}), "r", "p") is not None
    assert leaves.find(Deed("tool", "mail", "send", sources={"secrets"}), "r", "p") is None
    await leaves.remember(Deed("tool", "mail", "send", sources={"secrets"}), "r", "p", YES)
    assert leaves.find(with_files, "r", "p") is not None, "leave for more does not take back what was given"


async def test_a_refusal_lasts_too_and_counts_before_a_leave(tmp_path):
    records = MemoryRecords()
    leaves = Leaves(records)
    await leaves.remember(SEND, "r", "p", NEVER)
    found = Leaves(records).find(Deed("tool", "mail", "send", sources={"anything"}), "r", "p")
    assert found is not None and not found.granted


async def test_always_outlives_the_process_and_a_session_does_not(tmp_path):
    first = Leaves(files_in(tmp_path / "host", "a leave"))
    await first.remember(SEND, "r", "p", ALWAYS)
    await first.remember(Deed("tool", "mail", "read"), "r", "p", YES)
    second = Leaves(files_in(tmp_path / "host", "a leave"))
    assert second.find(SEND, "r", "p") is not None
    assert second.find(Deed("tool", "mail", "read"), "r", "p") is None


async def test_the_newest_answer_replaces_the_one_before(tmp_path):
    records = MemoryRecords()
    leaves = Leaves(records)
    await leaves.remember(SEND, "r", "old", ALWAYS, "what it was")
    assert leaves.last_shown(SEND) == "what it was"
    await leaves.remember(SEND, "r", "new", ALWAYS, "what it is")
    assert leaves.last_shown(SEND) == "what it is"
    assert [kept.pin for kept in Leaves(records).all("mail")] == ["new"]


async def test_what_was_allowed_can_be_taken_back(tmp_path):
    records = MemoryRecords()
    leaves = Leaves(records)
    read = Deed("tool", "mail", "read")
    for deed in (SEND, read):
        await leaves.remember(deed, "r", "p", ALWAYS)
    await leaves.forget("mail", kind="tool", name="send")
    assert leaves.find(SEND, "r", "p") is None and leaves.find(read, "r", "p") is not None
    await leaves.forget("mail")
    assert leaves.all("mail") == [] and records.load("leaves of interlock local at mail") is None


async def test_what_another_process_changed_is_noticed(monkeypatch):
    records = MemoryRecords()
    here, there = Leaves(records), Leaves(records)
    assert here.find(SEND, "r", "p") is None
    await there.remember(SEND, "r", "p", ALWAYS)
    monkeypatch.setattr(leaves_module, "_FRESH_SECONDS", 0.0)
    assert here.find(SEND, "r", "p") is not None
    await here.forget("mail")
    assert there.find(SEND, "r", "p") is None, "taken back for whoever it was given to as well"


async def test_the_newest_answer_counts_whichever_was_for_longer():
    leaves = Leaves()
    for answer in (YES, NEVER, YES, ALWAYS):
        await leaves.remember(SEND, "r", "p", answer)
        found = leaves.find(SEND, "r", "p")
        assert found is not None and found.granted is answer.granted
    assert len(leaves.all("mail")) == 1, "each is told once"


async def test_what_cannot_be_kept_for_always_counts_as_long_as_the_session():
    class Full(MemoryRecords):
        def save(self, key: str, value: bytes | None) -> None:
            raise StoreError("the disk is full")

    leaves = Leaves(Full())
    with pytest.raises(StoreError):
        await leaves.remember(SEND, "r", "p", NEVER)
    found = leaves.find(SEND, "r", "p")
    assert found is not None and not found.granted


async def test_a_damaged_record_allows_nothing():
    records = MemoryRecords()
    records.save("leaves of interlock local at mail", b'[{"kind": "tool"}]')
    leaves = Leaves(records)
    assert leaves.find(SEND, "r", "p") is None
    await leaves.remember(SEND, "r", "p", ALWAYS)
    assert leaves.find(SEND, "r", "p") is not None


async def test_the_number_of_leaves_is_bounded(monkeypatch):
    monkeypatch.setattr(leaves_module, "_MOST_IN_SESSION", 3)
    monkeypatch.setattr(leaves_module, "_MOST_ALWAYS", 2)
    records = MemoryRecords()
    leaves = Leaves(records)
    for number in range(5):
        await leaves.remember(Deed("tool", "mail", f"t{number}"), "r", "p", ALWAYS)
        await leaves.remember(Deed("tool", "mail", f"s{number}"), "r", "p", YES)
    assert [kept.name for kept in Leaves(records).all("mail")] == ["t3", "t4"]
    assert len(leaves._session) == 3
