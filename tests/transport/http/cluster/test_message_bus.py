"""transport/http/cluster/message_bus.py: workers that find each other by a store, and what they tell each other."""

import asyncio
import time
from contextlib import asynccontextmanager

import pytest

from interlock.state.memory import MemoryStore
from interlock.state.store import Bounds
from interlock.transport.http.cluster import message_bus
from interlock.transport.http.cluster.message_bus import Colleagues, Mail, worker_of
from interlock.wire.errors import EventsGone, LocalError, StoreError
from support.idle import until_idle
from support.virtual_time import virtual_time


@asynccontextmanager
async def together(count=2, lease=5.0, store=None):
    """So many colleagues on one store, and what each of them has read."""
    store = store or MemoryStore()
    inboxes = [[] for _ in range(count)]

    def reader(inbox):
        async def read(mail):
            if mail.kind == "bad":
                raise LocalError("not this one")
            if mail.kind != "hello":
                inbox.append((mail.kind, mail.data, mail.sender))

        return read

    found = [Colleagues(store, "space", lease, reader(inbox)) for inbox in inboxes]
    for each in found:
        await each.join()
    try:
        yield found, inboxes
    finally:
        for each in found:
            await each.leave()
        await store.close()


async def until(condition):
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.005)


async def test_each_has_a_number_that_nobody_had_before():
    store = MemoryStore()
    async with together(3, store=store) as (found, _):
        assert [each.number for each in found] == [1, 2, 3]
        await found[2].leave()
        late = Colleagues(store, "space", 5.0, found[0]._deliver)
        await late.join()
        assert late.number == 4
        await late.leave()


async def test_names_are_never_the_same_and_say_who_gave_them():
    async with together() as (found, _):
        names = [each.next_name(odd=odd) for each in found for odd in (True, False) for _ in range(10)]
        assert len(set(names)) == 40
        assert [worker_of(name) for name in names] == [1] * 20 + [2] * 20
        assert all(name < 2**53 for name in names) and names[0] % 2 == 1 and names[10] % 2 == 0


@pytest.mark.parametrize("name", [None, "x", 0, -1, 5, (1 << 32) - 1, 1 << 60, 2**52])
def test_other_ids_were_given_by_no_worker(name):
    assert worker_of(name) == 0


async def test_what_is_sent_to_one_reaches_that_one_in_order():
    async with together() as ((a, b), (of_a, of_b)):
        for number in range(5):
            assert await a.send(b.number, Mail("x", "s", b"%d" % number))
        await until(lambda: len(of_b) == 5)
        assert of_b == [("x", b"%d" % number, a.number) for number in range(5)] and of_a == []


async def test_long_messages_of_one_push_no_others_out_of_an_inbox():
    store = MemoryStore(bounds=Bounds(stream_bytes=8192))
    async with together(store=store) as ((a, b), (_, of_b)):
        b._tasks[2].cancel()  # it is busy with something else
        await a.send(b.number, Mail("x", "s", b"short"))
        for _ in range(5):
            await a.send(b.number, Mail("x", "s", b"long" * 1000))
        assert await store.last(f"space/parcel/{a.first_name + 2}") == 1
        b._tasks[2] = asyncio.create_task(b._read(b.number, 0))
        await until(lambda: len(of_b) == 6)
        assert [data for _, data, _ in of_b] == [b"short"] + [b"long" * 1000] * 5
        assert [await store.last(f"space/parcel/{a.first_name + 2 * number}") for number in range(1, 6)] == [0] * 5


async def test_what_is_told_to_all_reaches_all_in_one_order():
    async with together(3) as (found, inboxes):
        await asyncio.gather(*(each.tell_all(Mail("x", "s", b"%d" % each.number)) for each in found * 5))
        await until(lambda: all(len(inbox) == 15 for inbox in inboxes))
        assert inboxes[0] == inboxes[1] == inboxes[2]


