"""transport/log_reader.py: the rest of a stream, read from its log."""

import asyncio

from interlock.state.memory_store import MemoryStore
from interlock.state.store import Bounds
from interlock.transport.log_reader import LogReader
from interlock.transport.shared_streams import Log
from interlock.wire.sse import EventParser

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
        await asyncio.sleep(0.03)
        await log.append([event])
    assert (await following).said == [("2", b"a"), ("3", b"b"), ("4", b"c")]


async def test_when_its_writer_is_gone_who_waits_for_an_answer_is_told():
    log, colleagues = log_of(), Colleagues()
    await log.append([b'h{"ids":[1,"x"]}', b'm{"id":1}'])
    following = asyncio.get_running_loop().create_task(follow(log, 1, colleagues=colleagues))
    await asyncio.sleep(0.05)
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
    await asyncio.sleep(0.03)
    await log.drop()
    assert (await following).said == [("2", b"a")]
