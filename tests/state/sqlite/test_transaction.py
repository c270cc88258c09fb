"""state/sqlite/transaction.py: what is counted in the file is what is in the file, whatever happened."""

from contextlib import closing

from interlock.state.sqlite.database import connect
from interlock.state.sqlite.transaction import Totals, begin, blob, commit, look
from interlock.state.store import DEFAULT_BOUNDS
from support.stores import FOREVER, Clock, opened


def test_totals_travel_from_turn_to_turn_and_only_with_a_commit(tmp_path):
    with closing(connect(tmp_path / "store.db", durable=False)) as connection:
        turn = begin(connection, DEFAULT_BOUNDS, 1.0)
        assert turn.totals == Totals()
        assert turn.totals.next() == 1
        turn.totals.swept = 7.5
        commit(turn)
        turn = begin(connection, DEFAULT_BOUNDS, 2.0)
        assert turn.totals == Totals(seq=1, swept=7.5)
        turn.totals.next()
        turn.run("ROLLBACK")
        assert begin(connection, DEFAULT_BOUNDS, 3.0).totals.seq == 1


def test_a_look_sees_one_moment(tmp_path):
    with (
        closing(connect(tmp_path / "store.db", durable=False)) as writer,
        closing(connect(tmp_path / "store.db", durable=False)) as reader,
    ):
        turn = look(reader, DEFAULT_BOUNDS, 1.0)
        assert turn.one("SELECT seq FROM totals") == (0,)
        other = begin(writer, DEFAULT_BOUNDS, 1.0)
        other.totals.next()
        commit(other)
        assert turn.one("SELECT seq FROM totals") == (0,)
        turn.run("ROLLBACK")
        assert look(reader, DEFAULT_BOUNDS, 1.0).one("SELECT seq FROM totals") == (1,)


def test_any_text_has_bytes():
    assert blob("ä\0") == b"\xc3\xa4\x00"
    assert blob("\ud800") != blob("\ud801")


async def test_the_books_are_right_after_everything(tmp_path):
    clock = Clock()
    bounds = {"stream_events": 3, "stream_bytes": 50, "entries": 20, "streams": 8, "event_seconds": 30}
    async with opened("sqlite", tmp_path, clock, **bounds) as store:
        for number in range(200):
            clock.now += 1.0
            await store.put(f"k{number % 15}", bytes(number), until=clock.now + number % 9, owner="o" * (number % 3))
            await store.append(f"s{number % 5}", [bytes(number % 20)] * (number % 4), until=clock.now + number % 40 + 1)
            if number % 11 == 0:
                await store.drop("s1")
                await store.delete("k3")
                await store.trim("s2", number // 9)
            if number % 50 == 0:
                await store.take_expired("k1", 2)
        await store.append("s0", [b"last"], until=FOREVER)
    with closing(connect(tmp_path / "store.db", durable=False)) as connection:
        turn = begin(connection, DEFAULT_BOUNDS, clock.now)
        entries = turn.one("SELECT count(*), total(length(key) + length(value) + length(owner)) FROM entries")
        assert (turn.totals.entries, turn.totals.entries_bytes) == entries
        assert (turn.totals.streams,) == turn.one("SELECT count(*) FROM streams")
        assert (turn.totals.events_bytes,) == turn.one("SELECT total(length(data)) FROM events")
        assert turn.one("SELECT count(*) FROM events WHERE stream NOT IN (SELECT id FROM streams)") == (0,)
        for id, trimmed, last, size in turn.run("SELECT id, trimmed, last, bytes FROM streams").fetchall():
            held = turn.one("SELECT count(*), min(id), max(id), total(length(data)) FROM events WHERE stream = ?", id)
            assert held == ((last - trimmed, trimmed + 1, last, size) if last > trimmed else (0, None, None, 0))
