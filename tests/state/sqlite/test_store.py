"""state/sqlite/store.py: beyond the contract, that several processes share one file and none of them can break it."""

import asyncio
import os
import signal
import sys
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from hypothesis.stateful import run_state_machine_as_test

from interlock.state.sqlite.store import SQLiteStore
from interlock.wire.errors import StoreError
from support import store_worker
from support.properties import many
from support.store_model import machine
from support.stores import FOREVER, opened, until_waiting

WAIT = 60.0


def test_it_does_what_the_model_does():
    run_state_machine_as_test(machine("sqlite"), settings=many(30, stateful_step_count=40))


async def test_what_was_written_is_there_after_the_end(tmp_path):
    async with opened("sqlite", tmp_path) as store:
        version = await store.put("k", b"v", until=FOREVER, owner="me")
        await store.append("s", [b"a", b"b"], until=FOREVER, fence=version)
    async with opened("sqlite", tmp_path) as store:
        entry = await store.get("k", owner="me")
        assert entry is not None and entry.value == b"v"
        assert [event.data for event in await store.read("s")] == [b"a", b"b"]
        assert await store.put("l", b"", until=FOREVER) > version
        assert await store.append("s", [b"c"], until=FOREVER, fence=version) == 3


# --- two stores on one file -----------------------------------------------------------------------


async def test_an_append_and_a_drop_elsewhere_wake_who_waits_here(tmp_path):
    async with opened("sqlite", tmp_path) as here, opened("sqlite", tmp_path) as there:
        wait = asyncio.create_task(here.wait("s", seconds=WAIT))
        await until_waiting(here)
        await there.append("s", [b"a"], until=FOREVER)
        assert await wait
        assert [event.data for event in await here.read("s")] == [b"a"]
        wait = asyncio.create_task(here.wait("s", 1, seconds=WAIT))
        await until_waiting(here)
        assert await there.drop("s")
        assert await wait


async def test_who_begins_to_wait_after_a_pause_hears_the_next(tmp_path):
    async with opened("sqlite", tmp_path) as here, opened("sqlite", tmp_path) as there:
        for number in range(5):
            wait = asyncio.create_task(here.wait("s", number, seconds=WAIT))
            await until_waiting(here)
            await there.append("s", [b"x"], until=FOREVER)
            assert await wait
            await there.append("other", [b"x"], until=FOREVER)  # while nobody here waits


async def test_many_streams_wake_only_who_waits_for_them(tmp_path):
    async with opened("sqlite", tmp_path) as here, opened("sqlite", tmp_path) as there:
        waits = [asyncio.create_task(here.wait(f"s{number}", seconds=WAIT)) for number in range(200)]
        await until_waiting(here)
        await asyncio.gather(*[there.append(f"s{number}", [b"x"], until=FOREVER) for number in range(0, 200, 2)])
        assert all(await asyncio.gather(*waits[::2]))
        assert not any(wait.done() for wait in waits[1::2])
        await asyncio.gather(*[there.append(f"s{number}", [b"x"], until=FOREVER) for number in range(1, 200, 2)])
        assert all(await asyncio.gather(*waits))


# --- real processes -------------------------------------------------------------------------------


@asynccontextmanager
async def worker(path: Path, name: str, mode: str, number: int):
    program = [sys.executable, store_worker.__file__, str(path), name, mode, str(number)]
    process = await asyncio.create_subprocess_exec(*program, stdout=asyncio.subprocess.PIPE)
    try:
        yield process
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):  # not `process.kill()`, which may take the exit code away from who waits
                os.kill(process.pid, signal.SIGKILL)
        await process.communicate()


async def finish(process: asyncio.subprocess.Process) -> list[str]:
    async with asyncio.timeout(WAIT):
        told, _ = await process.communicate()
    return told.decode().splitlines()


async def test_of_two_processes_one_uses_each_key_first(tmp_path):
    path = tmp_path / "store.db"
    async with worker(path, "a", "once", 300) as one, worker(path, "b", "once", 300) as two:
        firsts = await asyncio.gather(finish(one), finish(two))
    assert one.returncode == two.returncode == 0
    assert sorted(int(key) for keys in firsts for key in keys) == list(range(300))


async def test_two_processes_count_together(tmp_path):
    path = tmp_path / "store.db"
    async with worker(path, "a", "count", 100) as one, worker(path, "b", "count", 100) as two:
        await asyncio.gather(finish(one), finish(two))
    async with opened("sqlite", tmp_path) as store:
        entry = await store.get("n")
        assert entry is not None and entry.value == b"200"


async def follow(path: Path, until: asyncio.Event) -> list[tuple[int, str]]:
    """All events in the order in which a reader gets them, live, until they end."""
    store, got = SQLiteStore(path), list[tuple[int, str]]()
    while not (until.is_set() and await store.last("s") == len(got)):
        if await store.wait("s", len(got), seconds=0.1):
            got += [(event.id, event.data.decode()) for event in await store.read("s", len(got))]
    await store.close()
    return got


@pytest.mark.parametrize("lines", [1, 50, 400])
async def test_a_process_killed_under_load_loses_and_doubles_nothing(tmp_path, lines):
    path, over = tmp_path / "store.db", asyncio.Event()
    following = asyncio.create_task(follow(path, over))
    async with worker(path, "victim", "append", 1_000_000) as victim, worker(path, "other", "append", 150) as other:
        others = asyncio.create_task(finish(other))
        acknowledged = [(await victim.stdout.readline()).decode() for _ in range(lines)]
        os.kill(victim.pid, signal.SIGKILL)
        acknowledged += [line for line in (await victim.stdout.read()).decode().splitlines(True) if line.endswith("\n")]
        acknowledged += await others
        await victim.wait()
    over.set()
    got = await following
    assert other.returncode == 0 and victim.returncode == -signal.SIGKILL
    promised = [line.split() for line in acknowledged]
    assert len(promised) >= lines + store_worker.TASKS * 150
    assert [id for id, _ in got] == list(range(1, len(got) + 1))  # no gap, no duplicate, in order
    assert len({data for _, data in got}) == len(got)
    assert {(int(id), data) for id, data in promised} <= set(got)  # what was acknowledged is there, with its id
    assert len(got) - len(promised) <= store_worker.TASKS  # and of the rest only what was under way
    await check_whole(path, len(got))


async def check_whole(path: Path, last: int) -> None:
    """The file is sound and goes on being used."""
    store = SQLiteStore(path)
    assert await store.append("s", [b"after"], until=FOREVER) == last + 1
    await store.close()


async def test_a_store_in_use_is_not_for_a_forked_child(tmp_path, monkeypatch):
    async with opened("sqlite", tmp_path) as store:
        await store.put("k", b"", until=FOREVER)
        await store.get("k")
        parent = os.getpid()
        monkeypatch.setattr(os, "getpid", lambda: parent + 1)
        with pytest.raises(StoreError, match="forked"):
            await store.put("k", b"", until=FOREVER)
        monkeypatch.undo()