async def test_nothing_is_sent_to_who_is_not_there():
    async with together() as ((a, b), _):
        assert not await a.send(0, Mail("x"))
        assert not await a.send(77, Mail("x"))
        await b.leave()
        assert not await a.alive(b.number)
        assert not await a.send(b.number, Mail("x"))
        assert await a.alive(a.number)


async def test_who_gives_no_sign_of_life_counts_as_dead():
    async with together(lease=0.2) as ((a, b), _):
        assert await a.alive(b.number)
        b._tasks[0].cancel()  # its signs
        async with asyncio.timeout(30):
            while await a.alive(b.number):
                await asyncio.sleep(0.02)


async def test_who_gives_no_sign_of_life_counts_as_dead_though_the_clock_was_set_back(monkeypatch):
    """The wall clock of the machine goes back by an hour at the moment of the death, and with it that of the store."""
    shift, wall = [0.0], time.time
    monkeypatch.setattr(time, "time", lambda: wall() + shift[0])
    async with together(lease=0.2, store=MemoryStore(clock=lambda: time.time())) as ((a, b), _):
        assert await a.alive(b.number)
        b._tasks[0].cancel()
        shift[0] = -3600.0
        async with asyncio.timeout(30):
            while await a.alive(b.number):
                await asyncio.sleep(0.02)
        assert await a.alive(a.number)


async def test_who_lives_is_not_taken_for_dead_when_the_clock_is_set_forward(monkeypatch):
    shift, wall = [0.0], time.time
    monkeypatch.setattr(time, "time", lambda: wall() + shift[0])
    async with together(lease=60.0, store=MemoryStore(clock=lambda: time.time())) as ((a, b), _):
        shift[0] = 3600.0
        assert await a.alive(b.number)


async def test_a_death_is_seen_by_all_once_one_has_seen_it():
    async with together(3, lease=0.2) as ((a, b, c), _):
        b._tasks[0].cancel()
        async with asyncio.timeout(30):
            while await a.alive(b.number):
                await asyncio.sleep(0.02)
        assert await c._state.get(c._sign_of(b.number)) is None
        assert not await c.alive(b.number)
        await b._sign()  # it only stood still
        assert await a.alive(b.number) and await c.alive(b.number)


async def test_one_that_stood_still_judges_nobody_and_hears_that_others_may_have_judged_it(caplog):
    lapses = []
    async with together(lease=0.2) as ((a, b), _):
        a._on_lapse = lambda: lapses.append("lapsed")
        for each in (a, b):
            each._tasks[0].cancel()  # both of them stand still, as when their machine does
        await until(lambda: not a.is_seen and not b.is_seen)
        assert await a.alive(b.number)  # by its lease it is dead, and so is the one who looks
        await a._sign()
        assert lapses == ["lapsed"] and a.is_seen
        assert "worker 1 did not renew its lease" in caplog.text and "sessions.lease" in caplog.text
        assert await a.alive(b.number)  # it has a whole lease to renew its own


async def test_a_number_that_is_in_use_when_the_numbers_begin_again_is_left_out():
    store = MemoryStore()
    async with together(2, store=store) as (found, _):
        await store.put("space/workers", b"%d" % ((1 << 20) - 1), until=float("inf"))
        late = Colleagues(store, "space", 5.0, found[0]._deliver)
        await late.join()
        assert late.number == 3
        await late.leave()


async def test_mail_that_may_come_late_waits_for_a_worker_that_stands_still():
    async with together(lease=0.2) as ((a, b), (_, of_b)):
        for task in b._tasks:
            task.cancel()
        async with asyncio.timeout(30):
            while await a.alive(b.number):
                await asyncio.sleep(0.02)
        assert not await a.send(b.number, Mail("x", "s", b"lost"))
        assert not await a.send(b.number, Mail("x", "s", b"late"), late=True)
        assert not await a.send(77, Mail("x", "s"), late=True)
        assert await a._state.last(a._stream(77)) == 0  # nothing is kept for a worker that never was
        b._tasks = [asyncio.create_task(b._read(b.number, 0))]
        await until(lambda: of_b)
        assert of_b == [("x", b"late", a.number)]


