"""Records that are changed by one at a time."""

from __future__ import annotations

import asyncio

import pytest

from interlock.auth.client.token_storage import MemoryRecords
from interlock.host.gate import record_lock
from interlock.host.gate.record_lock import change, files_in
from interlock.wire.errors import StoreError, StoreFull


async def test_nobody_elses_change_is_lost(tmp_path):
    records = files_in(tmp_path / "host", "a leave")
    waiting = records.try_hold("k")
    tasks = [asyncio.create_task(change(records, "k", lambda data: b"%d" % (int(data or 0) + 1))) for _ in range(10)]
    await asyncio.sleep(0)
    assert records.load("k") is None, "somebody else holds it"
    assert waiting is not None
    waiting()
    await asyncio.gather(*tasks)
    assert records.load("k") == b"10"


async def test_a_record_is_let_go_when_its_change_fails():
    records = MemoryRecords()
    with pytest.raises(ZeroDivisionError):
        await change(records, "k", lambda data: b"%d" % (1 // 0))
    await change(records, "k", lambda data: b"1")
    assert records.load("k") == b"1"


async def test_who_holds_it_for_too_long_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(record_lock, "_SECONDS", 0.02)
    records = MemoryRecords()
    assert records.try_hold("k") is not None
    with pytest.raises(StoreError, match="holds the record"):
        await change(records, "k", lambda data: b"1")


async def test_a_file_is_its_owners_and_bounded(tmp_path):
    records = files_in(tmp_path / "host", "a leave")
    await change(records, "k", lambda data: b'"x"')
    [file] = (tmp_path / "host").glob("*.json")
    assert file.stat().st_mode & 0o777 == 0o600 and (tmp_path / "host").stat().st_mode & 0o777 == 0o700
    with pytest.raises(StoreFull, match=r"a leave of .* is larger"):
        await change(records, "k", lambda data: b'"' + b"x" * (16 * 1024 * 1024) + b'"')
    assert records.load("k") == b'"x"'
