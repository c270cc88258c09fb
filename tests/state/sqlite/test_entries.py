"""state/sqlite/entries.py: what the contract does not say: how much one step of cleaning does."""

from contextlib import closing

import pytest

from interlock.state.sqlite import entries
from interlock.state.sqlite.database import connect
from interlock.state.sqlite.entries import purge_entries, put, take_expired
from interlock.state.sqlite.transaction import begin
from interlock.state.store import Bounds, Entry
from interlock.wire.errors import StoreFull


@pytest.fixture
def turn(tmp_path):
    with closing(connect(tmp_path / "store.db", durable=False)) as connection:
        yield begin(connection, Bounds(entries=5), 100.0)


def entry(key: str, until: float) -> Entry:
    return Entry(key, b"v", 0, until, "")


def test_cleaning_takes_the_longest_expired_and_not_all_at_once(turn, monkeypatch):
    monkeypatch.setattr(entries, "_AT_ONCE", 2)
    for key, until in (("a", 30.0), ("b", 10.0), ("c", 20.0), ("d", 200.0)):
        assert put(turn, entry(key, until), 2, None)
    assert purge_entries(turn, 100.0) == 2
    assert [entry.key for entry in take_expired(turn, "", 9)] == ["a"]
    assert purge_entries(turn, 100.0) == 0
    assert (turn.totals.entries, turn.totals.entries_bytes) == (1, 2)


def test_room_is_made_step_by_step_and_never_with_the_key_itself(turn, monkeypatch):
    monkeypatch.setattr(entries, "_AT_ONCE", 1)
    for key in "abcde":
        put(turn, entry(key, 10.0), 2, None)
    turn.bounds = Bounds(entries=3)
    put(turn, entry("a", 200.0), 2, None)
    assert turn.totals.entries == 3
    assert turn.one("SELECT count(*) FROM entries WHERE key = ?", b"a") == (1,)
    for key in "fg":
        put(turn, entry(key, 200.0), 2, None)
    with pytest.raises(StoreFull, match="3 keys with 6 bytes"):
        put(turn, entry("h", 200.0), 2, None)
