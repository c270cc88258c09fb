"""state/sqlite/streams.py: what the contract does not say: what other processes can see, and how cleaning goes."""

from contextlib import closing

import pytest

from interlock.state.sqlite import streams
from interlock.state.sqlite.database import connect
from interlock.state.sqlite.streams import append, changed, drop, last_stamp, purge_streams, read, trim
from interlock.state.sqlite.transaction import begin
from interlock.state.store import Bounds
from interlock.wire.errors import EventsGone
from support.stores import FOREVER


@pytest.fixture
def turn(tmp_path):
    with closing(connect(tmp_path / "store.db", durable=False)) as connection:
        yield begin(connection, Bounds(event_seconds=50.0), 100.0)


def test_appends_and_drops_are_stamped_in_their_order_and_nothing_else_is(turn):
    for name in "abc":
        append(turn, name, [b"x"], 1, FOREVER, 0)
    seen = last_stamp(turn)
    append(turn, "a", [b"y"], 1, FOREVER, 0)
    append(turn, "b", [], 0, FOREVER, 0)
    trim(turn, "b", 1)
    drop(turn, "c")
    append(turn, "a", [b"z"], 1, FOREVER, 0)
    assert [name for name, _ in changed(turn, seen)] == ["c", "a"]
    assert changed(turn, last_stamp(turn)) == []


def test_a_stream_that_ended_is_seen_until_it_is_cleaned_away(turn):
    append(turn, "a", [b"x"] * 3, 3, FOREVER, 0)
    drop(turn, "a")
    assert purge_streams(turn, 99.0) == 0
    assert [name for name, _ in changed(turn, 0)] == ["a"]
    assert purge_streams(turn, 100.0) == 1
    assert changed(turn, 0) == [] and turn.totals.streams == 0 and turn.totals.highest == 3


def test_old_events_are_cleaned_away_in_steps(turn, monkeypatch):
    monkeypatch.setattr(streams, "_AT_ONCE", 1)
    append(turn, "a", [b"x", b"x"], 2, FOREVER, 0)
    append(turn, "b", [b"x"], 1, FOREVER, 0)
    turn.now = 120.0
    append(turn, "a", [b"new"], 3, FOREVER, 0)
    turn.now = 150.0
    assert sorted([purge_streams(turn, 0.0), purge_streams(turn, 0.0)]) == [1, 2]
    assert purge_streams(turn, 0.0) == 0
    assert turn.totals.events_bytes == 3
    assert [event.data for event in read(turn, "a", 2, 10, 10)] == [b"new"]
    with pytest.raises(EventsGone):
        read(turn, "b", 0, 10, 10)


def test_a_clock_that_was_set_back_keeps_cleaning_finite(turn):
    append(turn, "a", [b"x"], 1, FOREVER, 0)
    turn.now = 10.0
    append(turn, "a", [b"y"], 1, FOREVER, 0)  # older than the one before it
    turn.now = 100.0
    assert purge_streams(turn, 0.0) == 0
    turn.now = 150.0
    assert purge_streams(turn, 0.0) == 2


def test_who_makes_room_for_itself_counts_what_went_of_its_own_only_once(turn):
    turn.bounds = Bounds(event_seconds=50.0, events_bytes=10)
    append(turn, "a", [b"old!"], 4, FOREVER, 0)
    append(turn, "b", [b"older"], 5, FOREVER, 0)
    turn.now = 160.0
    assert append(turn, "a", [b"123456789"], 9, FOREVER, 0) == 2  # only without what is old in both
    assert turn.totals.events_bytes == 9
    assert [event.data for event in read(turn, "a", 1, 10, 100)] == [b"123456789"]
    drop(turn, "a")
    assert turn.totals.events_bytes == 0
