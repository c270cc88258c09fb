"""transport/http/server/event_stream.py: what is kept, in which order, for whom."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from interlock.transport.http.server.event_stream import Keeping, Stream
from support.properties import many

SMALL = Keeping(events=3, bytes=100, pressure=10, ended_streams=2, ended_bytes=20)


def read(stream, reader):
    found = stream.unread(reader)
    if found:
        stream.took(reader, found[-1][0])
    return found


def test_a_reader_gets_everything_once_in_order():
    stream = Stream(1, Keeping())
    reader = stream.attach()
    stream.put(b"a")
    stream.put(b"b")
    assert read(stream, reader) == [(1, b"a"), (2, b"b")]
    stream.put(b"c")
    assert read(stream, reader) == [(3, b"c")]
    assert read(stream, reader) == []


def test_who_comes_back_reads_on_from_where_he_was():
    stream = Stream(1, Keeping(), expected=1)
    first = stream.attach()
    stream.put(b"a")
    stream.begun = True
    read(stream, first)
    stream.detach(first)
    stream.put(b"b")
    stream.answer(b"c")
    assert stream.ended
    assert read(stream, stream.attach(1)) == [(2, b"b"), (3, b"c")]
    assert read(stream, stream.attach(0)) == [(1, b"a"), (2, b"b"), (3, b"c")]
    assert [stream.can_resume(number) for number in (0, 3, 4)] == [True, True, False]


def test_behind_the_end_of_what_was_not_answered_nothing_is_resumed():
    stream = Stream(1, Keeping(), expected=1)
    stream.begin()
    stream.put(b"a")
    assert [stream.can_resume(number) for number in (0, 1)] == [True, True]
    stream.answer(None)
    assert [stream.can_resume(number) for number in (0, 1)] == [True, False]


def test_what_was_read_is_forgotten_first_and_then_cannot_be_resumed():
    stream = Stream(1, SMALL)
    reader = stream.attach()
    for number in range(5):
        stream.put(b"%d" % number)
    assert stream.first == 1  # nothing was read yet: nothing may be lost
    assert [data for _, data in read(stream, reader)] == [b"0", b"1", b"2", b"3", b"4"]
    assert (stream.first, stream.can_resume(1), stream.can_resume(2)) == (3, False, True)


async def test_notifications_that_nobody_comes_to_read_are_left_out_without_a_gap():
    stream = Stream(1, SMALL, expected=1)
    stream.begun = True
    for number in range(9):
        await stream.tell(b"%d" % number)
    stream.put(b"question")
    stream.answer(b"answer")
    found = stream.unread(stream.attach(0))
    assert found == [(1, b"0"), (2, b"1"), (3, b"2"), (4, b"question"), (5, b"answer")]


async def test_who_speaks_on_and_on_to_nobody_holds_up_nobody_else():
    stream, turns = Stream(1, SMALL), []

    async def other():
        while True:
            turns.append(1)
            await asyncio.sleep(0)

    task = asyncio.ensure_future(other())
    for _ in range(100):
        await stream.tell(b"x" * 20)
    task.cancel()
    assert len(turns) > 50


async def test_a_notification_waits_for_a_reader_that_is_slow():
    stream = Stream(1, SMALL)
    reader = stream.attach()
    telling = asyncio.ensure_future(stream.tell(b"x" * 11))
    await asyncio.sleep(0)
    assert not telling.done()
    read(stream, reader)
    await telling


async def test_a_notification_does_not_wait_for_a_reader_that_went():
    stream = Stream(1, SMALL)
    stream.begun = True
    reader = stream.attach()
    telling = asyncio.ensure_future(stream.tell(b"x" * 11))
    await asyncio.sleep(0)
    stream.detach(reader)
    await telling


def test_a_stream_that_never_began_is_lost_with_its_reader():
    stream = Stream(1, Keeping(), expected=1)
    stream.detach(stream.attach())
    assert stream.lost and not stream.put(b"a") and not stream.can_resume(0)
    stream.answer(b"b")
    assert stream.ended and stream.answers() == []


def test_a_client_without_events_gets_nothing_but_answers():
    stream = Stream(1, Keeping(), expected=1, events=False)
    stream.attach()
    assert not stream.put(b"a") and not stream.told and not stream.release(5)
    stream.answer(b"b")
    assert stream.answers() == [b"b"]


def test_the_second_reader_takes_the_place_of_the_first():
    stream = Stream(1, Keeping())
    first = stream.attach()
    second = stream.attach()
    stream.detach(first)
    assert stream.reader is second and not stream.lost


def test_a_released_reader_reads_up_to_where_it_was_released():
    stream = Stream(1, Keeping(), expected=1)
    reader = stream.attach()
    stream.put(b"a")
    assert stream.release(500) and not stream.release(500)
    stream.answer(b"b")
    assert stream.unread(reader) == [(1, b"a")]
    assert (reader.until, reader.retry) == (1, 500)


def test_nobody_is_released_where_nobody_reads():
    stream = Stream(1, Keeping(), expected=1)
    assert not stream.release(1)
    stream.attach()
    stream.answer(b"a")
    assert not stream.release(1)


def test_a_stream_of_several_answers_ends_with_the_last():
    stream = Stream(1, Keeping(), expected=2)
    stream.answer(None)
    assert stream.expects and not stream.ended
    stream.answer(b"a")
    stream.answer(b"b")  # one too many
    assert stream.ended and not stream.expects and stream.answers() == [b"a"]


def test_what_nobody_has_read_can_be_said_elsewhere():
    stream = Stream(1, Keeping())
    stream.begun = True
    reader = stream.attach()
    stream.put(b"a")
    read(stream, reader)
    stream.put(b"b")
    stream.put(b"c")
    assert stream.take_unread() == [b"b", b"c"] and stream.take_unread() == []
    stream.put(b"d")
    assert read(stream, reader) == [(2, b"d")]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 30)),
        st.tuples(st.just("read"), st.just(0)),
        st.tuples(st.just("break"), st.just(0)),
        st.tuples(st.just("resume"), st.integers(0, 40)),
    ),
    max_size=60,
)


@many(300)
@given(steps=STEPS)
def test_whoever_can_resume_misses_nothing_and_reads_nothing_twice(steps):
    stream = Stream(1, SMALL)
    stream.begun = True
    written: list[bytes] = []
    reader, seen = stream.attach(), 0
    for number, (act, value) in enumerate(steps):
        if act == "put":
            written.append(b"%d:" % number + b"x" * value)
            stream.put(written[-1])
        elif act == "read" and stream.reader is not None:
            found = read(stream, reader)
            assert found == [(place, written[place - 1]) for place in range(seen + 1, stream.last + 1)]
            seen = stream.last
        elif act == "break":
            stream.detach(reader)
        elif stream.can_resume(value):
            reader, seen = stream.attach(value), value
    assert stream.size == sum(len(item) for item in written[stream.first - 1 :])


# --- who came back for something older, and slow readers ---


async def test_what_is_told_to_a_slow_reader_is_never_left_out():
    stream = Stream(1, SMALL, expected=1)
    reader = stream.attach()
    stream.put(b"x" * (SMALL.pressure + 1))  # a question: it does not wait
    telling = asyncio.ensure_future(stream.tell(b"told"))
    await asyncio.sleep(0)
    assert not telling.done()
    assert [data for _, data in read(stream, reader)] == [b"x" * 11, b"told"]
    await telling


def test_nothing_is_forgotten_before_who_came_back_for_it_has_it():
    stream = Stream(1, SMALL)
    stream.begun = True
    first = stream.attach()
    for number in range(3):
        stream.put(b"%d" % number)
    read(stream, first)
    second = stream.attach(0)
    stream.put(b"3")
    assert [data for _, data in read(stream, second)] == [b"0", b"1", b"2", b"3"]
    assert stream.first == 2


def test_who_reads_something_again_makes_nothing_unread():
    stream = Stream(1, Keeping())
    stream.begun = True
    first = stream.attach()
    for data in (b"a", b"bb", b"ccc"):
        stream.put(data)
    read(stream, first)
    again = stream.attach(0)
    stream.took(again, 1)
    stream.detach(again)
    stream.put(b"new")
    assert stream.take_unread() == [b"new"]
    assert (stream.size, stream.last) == (6, 3)
