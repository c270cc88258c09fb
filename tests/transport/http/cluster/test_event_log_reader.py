"""transport/http/cluster/event_log_reader.py: the rest of a stream, read from its log."""

import asyncio

import pytest

from interlock.state.memory import MemoryStore
from interlock.state.store import Bounds
from interlock.transport.http.cluster.event_log import Log, unanswered
from interlock.transport.http.cluster.event_log_reader import LogReader
from interlock.wire.errors import Fenced, StoreFull
from interlock.wire.sse import EventParser
from support.idle import until_idle

NAME = (1 << 32) + 2


class Colleagues:
    """One other worker, which lives until told otherwise."""

    lease = 0.02

    def __init__(self):
        self.dead = False

    async def alive(self, number):
        assert number == 1
        return not self.dead


class Call:
    """A response that is kept."""

    def __init__(self):
        self.body, self.ended = b"", False

    async def send_events(self, events):
        self.body += events

    async def end_events(self, events):
        self.body, self.ended = self.body + events, True

    @property
    def said(self):
        events = EventParser(10**6).feed(self.body)
        return [(event.id and event.id.partition("-")[2], event.data) for event in events]


def log_of(**bounds):
    return Log(MemoryStore(Bounds(**bounds)), "x", float("inf"))


def never():
    return False


async def follow(log, after, *, last=True, colleagues=None, is_over=never):
    reader, call = LogReader(colleagues or Colleagues(), log, NAME), Call()
    assert await reader.begin(after)
    async with asyncio.timeout(30):
        await reader.follow(call, is_over, last=last)
    return call


async def test_it_goes_from_its_place_to_the_end_without_what_is_no_message():
    log = log_of()
    await log.append([b'h{"ids":[1]}', b"ma", b"mb", b"mc", b"e"])
    assert (await follow(log, 2)).said == [("3", b"b"), ("4", b"c")]
    from_the_beginning = await follow(log, 0)
    assert [data for _, data in from_the_beginning.said] == [b"a", b"b", b"c"] and from_the_beginning.ended
    assert not (await follow(log, 2, last=False)).ended


async def test_it_waits_for_what_comes():
    log = log_of()
    await log.append([b'h{"ids":[1]}', b"ma"])
    following = asyncio.get_running_loop().create_task(follow(log, 1))
    for event in (b"mb", b"mc", b"e"):
        await until_idle()
        await log.append([event])
    assert (await following).said == [("2", b"a"), ("3", b"b"), ("4", b"c")]


async def test_when_its_writer_is_gone_who_waits_for_an_answer_is_told():
    log, colleagues = log_of(), Colleagues()
    await log.append([b'h{"ids":[1,"x"]}', b'm{"id":1}'])
    following = asyncio.get_running_loop().create_task(follow(log, 1, colleagues=colleagues))
    await until_idle()
    await log.append([b'm{"method":"last words"}'])
    colleagues.dead = True
    *rest, (id, data) = (await following).said
    assert rest == [("2", b'{"id":1}'), ("3", b'{"method":"last words"}')]
    assert id is None and b'"id":"x"' in data and b"is gone" in data


async def test_what_broke_off_is_told_like_that_but_not_of_a_stream_without_requests():
    log = log_of()
    await log.append([b'h{"ids":[1]}', b"x"])
    assert len((await follow(log, 1)).said) == 1
    assert (await follow(log, 1, last=False)).said == []


async def test_the_end_of_the_session_is_the_end():
    log = log_of()
    await log.append([b'h{"ids":[]}', b"m{}"])
    assert (await follow(log, 1, is_over=lambda: True)).said == [("2", b"{}")]


async def test_what_is_not_kept_cannot_be_begun():
    log = log_of(stream_events=3)
    reader = LogReader(Colleagues(), log, NAME)
    assert not await reader.begin(0)
    await log.append([b"h{}", b"ma", b"mb"])
    await log.append([b"mc", b"md"])
    assert [await reader.begin(number) for number in (0, 1, 2, 5, 6)] == [False, False, True, True, False]


