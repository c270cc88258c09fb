"""state/sqlite/database.py: a file that cannot be used is refused in words that say what to do, and is left as it
is."""

import sqlite3
import stat
import subprocess
import sys
import threading
from contextlib import closing

import pytest

from interlock.state.sqlite import database
from interlock.state.sqlite.database import StoreFile, connect, told
from interlock.state.sqlite.store import SQLiteStore
from interlock.wire.errors import LocalError, StoreError, StoreFull
from support.stores import FOREVER, opened


async def refusal_of(folder) -> str:
    """What writing and reading say, in the same words."""
    async with opened("sqlite", folder) as store:
        with pytest.raises(StoreError) as writing:
            await store.put("k", b"", until=FOREVER)
        with pytest.raises(StoreError) as reading:
            await store.get("k")
    assert str(writing.value) == str(reading.value)
    assert str(folder / "store.db") in str(writing.value)
    return str(writing.value)


async def test_the_file_and_its_journal_are_for_their_owner_alone(tmp_path):
    async with opened("sqlite", tmp_path) as store:
        await store.put("k", b"", until=FOREVER)
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
        assert modes == {"store.db": 0o600, "store.db-wal": 0o600, "store.db-shm": 0o600}


@pytest.mark.parametrize("mode", [0o644, 0o660, 0o602])
async def test_a_file_that_others_may_use_is_refused(tmp_path, mode):
    (tmp_path / "store.db").touch()
    (tmp_path / "store.db").chmod(mode)
    assert "chmod 600" in await refusal_of(tmp_path)


@pytest.mark.parametrize("content", [b"no database at all" * 100, b"SQLite format 3\0" + bytes(5000)])
async def test_a_damaged_file_is_refused_and_not_touched(tmp_path, content):
    path = tmp_path / "store.db"
    path.write_bytes(content)
    path.chmod(0o600)
    assert "damaged" in await refusal_of(tmp_path)
    assert path.read_bytes() == content


async def test_a_file_that_gets_damaged_in_the_middle_is_told(tmp_path):
    path = tmp_path / "store.db"
    async with opened("sqlite", tmp_path) as store:
        for number in range(50):
            await store.put(f"k{number}", bytes(2000), until=FOREVER)
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))
    assert "damaged" in await refusal_of(tmp_path)


async def test_a_folder_that_is_not_there_or_a_path_that_is_no_file_is_told(tmp_path):
    assert "cannot be opened" in await refusal_of(tmp_path / "nowhere")
    (tmp_path / "store.db").mkdir()
    assert "not a regular file" in await refusal_of(tmp_path)


@pytest.mark.parametrize(
    ("program", "word"),
    [
        (["CREATE TABLE theirs (x)"], "another program"),
        (
            [f"PRAGMA application_id = {database._MARK}", "PRAGMA user_version = 99", "CREATE TABLE x (y)"],
            "schema 99",
        ),
    ],
)
async def test_a_database_that_is_not_ours_or_of_a_later_version_is_refused(tmp_path, program, word):
    path = tmp_path / "store.db"
    with closing(sqlite3.connect(path)) as other:
        for statement in program:
            other.execute(statement)
    path.chmod(0o600)
    before = path.read_bytes()
    assert word in await refusal_of(tmp_path)
    assert path.read_bytes() == before


