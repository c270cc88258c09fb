"""transport/http/cluster/ended_principals.py: what a worker missed is found once, and what it was told of is not ended
again."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from interlock.state.sqlite.store import SQLiteStore
from interlock.transport.http.cluster import ended_principals
from interlock.transport.http.cluster.ended_principals import EndedPrincipals


@asynccontextmanager
async def opened(folder):
    store = SQLiteStore(folder / "state.db")
    try:
        yield store
    finally:
        await store.close()


class Worker:
    """One that reads the record, and what it was told to end."""

    def __init__(self, store):
        self.ended, self.record = [], EndedPrincipals(store, "space")

    async def look(self):
        self.ended.clear()
        await self.record.handle_missed(self.ended.append)
        return self.ended


async def test_what_was_missed_is_found_once(tmp_path):
    async with opened(tmp_path) as store:
        here, there = Worker(store), Worker(store)
        assert await there.look() == []
        assert [await here.record.add(owner) for owner in ("ada", "bob")] == [1, 2]
        assert await there.look() == [{"ada", "bob"}]
        assert await there.look() == []
        await here.record.add("ada")
        assert await there.look() == [{"ada"}]


async def test_what_a_message_told_is_not_ended_again(tmp_path):
    """A principal may have come back since: its new streams stay."""
    async with opened(tmp_path) as store:
        here, there = Worker(store), Worker(store)
        numbers = [await here.record.add(owner) for owner in ("ada", "bob", "eve")]
        there.record.mark_handled(numbers[1])
        assert there.record.is_handled(2) and not there.record.is_handled(1)
        assert await there.look() == [{"ada", "eve"}]
        assert all(there.record.is_handled(number) for number in numbers), "a message that comes late changes nothing"
        assert not there.record.is_handled(0), "one without a number is always new"


async def test_what_ended_before_a_worker_began_does_not_concern_it(tmp_path):
    async with opened(tmp_path) as store:
        await Worker(store).record.add("ada")
        late = Worker(store)
        await late.record.start()
        assert await late.look() == []
        await Worker(store).record.add("bob")
        assert await late.look() == [{"bob"}]


async def test_a_worker_that_missed_more_than_are_kept_ends_everything(tmp_path, monkeypatch):
    async with opened(tmp_path) as store:
        monkeypatch.setattr(ended_principals, "MAX_KEPT", 3)
        here, there, heard = Worker(store), Worker(store), Worker(store)
        for number in range(1, 5):
            assert await here.record.add(f"p{number}") == number
            heard.record.mark_handled(number)
        assert await there.look() == [None] and await there.look() == []
        assert await heard.look() == [], "all of them were handled"


async def test_what_could_not_be_ended_is_tried_again(tmp_path):
    async with opened(tmp_path) as store:
        here, there = Worker(store), Worker(store)
        await here.record.add("ada")
        with pytest.raises(ZeroDivisionError):
            await there.record.handle_missed(lambda owners: 1 // 0)
        assert await there.look() == [{"ada"}]


async def test_several_workers_write_at_once(tmp_path):
    async with opened(tmp_path) as store:
        workers = [Worker(store) for _ in range(4)]
        numbers = await asyncio.gather(*(worker.record.add(f"p{n}") for n, worker in enumerate(workers * 5)))
        assert sorted(numbers) == list(range(1, 21))
        assert await workers[0].look() == [{f"p{n}" for n in range(20)}]