async def test_a_message_that_cannot_be_handled_is_dropped_and_the_next_one_read():
    async with together() as ((a, b), (_, of_b)):
        await a.send(b.number, Mail("bad"))
        await a._state.append(a._stream(b.number), [b"\xc1"], until=float("inf"))
        await a.send(b.number, Mail("good"))
        await until(lambda: of_b)
        assert of_b == [("good", b"", a.number)]


async def test_who_missed_messages_reads_on_with_the_next():
    store = MemoryStore(Bounds(stream_events=3))
    async with together(store=store) as ((a, b), (_, of_b)):
        for task in b._tasks:
            task.cancel()
        for number in range(10):
            await a.tell_all(Mail("x", "s", b"%d" % number))
        looked = []

        async def look():
            looked.append(True)

        b._on_renewal = look
        b._tasks = [asyncio.create_task(b._read(0, 1))]
        await until_idle()
        assert looked == [True], "what it missed may be recorded elsewhere"
        await a.tell_all(Mail("x", "s", b"last"))
        await until(lambda: of_b)
        assert of_b == [("x", b"last", a.number)]


async def test_a_store_that_was_closed_ends_the_reading():
    async with together(1, lease=0.05) as ([one], _):
        await one._state.close()
        one_s, one._tasks = one._tasks, []
        async with asyncio.timeout(30):
            await asyncio.wait([one_s[0]])  # nothing to read: the others wait until they are cancelled
        for task in one_s:
            task.cancel()


class Failing(MemoryStore):
    """A store that says for a while that what was asked for is gone, and then nothing at all."""

    errors = ()

    async def read(self, stream, *arguments, **more):
        if self.errors and stream.endswith("/mail/0"):
            raise self.errors[0]
        return await super().read(stream, *arguments, **more)

    async def last(self, stream):
        if len(self.errors) > 1:
            error, self.errors = self.errors[1], ()
            raise error
        return await super().last(stream)


async def test_one_who_missed_something_hears_on_though_the_store_fails_at_that_moment(monkeypatch, caplog):
    monkeypatch.setattr(message_bus, "_AGAIN", 0.01)
    store = Failing()
    async with together(1, store=store) as ([found], [inbox]):
        store.errors = (EventsGone("too old"), StoreError("locked"))
        await found.tell_all(Mail("note", data=b"missed"))
        await until(lambda: not store.errors)
        async with asyncio.timeout(30):
            while not inbox:
                await found.tell_all(Mail("note", data=b"heard"))
                await asyncio.sleep(0.02)
    assert inbox[0][:2] == ("note", b"heard")
    assert "could not read its messages: locked" in caplog.text


async def test_what_all_read_has_no_end_at_which_its_ids_would_begin_again():
    now = [1000.0]
    store = MemoryStore(clock=lambda: now[0])
    async with together(1, store=store) as ([found], [inbox]):
        await found.tell_all(Mail("note"))
        await until(lambda: len(inbox) == 1)
        now[0] = 1e12
        assert await store.last(found._stream(0)) == 1


@virtual_time
async def test_one_that_cannot_write_for_a_lease_is_not_seen_until_it_can():
    class Full(MemoryStore):
        full = False

        async def put(self, *arguments, **more):
            if self.full:
                raise StoreError("disk full")
            return await super().put(*arguments, **more)

    store = Full()
    async with together(1, store=store) as ([found], _):
        await asyncio.sleep(20)
        assert found.is_seen
        store.full = True
        await asyncio.sleep(7)
        assert not found.is_seen
        store.full = False
        await asyncio.sleep(2)
        assert found.is_seen
