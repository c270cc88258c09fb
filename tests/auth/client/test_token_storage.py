"""Where tokens are kept: only the owner reads them, a record is whole, and one holder at a time has it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import types

import pytest

from interlock.auth.client.token_storage import FileRecords, KeyringRecords, MemoryRecords, records_of
from interlock.wire.errors import LocalError, StoreError

KEY = "server default https://h/mcp"


@pytest.fixture(params=["memory", "files"])
def records(request, tmp_path):
    return MemoryRecords() if request.param == "memory" else FileRecords(tmp_path / "tokens")


def test_a_record_is_kept_changed_and_removed(records):
    assert records.load(KEY) is None
    records.save(KEY, None)
    records.save(KEY, b'{"a":1}')
    records.save("other", b"[2]")
    assert records.load(KEY) == b'{"a":1}'
    records.save(KEY, b"3")
    assert (records.load(KEY), records.load("other")) == (b"3", b"[2]")
    records.save(KEY, None)
    assert records.load(KEY) is None


def test_one_at_a_time_has_it(records):
    release = records.try_hold(KEY)
    assert release is not None and records.try_hold(KEY) is None
    other = records.try_hold("other")
    assert other is not None
    other()
    release()
    again = records.try_hold(KEY)
    assert again is not None
    again()


def test_files_are_the_owners_alone(tmp_path):
    records = FileRecords(tmp_path / "deep" / "tokens")
    records.save(KEY, b'"t0ken"')
    (release := records.try_hold(KEY)) and release()
    folder = tmp_path / "deep" / "tokens"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert sorted(path.suffix for path in folder.iterdir()) == [".json", ".lock"], "nothing half written stays"


def use_of(what, records):
    """The call that looks at the file, or at its folder."""
    return records.load(KEY) if what == "file" else records.save(KEY, b"2")


@pytest.mark.parametrize("bit", [0o040, 0o020, 0o010, 0o004, 0o002, 0o001])
@pytest.mark.parametrize("what", ["folder", "file"])
def test_a_record_that_others_may_use_is_refused(tmp_path, what, bit):
    records = FileRecords(tmp_path / "tokens")
    records.save(KEY, b"1")
    [file] = (tmp_path / "tokens").glob("*.json")
    place, mode = (file.parent, 0o700) if what == "folder" else (file, 0o600)
    place.chmod(mode | bit)
    with pytest.raises(StoreError, match="others than its owner"):
        use_of(what, records)
    place.chmod(mode)
    use_of(what, records)


@pytest.mark.parametrize("what", ["folder", "file"])
def test_a_record_of_another_user_is_refused(tmp_path, what, monkeypatch):
    """Its modes are right: who owns it could change it at any time."""
    records = FileRecords(tmp_path / "tokens")
    records.save(KEY, b"1")
    other = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: other)
    with pytest.raises(StoreError, match="others than its owner"):
        use_of(what, records)


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b'{"key": "another", "value": 1}', b"x" * 2_000_000])
def test_a_damaged_file_holds_nothing(tmp_path, data):
    records = FileRecords(tmp_path / "tokens")
    records.save(KEY, b"1")
    [file] = (tmp_path / "tokens").glob("*.json")
    file.write_bytes(data)
    assert records.load(KEY) is None


def test_a_link_is_not_followed(tmp_path):
    records = FileRecords(tmp_path / "tokens")
    records.save(KEY, b"1")
    [file] = (tmp_path / "tokens").glob("*.json")
    target = tmp_path / "elsewhere"
    file.rename(target)
    file.symlink_to(target)
    with pytest.raises(StoreError):
        records.load(KEY)


def test_what_cannot_be_written_is_said(tmp_path):
    (tmp_path / "tokens").write_text("a file")
    records = FileRecords(tmp_path / "tokens")
    with pytest.raises(StoreError):
        records.save(KEY, b"1")
    with pytest.raises(StoreError):
        records.try_hold(KEY)


HOLD = """
import sys
from interlock.auth.client.token_storage import FileRecords
release = FileRecords(sys.argv[1]).try_hold(sys.argv[2])
print(release is not None, flush=True)
sys.stdin.readline()
"""


def test_another_process_has_it_until_it_ends(tmp_path):
    records = FileRecords(tmp_path / "tokens")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    words = [sys.executable, "-c", HOLD, str(tmp_path / "tokens"), KEY]
    with subprocess.Popen(words, stdin=-1, stdout=-1, text=True, env=environment) as other:
        assert other.stdin is not None and other.stdout is not None
        assert other.stdout.readline() == "True\n"
        assert records.try_hold(KEY) is None
        other.kill()
    release = records.try_hold(KEY)
    assert release is not None
    release()


def test_a_keyring_keeps_them_where_there_is_one(tmp_path, monkeypatch):
    kept: dict[tuple[str, str], str] = {}
    fake = types.ModuleType("keyring")
    fake.get_password = lambda service, key: kept.get((service, key))  # type: ignore[attr-defined]
    fake.set_password = lambda service, key, text: kept.__setitem__((service, key), text)  # type: ignore[attr-defined]
    fake.delete_password = lambda service, key: kept.pop((service, key))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "keyring", fake)
    records = KeyringRecords(locks=tmp_path / "locks")
    records.save(KEY, None)
    records.save(KEY, b"1")
    assert records.load(KEY) == b"1" and kept == {("interlock", KEY): "1"}
    release = records.try_hold(KEY)
    assert release is not None and records.try_hold(KEY) is None
    release()
    records.save(KEY, None)
    assert records.load(KEY) is None
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(LocalError, match="needs the package"):
        records_of("keyring")


def test_the_real_keyring_package_keeps_them(tmp_path):
    keyring = pytest.importorskip("keyring", reason="keyring is an extra")
    from keyring.backend import KeyringBackend
    from keyring.errors import PasswordDeleteError

    kept: dict[tuple[str, str], str] = {}

    class DictBackend(KeyringBackend):
        priority = 1.0  # type: ignore[assignment]

        def get_password(self, service, username):
            return kept.get((service, username))

        def set_password(self, service, username, password):
            kept[service, username] = password

        def delete_password(self, service, username):
            if kept.pop((service, username), None) is None:
                raise PasswordDeleteError("not there")

    before = keyring.get_keyring()
    keyring.set_keyring(DictBackend())
    try:
        records = KeyringRecords(locks=tmp_path / "locks")
        records.save(KEY, None)
        records.save(KEY, b"1")
        assert records.load(KEY) == b"1" and kept == {("interlock", KEY): "1"}
        records.save(KEY, None)
        assert records.load(KEY) is None and kept == {}
    finally:
        keyring.set_keyring(before)


def test_what_tokens_means(tmp_path):
    assert isinstance(records_of(None), MemoryRecords)
    assert isinstance(records_of(tmp_path), FileRecords) and isinstance(records_of(str(tmp_path)), FileRecords)
    mine = MemoryRecords()
    assert records_of(mine) is mine
    with pytest.raises(LocalError):
        records_of(5)
