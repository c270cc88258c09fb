"""state/rate_table.py: one rate for a caller, whichever worker counts."""

import os

import pytest

from interlock.state.rate_table import RateTable


@pytest.fixture
def table(tmp_path):
    made = RateTable(tmp_path / "rates")
    yield made
    made.close()


def test_a_burst_then_so_many_a_second(table):
    now = 1_800_000_000.0
    assert [table.take(b"a", 50, 500, now) for _ in range(500)] == [0.0] * 500
    assert table.take(b"a", 50, 500, now) == pytest.approx(0.02, abs=1e-3)
    assert table.take(b"a", 50, 500, now + 0.021) == 0.0
    assert table.take(b"a", 50, 500, now + 0.021) > 0
    assert table.take(b"b", 50, 500, now) == 0.0
    later = now + 3600
    assert sum(table.take(b"a", 50, 500, later) == 0.0 for _ in range(600)) == 500, "a rest gives no more than a burst"


def test_a_clock_that_was_set_back_locks_no_caller_out(table):
    now = 1_800_000_000.0
    assert table.take(b"a", 1, 2, now) == table.take(b"a", 1, 2, now) == 0.0
    assert table.take(b"a", 1, 2, now - 86_400) == 0.0


def test_a_full_table_forgets_who_has_used_least(table):
    now = 1_800_000_000.0
    for number in range(100_000):
        table.take(b"%d" % number, 1, 100, now)
    for _ in range(99):
        table.take(b"busy", 0.001, 100, now)
    for number in range(100_000, 110_000):
        table.take(b"%d" % number, 1, 100, now)
    assert table.take(b"busy", 0.001, 100, now) == 0.0
    assert table.take(b"busy", 0.001, 100, now) > 0


def test_only_its_owner_reads_the_file_and_it_stays_small(tmp_path, table):
    for number in range(20_000):
        table.take(b"%d" % number, 1, 2, 1.0)
    found = os.stat(tmp_path / "rates")
    assert found.st_mode & 0o077 == 0 and found.st_size <= 512 * 1024


def test_a_link_is_not_followed(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError):
        RateTable(tmp_path / "link")
    assert not (tmp_path / "elsewhere").exists()
