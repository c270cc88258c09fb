"""wire/line_framing.py: any chunking of any lines gives the same lines, in linear time, and nothing desynchronises
it."""

import itertools
import tracemalloc

from hypothesis import example, given
from hypothesis import strategies as st

from interlock.wire.line_framing import LineFramer, Oversized
from support.properties import many

LINES = st.lists(st.binary(max_size=30).map(lambda line: line.replace(b"\n", b".")), max_size=8)


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """`data` in chunks, cut at these places."""
    marks = sorted({place % (len(data) + 1) for place in places} | {0, len(data)})
    return [data[start:end] for start, end in itertools.pairwise(marks)]


def feed_all(framer: LineFramer, chunks: list[bytes]) -> list[object]:
    return [line for chunk in chunks for line in framer.feed(chunk)]


@many(300)
@given(LINES, st.lists(st.integers(0, 1000), max_size=12))
@example([b""], [])
@example([b"a", b"", b"b"], [1, 1, 2, 3])
def test_any_chunking_gives_the_same_lines(lines, places):
    stream = b"".join(line + b"\n" for line in lines)
    assert feed_all(LineFramer(1000), cut(stream, places)) == lines


@many(300)
@given(LINES, st.lists(st.integers(0, 1000), max_size=12), st.integers(0, 20))
def test_a_line_over_the_limit_is_skipped_and_the_next_one_read(lines, places, limit):
    stream = b"".join(line + b"\n" for line in lines)
    found = feed_all(LineFramer(limit), cut(stream, places))
    assert len(found) == len(lines)
    for got, line in zip(found, lines, strict=True):
        if len(line) <= limit:
            assert got == line
        else:
            assert got.size == len(line)
            assert line.startswith(got.beginning)
            assert len(got.beginning) > limit


@many(100)
@given(st.integers(1, 3000), st.integers(1, 700))
def test_an_oversized_line_keeps_its_beginning_whatever_the_chunks(extra, step):
    limit = 1024  # from here on, what is kept for the id does not depend on the chunks
    line = (bytes(range(11, 256)) * 20)[: limit + extra]
    stream = line + b"\nnext\n"
    chunks = [stream[at : at + step] for at in range(0, len(stream), step)]
    skipped, after = feed_all(LineFramer(limit), chunks)
    assert (skipped.size, after) == (len(line), b"next")
    assert skipped.beginning == line[:1024]


def test_an_unfinished_line_is_not_given_away():
    framer = LineFramer(100)
    assert framer.feed(b"abc") == []
    assert framer.feed(b"") == []
    assert framer.feed(b"def\n") == [b"abcdef"]


def test_a_carriage_return_belongs_to_the_line():
    # A newline alone delimits (basic/transports#stdio); JSON takes the return as white space.
    assert LineFramer(100).feed(b"{}\r\n{}\n") == [b"{}\r", b"{}"]


def test_a_line_exactly_at_the_limit_passes():
    assert LineFramer(3).feed(b"abc\nabcd\n")[0] == b"abc"
    assert isinstance(LineFramer(3).feed(b"abc\nabcd\n")[1], Oversized)


def test_the_state_of_a_skipped_line_does_not_leak_into_the_next():
    framer = LineFramer(4)
    framer.feed(b"too long ")
    framer.feed(b"to keep")
    [skipped] = framer.feed(b"\n")
    assert (skipped.size, skipped.beginning) == (16, b"too long ")
    assert framer.feed(b"ok\n") == [b"ok"]


class CountedBytes(bytes):
    """Counts the bytes that are searched for a newline."""

    searched = 0

    def split(self, *arguments):
        CountedBytes.searched += len(self)
        return [bytes(part) for part in super().split(*arguments)]


def test_the_work_is_linear_in_the_bytes():
    # One byte per chunk is the worst case: a framer that searches or copies its buffer again for every chunk would
    # touch n²/2 bytes. Here every byte is searched once when it comes, and appended in place.
    CountedBytes.searched = 0
    framer = LineFramer(100_000)
    count = 20_000
    framer.feed(CountedBytes(b"x"))
    framer.feed(CountedBytes(b"x"))
    kept = framer._rest
    for _ in range(count - 2):
        assert framer.feed(CountedBytes(b"x")) == []
    assert framer._rest is kept and len(kept) == count  # no copy of it was made on the way
    [line] = framer.feed(CountedBytes(b"\n"))
    assert line == b"x" * count
    assert CountedBytes.searched == count + 1


def test_a_skipped_line_is_not_held_in_memory():
    framer = LineFramer(10)
    for _ in range(1000):
        framer.feed(b"x" * 1000)
    held = len(framer._rest) + len(framer._beginning)
    assert held <= 1024
    [skipped] = framer.feed(b"\n")
    assert skipped.size == 1_000_000


def test_an_unfinished_line_takes_no_more_memory_than_it_has_bytes():
    framer, limit = LineFramer(1_000_000), 1_000_000
    tracemalloc.start()
    try:
        for _ in range(limit // 2):
            framer.feed(b"xy")
        assert tracemalloc.get_traced_memory()[1] < 2 * limit
    finally:
        tracemalloc.stop()
    [line] = framer.feed(b"\n")
    assert line == b"xy" * (limit // 2)