async def test_behind_the_end_of_what_was_not_answered_nothing_is_begun():
    log = log_of()
    await log.append([b'h{"ids":[1]}', b"ma", b"e"])
    found = [await LogReader(Colleagues(), log, NAME).begin(number) for number in (0, 1, 2, 3)]
    assert found == [True, True, False, False]
    assert await LogReader(Colleagues(), log, NAME).begin(3, standing=True)  # it goes on elsewhere


async def test_behind_the_answer_comes_the_end_at_once():
    log = log_of()
    await log.append([b'h{"ids":[1]}', b'l{"id":1}'])
    assert (await follow(log, 1)).said == [("2", b'{"id":1}')]
    over = await follow(log, 2)
    assert over.said == [] and over.ended


async def test_an_answer_is_kept_with_its_end_however_long():
    log = log_of(stream_bytes=20)
    await log.append([b'h{"ids":[1]}'])
    await log.append([b"l" + b"x" * 100])  # for which the head had to go
    assert (await follow(log, 1)).said == [("2", b"x" * 100)]
    assert not await LogReader(Colleagues(), log, NAME).begin(0)


async def test_who_is_sent_away_reads_nothing_more():
    log, call = log_of(), Call()
    await log.append([b'h{"ids":[1]}', b"ma"])
    reader = LogReader(Colleagues(), log, NAME)
    assert await reader.begin(0)
    following = asyncio.get_running_loop().create_task(reader.follow(call, never, last=True))
    while not call.said:
        await asyncio.sleep(0)
    reader.sent_away = True
    await log.append([b"lb"])
    await following
    assert call.said == [("2", b"a")] and call.ended


async def test_what_is_lost_under_a_reader_ends_its_stream():
    log = log_of()
    await log.append([b'h{"ids":[1]}', b"ma"])
    following = asyncio.get_running_loop().create_task(follow(log, 1))
    await until_idle()
    await log.drop()
    assert (await following).said == [("2", b"a")]


async def test_the_log_is_broken_before_anybody_is_told_that_its_writer_is_gone():
    """The writer may only stand still: what it writes later must not be an answer as well."""
    log, colleagues = log_of(), Colleagues()
    await log.append([b'h{"ids":[1,2]}', b'm{"id":1}'])
    colleagues.dead = True
    told = (await follow(log, 1, colleagues=colleagues)).said
    assert [id for id, _ in told] == ["2", None] and b'"id":2' in told[1][1]
    with pytest.raises(Fenced):
        await log.append([b'l{"id":2}'])
    with pytest.raises(Fenced):
        await log.lasts()
    colleagues.dead = False
    assert (await follow(log, 1, colleagues=colleagues)).said == told  # and it stays so


class Hurried(Log):
    """A writer that was taken for dead writes its last answer at the last moment."""

    async def fence(self):
        await self.append([b'l{"id":1}'])
        await super().fence()


async def test_an_answer_that_was_written_just_before_that_is_the_answer():
    log, colleagues = Hurried(MemoryStore(), "x", float("inf")), Colleagues()
    await log.append([b'h{"ids":[1]}', b"m{}"])
    colleagues.dead = True
    for _ in range(2):
        assert (await follow(log, 1, colleagues=colleagues)).said == [("2", b"{}"), ("3", b'{"id":1}')]
    assert await unanswered(log) == []


async def test_nobody_is_told_anything_where_the_log_cannot_be_broken():
    class Full(MemoryStore):
        async def append(self, stream, events, *, until, fence=0):
            if fence:
                raise StoreFull("no room")
            return await super().append(stream, events, until=until)

    log, colleagues, call = Log(Full(), "x", float("inf")), Colleagues(), Call()
    await log.append([b'h{"ids":[1]}', b"m{}"])
    colleagues.dead = True
    reader = LogReader(colleagues, log, NAME)
    assert await reader.begin(1)
    with pytest.raises(StoreFull):
        await reader.follow(call, never, last=True)
    assert call.said == [("2", b"{}")] and not call.ended
