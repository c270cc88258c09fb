"""client/era_cache.py: what was costly to find out lasts from one run to the next, for a while."""

import json
import stat

import pytest

from interlock.client.era_cache import MAX_TARGETS, EraCache
from interlock.revisions.revision import Era

TARGET = ("server", "--token=s3cret", None, "minimal", ("KEY", "s3cret"))


class Clock:
    def __init__(self):
        self.time = 1_000_000.0

    def __call__(self):
        return self.time


def kept(folder):
    [file] = folder.glob("*.json")
    return file


def test_a_costly_finding_lasts_until_it_expires(tmp_path):
    clock, folder = Clock(), tmp_path / "eras"
    EraCache(folder, ttl=100, now=clock).put(TARGET, Era.HANDSHAKE, costly=True)
    assert EraCache(folder, ttl=100, now=clock).get(TARGET) is Era.HANDSHAKE
    assert EraCache(folder, ttl=100, now=clock).get(("server",)) is None
    clock.time += 101
    assert EraCache(folder, ttl=100, now=clock).get(TARGET) is None


@pytest.mark.parametrize(("era", "costly"), [(Era.HANDSHAKE, False), (Era.STATELESS, True), (Era.STATELESS, False)])
def test_nothing_else_is_kept(tmp_path, era, costly):
    folder = tmp_path / "eras"
    cache = EraCache(folder)
    cache.put(TARGET, era, costly=costly)
    assert cache.get(TARGET) is era  # in memory
    assert EraCache(folder).get(TARGET) is None and not folder.exists()


@pytest.mark.parametrize("end", [lambda cache: cache.forget(TARGET), lambda cache: cache.put(TARGET, Era.STATELESS)])
def test_what_turns_out_wrong_is_dropped(tmp_path, end):
    EraCache(tmp_path / "eras").put(TARGET, Era.HANDSHAKE, costly=True)
    end(EraCache(tmp_path / "eras"))
    assert EraCache(tmp_path / "eras").get(TARGET) is None


def test_the_file_is_the_owners_and_holds_no_secret(tmp_path):
    folder = tmp_path / "state" / "eras"
    EraCache(folder).put(TARGET, Era.HANDSHAKE, costly=True)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700 and stat.S_IMODE(kept(folder).stat().st_mode) == 0o600
    text = kept(folder).read_text()
    assert "s3cret" not in text and "server" not in text


def test_it_is_bounded(tmp_path):
    clock, folder = Clock(), tmp_path / "eras"
    for number in range(MAX_TARGETS + 10):
        clock.time += 1
        EraCache(folder, now=clock).put((str(number),), Era.HANDSHAKE, costly=True)
    assert len(json.loads(kept(folder).read_text())["value"]["until"]) == MAX_TARGETS
    again = EraCache(folder, now=clock)
    assert again.get(("9",)) is None and again.get((str(MAX_TARGETS + 9),)) is Era.HANDSHAKE


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"salt": 7}', b"\xff", b"x" * 100_000])
def test_a_file_that_is_damaged_is_written_again(tmp_path, text):
    folder = tmp_path / "eras"
    EraCache(folder).put(TARGET, Era.HANDSHAKE, costly=True)
    kept(folder).write_bytes(text)
    cache = EraCache(folder)
    assert cache.get(TARGET) is None
    cache.put(TARGET, Era.HANDSHAKE, costly=True)
    assert EraCache(folder).get(TARGET) is Era.HANDSHAKE


def test_a_time_too_far_ahead_is_not_kept(tmp_path):
    """As of a clock that was wrong."""
    clock, folder = Clock(), tmp_path / "eras"
    clock.time += 1e9
    EraCache(folder, now=clock).put(TARGET, Era.HANDSHAKE, costly=True)
    clock.time -= 1e9
    EraCache(folder, now=clock).put(("other",), Era.HANDSHAKE, costly=True)
    assert EraCache(folder, now=clock).get(TARGET) is None


def test_a_folder_that_cannot_be_used_costs_nothing_else(tmp_path):
    folder = tmp_path / "eras"
    folder.write_text("a file")
    cache = EraCache(folder)
    cache.put(TARGET, Era.HANDSHAKE, costly=True)
    assert cache.get(TARGET) is Era.HANDSHAKE and EraCache(folder).get(TARGET) is None
    cache.forget(TARGET)
    assert cache.get(TARGET) is None


def test_a_folder_of_others_is_not_used(tmp_path):
    folder = tmp_path / "eras"
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    EraCache(folder).put(TARGET, Era.HANDSHAKE, costly=True)
    assert not [*folder.iterdir()]


def test_a_nameless_target_is_not_remembered(tmp_path):
    cache = EraCache(tmp_path / "eras")
    cache.put(None, Era.HANDSHAKE, costly=True)
    assert cache.get(None) is None and not (tmp_path / "eras").exists()
