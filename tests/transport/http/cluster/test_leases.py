"""transport/http/cluster/leases.py: a worker is dead when its lease was not renewed, whatever the wall clock says."""

import subprocess
import sys

import pytest

from interlock.state.store import Entry
from interlock.transport.http.cluster import leases
from interlock.transport.http.cluster.leases import LeaseMonitor, read_clock_id


class Clock:
    def __init__(self, now=1000.0):
        self.now = now

    def __call__(self):
        return self.now


def entry(value, version=1):
    return Entry("worker/7", value, version, 0.0, "")


def pair(boot="b", other="b"):
    """Two workers, their clock, and the lease of the second as the first reads it."""
    clock = Clock()
    return LeaseMonitor(5.0, clock=clock, clock_id=boot), LeaseMonitor(5.0, clock=clock, clock_id=other), clock


def test_a_lease_of_this_machine_expires_by_the_clock_that_all_processes_share():
    mine, theirs, clock = pair()
    lease = entry(theirs.renewal())
    clock.now += 4.9
    assert not mine.is_expired(7, lease)
    clock.now += 0.1
    assert mine.is_expired(7, lease)
    assert LeaseMonitor(5.0, clock=clock, clock_id="b").is_expired(7, lease)  # also for one that has just begun
    assert not mine.is_expired(7, entry(theirs.renewal(), 2))


@pytest.mark.parametrize(("boot", "other"), [("b", "another"), ("", ""), ("b", "")])
def test_a_lease_of_another_machine_expires_once_it_was_watched_for_the_whole_time(boot, other):
    mine, theirs, clock = pair(boot, other)
    clock.now += 100
    lease = entry(theirs.renewal())
    clock.now += 100
    assert not mine.is_expired(7, lease)  # the first look
    clock.now += 4.9
    assert not mine.is_expired(7, lease)
    assert not mine.is_expired(7, renewed := entry(theirs.renewal(), 2))
    clock.now += 4.9
    assert not mine.is_expired(7, renewed)
    clock.now += 0.1
    assert mine.is_expired(7, renewed)
    mine.forget(7)
    assert not mine.is_expired(7, renewed)


@pytest.mark.parametrize("value", [b"", b"\xc1", b"\x92\xa1b\xa1x", b"\x91\xa1b"])
def test_a_lease_that_cannot_be_read_is_watched(value):
    mine, _, clock = pair()
    assert not mine.is_expired(7, entry(value))
    clock.now += 5
    assert mine.is_expired(7, entry(value))


@pytest.mark.parametrize("other", ["b", "another"])
def test_one_that_stood_still_itself_gives_the_others_a_whole_lease(other):
    mine, theirs, clock = pair("b", other)
    lease = entry(theirs.renewal())
    assert not mine.is_expired(7, lease)
    clock.now += 100
    mine.pause()
    assert not mine.is_expired(7, lease)
    clock.now += 4.9
    assert not mine.is_expired(7, lease)
    clock.now += 0.1
    assert mine.is_expired(7, lease)


def test_the_leases_that_are_watched_are_bounded(monkeypatch):
    monkeypatch.setattr(leases, "MAX_WATCHED", 10)
    mine, _, _ = pair()
    for worker in range(1, 100):
        mine.is_expired(worker, entry(b"", worker))
    assert len(mine._watched) <= 10


def test_a_clock_has_one_id_in_all_processes_of_a_machine(monkeypatch, tmp_path):
    program = "from interlock.transport.http.cluster.leases import read_clock_id; print(read_clock_id())"
    other = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert other.stdout.strip() == read_clock_id()
    if leases._BOOT_ID.exists():
        assert leases._BOOT_ID.read_text().strip() in read_clock_id()
    monkeypatch.setattr(leases, "_BOOT_ID", tmp_path / "not there")
    assert read_clock_id.__wrapped__() == ""
