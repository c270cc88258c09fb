"""cli/install/atomic_file.py: a file changes as a whole or not at all, and stays what it was besides."""

import os
import stat

import pytest

from interlock.cli.install import atomic_file
from interlock.cli.install.atomic_file import change_file, read_whole
from interlock.client.config.parser import ConfigError


def listed(folder):
    return sorted(each.name for each in folder.iterdir())


@pytest.mark.parametrize("data", [b"a\r\nb", b"\xef\xbb\xbf{}\n", "ü".encode(), b"", b"a\rb\n\n"])
def test_every_byte_that_is_not_changed_stays(tmp_path, data):
    path = tmp_path / "x"
    path.write_bytes(data)
    assert change_file(path, lambda text: text + "!")
    assert path.read_bytes() == data + b"!"
    assert listed(tmp_path) == ["x"], "nothing is left beside it"


@pytest.mark.parametrize("mode", [0o644, 0o600, 0o640, 0o755])
def test_the_mode_stays(tmp_path, mode):
    path = tmp_path / "x"
    path.write_text("a")
    path.chmod(mode)
    change_file(path, lambda text: "b")
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_new_file_is_its_owners_alone(tmp_path):
    assert read_whole(tmp_path / "x") == ""
    assert change_file(tmp_path / "x", lambda text: f"{text}b")
    assert (tmp_path / "x").read_text() == "b"
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o600


def test_the_same_text_is_not_written(tmp_path):
    path = tmp_path / "x"
    path.write_text("a")
    before = path.stat()
    assert not change_file(path, lambda text: text)
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "x").write_text("a")
    link = tmp_path / "x"
    link.symlink_to(tmp_path / "real" / "x")
    change_file(link, lambda text: "b")
    assert link.is_symlink() and (tmp_path / "real" / "x").read_text() == "b"


def test_what_another_program_wrote_meanwhile_is_not_lost(tmp_path):
    path = tmp_path / "x"
    path.write_text("a")
    seen = []

    def change(text):
        if not seen:
            path.write_text("theirs")
        seen.append(text)
        return text + "+ours"

    assert change_file(path, change)
    assert seen == ["a", "theirs"] and path.read_text() == "theirs+ours"


def test_a_file_that_appears_meanwhile_is_not_overwritten(tmp_path):
    path = tmp_path / "x"
    change_file(path, lambda text: text + "+ours" if path.exists() else path.write_text("theirs") * "" or "lost")
    assert path.read_text() == "theirs+ours"


def test_somebody_who_never_stops_writing_wins(tmp_path):
    path, times = tmp_path / "x", []

    def change(text):
        times.append(text)
        path.write_text("theirs" * len(times))
        return "ours"

    with pytest.raises(ConfigError, match="keeps writing"):
        change_file(path, change)
    assert len(times) == atomic_file.MOST_TRIES
    assert "ours" not in path.read_text() and listed(tmp_path) == ["x"]


def test_a_failure_on_the_way_leaves_the_file(tmp_path, monkeypatch):
    path = tmp_path / "x"
    path.write_text("a")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic_file.os, "fsync", full)
    with pytest.raises(ConfigError, match="No space left"):
        change_file(path, lambda text: "b")
    assert path.read_text() == "a" and listed(tmp_path) == ["x"]


def test_a_folder_that_is_not_there_is_said(tmp_path):
    with pytest.raises(ConfigError, match="cannot be written: No such file"):
        change_file(tmp_path / "no" / "x", lambda text: "b")


def test_what_is_no_text_is_left_alone(tmp_path, monkeypatch):
    (tmp_path / "x").write_bytes(b"a\xff")
    with pytest.raises(ConfigError, match=r"no UTF-8 \(byte 1\)"):
        read_whole(tmp_path / "x")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_whole(tmp_path)
    with pytest.raises(ConfigError, match="no spelling in UTF-8"):
        change_file(tmp_path / "y", lambda text: "\udcff")
    monkeypatch.setattr(atomic_file, "MOST_BYTES", 1)
    (tmp_path / "x").write_bytes(b"ab")
    with pytest.raises(ConfigError, match="larger than 1 bytes"):
        read_whole(tmp_path / "x")


def test_an_owner_is_kept(tmp_path, monkeypatch):
    """As root, which may give files away."""
    path, given = tmp_path / "x", []
    path.write_text("a")
    monkeypatch.setattr(atomic_file.os, "geteuid", lambda: os.getuid() + 1)
    monkeypatch.setattr(atomic_file.os, "chown", lambda _, user, group: given.append((user, group)))
    change_file(path, lambda text: "b")
    assert given == [(path.stat().st_uid, path.stat().st_gid)]
