"""transport/http/cluster/event_log.py: what is said is in the log before anybody sees it."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from interlock.state.memory import MemoryStore
from interlock.transport.http.cluster.event_log import Log, LoggedStream, Logs, unanswered
from interlock.transport.http.server.event_stream import Keeping
from interlock.wire.errors import StoreFull
from support.idle import until_idle


class Slow(MemoryStore):
    """A store that writes when told."""

    def __init__(self):
        super().__init__()
        self.may = asyncio.Event()
        self.broken = False

    async def append(self, stream, events, **facts):
        await self.may.wait()
        if self.broken:
            raise StoreFull("no room")
        return await super().append(stream, events, **facts)


@asynccontextmanager
async def made(*ids, expected=None, keeping=None, store=None, **facts):
    store = store or MemoryStore()
    tasks, ended, fenced = [], [], []

    def spawn(work):
        tasks.append(asyncio.get_running_loop().create_task(work))
        return tasks[-1]

    def on_fence(stream, unsaid):
        fenced.append((stream.expects, unsaid))

    logs = Logs(store, "s", 60.0, spawn, on_end=ended.append, on_fence=on_fence)
    count = len(ids) if expected is None else expected
    facts = {"events": True, "primed": False, **facts}
    stream = LoggedStream(2, keeping or Keeping(), logs, ids, expected=count, **facts)
    stream.ends, stream.fences = ended, fenced
    yield stream
    if tasks:
        await asyncio.wait(tasks)
    await store.close()


def read(stream, reader):
    found = stream.unread(reader)
    if found:
        stream.took(reader, found[-1][0])
    return found


async def test_nobody_sees_what_is_not_written():
    store = Slow()
    async with made(7, store=store) as stream:
        reader = stream.attach()
        assert stream.put(b'{"method":"a"}')
        stream.answer(b'{"id":7}')
        await asyncio.sleep(0)
        assert (stream.told, stream.ended, stream.unread(reader)) == (False, False, [])
        store.may.set()
        await stream.settle()
        assert (stream.told, stream.ended, stream.ends) == (True, True, [stream])
        seen = read(stream, reader)
        assert [data for _, data in seen] == [b'{"method":"a"}', b'{"id":7}']
        kept = await stream.log.read(0)
        assert [(event.id, event.data[1:]) for event in kept[1:3]] == seen  # numbers are those of the log
        assert [event.data[:1] for event in kept] == [b"h", b"m", b"l"]


async def test_a_stream_of_nothing_but_answers_has_no_log():
    async with made(1, 2) as stream:
        stream.attach()
        stream.answer(b"one")
        stream.answer(b"two")
        assert (stream.ended, stream.answers(), await stream.log.exists()) == (True, [b"one", b"two"], False)


async def test_answers_that_came_before_the_first_notification_are_in_the_log():
    async with made(1, 2) as stream:
        reader = stream.attach()
        stream.answer(b'{"id":1}')
        stream.put(b'{"method":"a"}')
        stream.answer(b'{"id":2}')
        await stream.settle()
        assert [data for _, data in read(stream, reader)] == [b'{"id":1}', b'{"method":"a"}', b'{"id":2}']
        assert await unanswered(stream.log) == []


async def test_what_has_no_answer_is_known_from_the_log():
    async with made(1, "x", expected=3) as stream:
        stream.attach()
        stream.put(b'{"method":"a","id":"x"}')
        stream.answer(b'{"id":1}')
        stream.close()
        await stream.settle()
        assert await unanswered(stream.log) == ["x"]
        assert [data[:1] async for data in stream.log.whole()][-1] == b"x"  # it broke off
        assert not stream.put(b"{}")


async def test_a_stream_that_was_closed_with_all_said_has_an_end():
    async with made() as stream:
        stream.begin()
        stream.put(b'{"method":"a"}')
        stream.close()
        await stream.settle()
        assert [data[:1] async for data in stream.log.whole()] == [b"h", b"m", b"e"]


async def test_a_reader_is_sent_away_behind_all_that_was_said():
    async with made(1) as stream:
        reader = stream.attach()
        stream.put(b"{}")
        assert stream.release(20)
        stream.put(b'{"later":1}')
        await stream.settle()
        [(number, _)] = stream.unread(reader)
        assert (reader.until, reader.retry) == (number, 20)
        assert stream.can_resume(0) and stream.can_resume(number) and not stream.can_resume(number + 2)


async def test_one_who_is_sent_away_at_once_comes_back_to_the_beginning():
    async with made(1) as stream:
        reader = stream.attach()
        assert stream.release(20)
        await stream.settle()
        assert reader.until == reader.position and await stream.log.exists() and stream.can_resume(0)
        stream.detach(reader)
        assert not stream.release(20)


async def test_what_cannot_be_written_is_said_and_never_behind_a_gap():
    store = Slow()
    store.may.set()
    async with made(1, store=store) as stream:
        reader = stream.attach()
        stream.put(b"one")
        await stream.settle()
        store.broken = True
        stream.put(b"two")
        await stream.settle()
        store.broken = False
        stream.answer(b"three")
        await stream.settle()
        assert [data for _, data in read(stream, reader)] == [b"one", b"two", b"three"]
        assert (stream.ended, [event.data[1:] for event in await stream.log.read(0)][1:]) == (True, [b"one"])


async def test_where_somebody_reads_elsewhere_nothing_is_left_out_and_the_reader_here_goes():
    keeping = Keeping(pressure=10, events=2)
    async with made(1, keeping=keeping) as stream:
        reader = stream.attach()
        stream.begun = True
        stream.follow()
        assert stream.reader is not reader
        for number in range(20):
            await stream.tell(b"%d" % number)
        await stream.settle()
        assert [data[1:] async for data in stream.log.whole()][1:] == [b"%d" % number for number in range(20)]
        stream.attach(stream.last)
        assert not stream.followed


async def test_where_nobody_reads_notifications_are_left_out_from_the_bound_on():
    async with made(1, keeping=Keeping(pressure=10)) as stream:
        stream.detach(stream.attach())
        stream.lost, stream.begun = False, True
        for number in range(20):
            await stream.tell(b"%d" % number)
            await stream.settle()
        assert len([data async for data in stream.log.whole()]) < 15


async def test_a_notification_waits_for_the_disk():
    store = Slow()
    async with made(1, keeping=Keeping(pressure=3), store=store) as stream:
        stream.attach()
        telling = asyncio.get_running_loop().create_task(stream.tell(b"1"))
        await asyncio.sleep(0)
        more = asyncio.get_running_loop().create_task(stream.tell(b"1234567"))
        await until_idle()
        assert telling.done() and not more.done()
        store.may.set()
        await stream.settle()
        stream.close()
        await more


async def test_what_was_moved_elsewhere_cannot_be_resumed():
    async with made() as stream:
        stream.begin()
        stream.put(b"a")
        await stream.settle()
        assert stream.take_unread() == [b"a"]
        stream.discard()
        await until_idle()
        assert not await stream.log.exists()


async def test_a_log_lasts_as_long_as_somebody_says_so():
    class Clock:
        now = 0.0

        def __call__(self):
            return self.now

    clock = Clock()
    store = MemoryStore(clock=clock)
    log = Log(store, "x", float("inf"))
    await log.append([b"h"])
    clock.now = 10.0
    await log.lasts()
    assert await log.exists()
    await log.drop()
    assert not await log.exists()
    await store.close()


async def test_a_log_is_kept_a_while_behind_its_end_and_not_for_longer(monkeypatch):
    kept = []

    class Noting(MemoryStore):
        async def append(self, stream, events, *, until, fence=0):
            kept.append((len(events), round(until)))
            return await super().append(stream, events, until=until, fence=fence)

    monkeypatch.setattr("interlock.transport.http.cluster.event_log.time.time", lambda: 0.0)
    log = Log(Noting(), "x", 2000.0)
    await log.append([b"h"])
    await log.append([b"m", b"e"], last=True)
    assert kept == [(1, 2000), (2, 120)]


async def test_the_end_of_a_stream_is_the_last_of_its_log(monkeypatch):
    async with made(1) as stream:
        seen, append = [], stream.log.append

        async def noting(events, *, last=False):
            seen.append(last)
            return await append(events, last=last)

        monkeypatch.setattr(stream.log, "append", noting)
        stream.put(b"{}")
        await stream.settle()
        stream.answer(b"{}")
        await stream.settle()
        assert seen == [False, True]


@pytest.mark.parametrize("logged", [True, False])
async def test_only_what_has_a_log_asks_for_it_to_last(logged):
    async with made(1) as stream:
        if logged:
            stream.begin()
            await stream.settle()
        await stream.lasts()
        assert await stream.log.exists() is logged


async def test_what_is_read_elsewhere_is_never_too_full_for_a_notification():
    async with made(7, keeping=Keeping(pressure=10)) as stream:
        stream.put(b'{"method":"long"}')
        await stream.settle()
        stream.follow()  # with more before it than may wait for nobody
        await stream.tell(b'{"method":"told"}')
        await stream.settle()
        assert [event.data[1:] for event in await stream.log.read(0)][1:] == [
            b'{"method":"long"}',
            b'{"method":"told"}',
        ]


# --- a worker that was taken for dead ---


async def test_nothing_is_said_on_a_stream_whose_log_was_broken_elsewhere():
    async with made(1, 2) as stream:
        reader = stream.attach()
        stream.put(b'{"method":"a"}')
        await stream.settle()
        await stream.log.fence()
        stream.put(b'{"method":"b"}')
        stream.answer(b'{"id":1}')
        await stream.settle()
        assert stream.ended and stream.fences == [(True, [b'{"method":"b"}', b'{"id":1}'])]
        assert [data for _, data in read(stream, reader)] == [b'{"method":"a"}']
        stream.answer(b'{"id":2}')
        stream.close()
        await stream.settle()
        assert [data[:1] async for data in stream.log.whole()] == [b"h", b"m", b"x"]
        assert await unanswered(stream.log) == [1, 2] and stream.ends == []


async def test_one_that_says_nothing_hears_of_it_when_it_is_kept_up():
    async with made(1) as stream:
        stream.begin()
        await stream.settle()
        await stream.lasts()
        assert not stream.ended
        await stream.log.fence()
        await stream.lasts()
        assert stream.ended and stream.fences == [(True, [])]
        await stream.lasts()
        assert len(stream.fences) == 1


@pytest.mark.parametrize("silent", [True, False])
async def test_a_log_that_is_not_kept_any_more_is_not_begun_again(silent):
    """Its worker stood still for longer than logs are kept: what was told of it meanwhile is not known any more."""
    async with made(1) as stream:
        reader = stream.attach()
        stream.begin()
        await stream.settle()
        await stream.log.fence()
        await stream.log.drop()
        if silent:
            await stream.lasts()
        else:
            stream.answer(b'{"id":1}')
            await stream.settle()
        assert stream.ended and stream.fences and read(stream, reader) == []
        assert not await stream.log.exists()


async def test_one_whose_log_could_not_be_written_goes_on_unless_it_was_broken():
    store = Slow()
    store.may.set()
    async with made(1, store=store) as stream:
        reader = stream.attach()
        stream.begin()
        await stream.settle()
        store.broken = True
        stream.put(b'{"method":"a"}')
        await stream.settle()
        assert [data for _, data in read(stream, reader)] == [b'{"method":"a"}']
        store.broken = False
        await stream.lasts()
        assert not stream.ended
        await stream.log.fence()
        await stream.lasts()
        assert stream.ended and stream.fences == [(True, [])]