async def test_a_file_that_stays_locked_is_told_and_works_again_afterwards(tmp_path, monkeypatch):
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.05)
    async with opened("sqlite", tmp_path) as store:
        await store.put("k", b"old", until=FOREVER)
        with closing(sqlite3.connect(tmp_path / "store.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreError, match="locked"):
                await store.put("k", b"new", until=FOREVER)
            entry = await store.get("k")  # reading goes on meanwhile
            assert entry is not None and entry.value == b"old"
            other.execute("ROLLBACK")
        assert await store.put("k", b"new", until=FOREVER)


async def test_a_full_disk_is_told_as_such_and_nothing_is_half_written(tmp_path, monkeypatch):
    def small(*args, **options):
        connection = connect(*args, **options)
        connection.execute("PRAGMA max_page_count = 40")
        return connection

    monkeypatch.setattr("interlock.state.sqlite.database.connect", small)
    async with opened("sqlite", tmp_path) as store:
        await store.append("s", [b"fits"], until=FOREVER)
        with pytest.raises(StoreError, match=r"disk is full.*free some space") as full:
            await store.append("s", [b"small", bytes(500_000)], until=FOREVER)
        assert not isinstance(full.value, StoreFull)  # that is for bounds of the store
        assert await store.last("s") == 1
        assert await store.append("s", [b"fits too"], until=FOREVER) == 2


def test_connecting_takes_no_lock_away_from_other_connections_of_the_process(tmp_path):
    """Closing any descriptor of a file ends all locks of the process on it: so none is opened beside SQLite's."""
    path = tmp_path / "store.db"
    program = "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0).execute('BEGIN IMMEDIATE')"
    with closing(connect(path, durable=False)) as one:
        one.execute("PRAGMA locking_mode = EXCLUSIVE")
        one.execute("BEGIN EXCLUSIVE")
        database._make(path)
        done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, timeout=60)
    assert "locked" in done.stderr


@pytest.mark.parametrize("round", range(20))
def test_many_who_begin_at_once_make_one_schema(tmp_path, round):
    path, failures, start = tmp_path / "store.db", list[Exception](), threading.Barrier(8)

    def begin() -> None:
        start.wait()
        try:
            connect(path, durable=False).close()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=begin) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with closing(connect(path, durable=False)) as connection:
        assert connection.execute("SELECT count(*) FROM totals").fetchone() == (1,)


@pytest.mark.parametrize(("durable", "level"), [(False, 1), (True, 2)])
def test_how_often_the_disk_is_waited_for_is_a_choice(tmp_path, durable, level):
    with closing(connect(tmp_path / "store.db", durable=durable)) as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (level,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_path_of_strange_characters_is_shown_as_data(tmp_path):
    error = told(OSError("no"), tmp_path / "a\x1b[2Jb")
    assert "\x1b" not in str(error) and "\\x1b" in str(error)


@pytest.mark.parametrize("how", ["moved", "replaced"])
async def test_a_file_that_is_taken_away_is_not_made_anew_while_it_is_in_use(tmp_path, how):
    """Who begins after that and who began before would share nothing, and disagree about every session."""
    path = tmp_path / "store.db"
    store = SQLiteStore(path)
    await store.put("key", b"value", until=FOREVER)
    path.rename(tmp_path / "away.db")
    if how == "replaced":
        path.touch(0o600)
    for work in (store.get("key"), store.put("key", b"other", until=FOREVER), store.get("key")):
        with pytest.raises(StoreError, match="moved, deleted or replaced"):
            await work
    assert path.exists() == (how == "replaced")
    (tmp_path / "away.db").replace(path)
    entry = await store.get("key")
    assert entry is not None and entry.value == b"value"
    await store.close()


async def test_a_file_that_was_deleted_and_made_again_is_refused_though_it_has_the_same_inode(tmp_path, monkeypatch):
    """An inode is given again once nothing holds it open: a store that has heard of the deletion does not."""
    monkeypatch.setattr(StoreFile, "_now", lambda self: (1, 2) if self.path.exists() else None)
    path = tmp_path / "store.db"
    store, other = SQLiteStore(path), SQLiteStore(path)
    await store.put("key", b"value", until=FOREVER)
    for each in tmp_path.iterdir():
        each.rename(each.with_name("old " + each.name))
    for work in (store.get("key"), store.put("key", b"other", until=FOREVER)):
        with pytest.raises(StoreError, match="moved, deleted or replaced"):
            await work
    await other.put("key", b"new", until=FOREVER)  # a process that is started now makes another store
    for work in (store.get("key"), store.put("key", b"other", until=FOREVER), store.get("key")):
        with pytest.raises(StoreError, match=r"moved, deleted or replaced.*restart"):
            await work
    entry = await other.get("key")
    assert entry is not None and entry.value == b"new"
    await store.close()
    await other.close()


def test_a_database_in_memory_is_refused_where_it_is_named():
    """SQLite would make one for every connection: what one thread or worker writes, no other would find."""
    with pytest.raises(LocalError, match="name one, or leave it out"):
        SQLiteStore(":memory:")


async def test_the_file_stays_the_same_when_the_process_changes_its_folder(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    store = SQLiteStore("store.db")
    await store.put("key", b"value", until=FOREVER)  # the thread that writes is connected, who reads is not
    monkeypatch.chdir("elsewhere")
    entry = await store.get("key")
    await store.close()
    assert entry is not None and entry.value == b"value" and not (tmp_path / "elsewhere" / "store.db").exists()
