"""state/sqlite/threads.py: commits are shared, mistakes are not, and no bound is missing."""

import asyncio
import threading

import pytest

from interlock.state.sqlite import threads
from interlock.state.sqlite.database import StoreFile
from interlock.state.sqlite.threads import Reader, Writer
from interlock.state.sqlite.transaction import Turn
from interlock.state.store import DEFAULT_BOUNDS
from interlock.state.waiters import Waiters
from interlock.wire.errors import EventsGone, NotOpen, StoreError
from support.stores import FOREVER, Clock, opened, until_waiting


def make(kind, folder):
    return kind(StoreFile(folder / "store.db"), DEFAULT_BOUNDS, Clock(), Waiters(), durable=False)


def number(turn: Turn) -> int:
    return turn.totals.next()


def version_of(turn: Turn) -> int:
    """How many commits the file has seen, as far as another connection can tell."""
    return turn.one("PRAGMA data_version")[0]


async def test_what_waits_is_committed_together(tmp_path):
    writer, reader = make(Writer, tmp_path), make(Reader, tmp_path)
    begun, gate, turns = threading.Event(), threading.Event(), list[int]()

    def block(turn: Turn) -> None:
        begun.set()
        gate.wait(30)

    def note(turn: Turn) -> int:
        turns.append(id(turn))
        return number(turn)

    before = await reader.do(version_of)
    held = asyncio.create_task(writer.do(block))
    await asyncio.to_thread(begun.wait, 30)
    rest = [asyncio.create_task(writer.do(note)) for _ in range(100)]
    await asyncio.sleep(0)
    gate.set()
    assert await asyncio.gather(held, *rest) == [None, *range(1, 101)]
    assert len(set(turns)) == 1
    assert await reader.do(version_of) != before
    await writer.close()
    await reader.close()


async def test_what_one_job_raises_does_not_touch_the_others(tmp_path):
    writer = make(Writer, tmp_path)

    def refuse(turn: Turn) -> None:
        raise EventsGone("on purpose")

    def mistake(turn: Turn) -> None:
        turn.totals.seq += 1000
        raise ZeroDivisionError("a mistake of ours")

    outcomes = await asyncio.gather(
        *[writer.do(work) for work in (number, refuse, number, mistake, number)], return_exceptions=True
    )
    assert outcomes[0] == 1 and outcomes[2] == 2 and outcomes[4] == 3
    assert isinstance(outcomes[1], EventsGone) and isinstance(outcomes[3], ZeroDivisionError)
    await writer.close()


async def test_too_many_who_wait_for_the_disk_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(threads, "_WAITING", 3)
    writer, gate = make(Writer, tmp_path), threading.Event()
    waiting = [asyncio.create_task(writer.do(lambda turn: gate.wait(30))) for _ in range(3)]
    await asyncio.sleep(0)
    with pytest.raises(StoreError, match="too slow"):
        await writer.do(number)
    gate.set()
    await asyncio.gather(*waiting)
    assert await writer.do(number) == 1
    await writer.close()


async def test_too_many_bytes_that_wait_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(threads, "_WAITING_BYTES", 100)
    writer, gate = make(Writer, tmp_path), threading.Event()
    waiting = asyncio.create_task(writer.do(lambda turn: gate.wait(30), size=101))
    await asyncio.sleep(0)
    with pytest.raises(StoreError, match="101 bytes"):
        await writer.do(number)
    gate.set()
    await waiting
    assert await writer.do(number) == 1
    await writer.close()


async def test_who_is_cancelled_hinders_nobody(tmp_path):
    writer, begun, gate = make(Writer, tmp_path), threading.Event(), threading.Event()
    first = asyncio.create_task(writer.do(lambda turn: begun.set() or gate.wait(30)))
    second = asyncio.create_task(writer.do(number))
    await asyncio.to_thread(begun.wait, 30)
    first.cancel()
    await asyncio.wait([first])
    gate.set()
    assert await second == 1
    await writer.close()


async def test_closing_finishes_what_was_begun_and_takes_nothing_more(tmp_path):
    writer = make(Writer, tmp_path)
    begun = [asyncio.create_task(writer.do(number)) for _ in range(600)]
    await asyncio.sleep(0)
    await asyncio.gather(writer.close(), writer.close())
    assert await asyncio.gather(*begun) == list(range(1, 601))
    with pytest.raises(NotOpen):
        await writer.do(number)


async def test_several_loops_share_one_store(tmp_path):
    async with opened("sqlite", tmp_path) as store:
        wait = asyncio.create_task(store.wait("s", seconds=60))
        await until_waiting(store)

        async def elsewhere() -> int:
            return await store.append("s", [b"x"], until=FOREVER)

        found = list[int]()
        thread = threading.Thread(target=lambda: found.append(asyncio.run(elsewhere())))
        thread.start()
        assert await wait
        await asyncio.to_thread(thread.join)
        assert found == [1]


async def test_an_error_while_nobody_reads_reaches_who_waits(tmp_path, monkeypatch):
    async with opened("sqlite", tmp_path) as store:
        wait = asyncio.create_task(store.wait("s", seconds=60))
        await until_waiting(store)

        def broken(*_: object) -> None:
            raise StoreError("the file is gone")

        monkeypatch.setattr(Reader, "_perform", broken)
        with pytest.raises(StoreError, match="gone"):
            await wait


async def test_news_of_the_same_process_needs_no_asking(tmp_path, monkeypatch):
    monkeypatch.setattr(threads, "POLL_SECONDS", 1000.0)
    async with opened("sqlite", tmp_path) as store:
        for number in range(3):
            wait = asyncio.create_task(store.wait("s", number, seconds=60))
            await until_waiting(store)
            await store.append("s", [b"x"], until=FOREVER)
            assert await wait


async def test_a_clock_that_was_set_back_does_not_put_off_the_cleaning(tmp_path):
    clock = Clock(1000.0)
    async with opened("sqlite", tmp_path, clock, linger_seconds=5.0) as store:
        await store.put("a", b"x", until=clock.now)  # cleaned now, and the time of that is written down
        clock.now = 100.0
        await store.put("b", b"x", until=105.0)
        clock.now = 120.0
        await store.put("c", b"x", until=FOREVER)
        assert await store.take_expired("b") == []  # nobody waits longer than that to take it


async def test_news_that_comes_beside_a_read_of_something_else_is_passed_on(tmp_path, monkeypatch):
    monkeypatch.setattr(threads, "POLL_SECONDS", 1000.0)  # nobody looks but who reads
    async with opened("sqlite", tmp_path, Clock()) as here, opened("sqlite", tmp_path, Clock()) as there:
        waiting = asyncio.ensure_future(here.wait("s", seconds=5.0))
        await here.get("x")
        while here._reader._seen is None:  # it waits
            await asyncio.sleep(0.01)
            await here.get("x")
        await there.append("s", [b"news"], until=FOREVER)
        await here.get("x")
        assert await waiting


async def test_who_forked_from_its_owner_ends_no_thread_of_it(tmp_path):
    writer = make(Writer, tmp_path)
    await writer.do(number)
    owner, writer._process = writer._process, writer._process + 1  # as a child finds it
    await writer.close()
    assert writer._end is None
    writer._process, writer._closed = owner, False
    await writer.close()
    assert writer._end is not None
