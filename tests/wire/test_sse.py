"""wire/sse.py: whatever the cuts, the same events come out; and nothing grows without a bound."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.wire.errors import MessageTooLarge
from interlock.wire.sse import COMMENT, Event, EventParser, encode_event
from support.properties import many


def parsed(*chunks, limit=10_000):
    parser = EventParser(limit)
    return [event for chunk in chunks for event in parser.feed(chunk)]


def test_an_event_comes_back():
    data = encode_event(b'{"a":1}', id="7", retry=500, name="message")
    assert data == b'event: message\nid: 7\nretry: 500\ndata: {"a":1}\n\n'
    assert parsed(data) == [Event(b'{"a":1}', "message", "7", 500)]


def test_data_alone():
    assert parsed(encode_event(b"{}")) == [Event(b"{}")]


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_every_line_end(end):
    assert parsed(end.join([b"data: a", b"data: b", b"", b"data:c", b"", b""])) == [Event(b"a\nb"), Event(b"c")]


def test_comments_unknown_fields_and_empty_lines_are_skipped():
    assert parsed(COMMENT + b"\n\n: hello\nfoo: bar\ndata: x\nbroken\n\n") == [Event(b"x")]


def test_only_one_space_belongs_to_the_field():
    assert parsed(b"data:  x\n\n") == [Event(b" x")]


def test_a_field_without_a_colon_is_empty():
    assert parsed(b"data\n\n") == [Event(b"")]


def test_an_id_without_data_is_told_too():
    # The first event of a stream that can be resumed has an id and nothing else.
    assert parsed(b"id: 1\nretry: 10\ndata:\n\n", b"id: 2\n\n") == [Event(b"", id="1", retry=10), Event(b"", id="2")]


@pytest.mark.parametrize("line", [b"id: a\0b", b"retry: -1", b"retry: x", b"retry: 9999999999999999"])
def test_what_makes_no_sense_is_ignored(line):
    assert parsed(line + b"\ndata: x\n\n") == [Event(b"x")]


def test_a_byte_order_mark_is_no_text():
    assert parsed(b"\xef", b"\xbb", b"\xbfdata: x\n\n") == [Event(b"x")]
    assert parsed(b"\xef\xbb", b"data: x\n\n") == []  # half of one is a strange field


def test_an_event_that_is_not_finished_is_not_told():
    assert parsed(b"data: x\n") == []


def test_too_much_is_refused():
    for chunks in ([b"data: " + b"x" * 100], [b"data: x\n"] * 30, [b"x"] * 100, [b":" + b"x" * 100]):
        with pytest.raises(MessageTooLarge):
            parsed(*chunks, limit=90)


@pytest.mark.parametrize("piece", [b"xy", b"data:xy\n", b"data\n", b": x\n", b"id: xy\n", b"x" * 100_000])
def test_what_is_unfinished_takes_no_more_memory_than_it_has_bytes(piece):
    """However it is cut: two bytes at a time would take twenty times as much as objects of their own."""
    parser, limit = EventParser(1_000_000), 1_000_000
    tracemalloc.start()
    try:
        with pytest.raises(MessageTooLarge):
            for _ in range(limit):
                parser.feed(piece)
        assert tracemalloc.get_traced_memory()[1] < 2.5 * limit
    finally:
        tracemalloc.stop()


def test_many_small_events_are_not_too_much():
    assert len(parsed(b"data: x\n\n" * 1000, limit=50)) == 1000


LINES = st.lists(
    st.sampled_from([b"data: a", b"data:b", b"", b"", b"id: 1", b"retry: 5", b": c", b"event: e", b"x"]), max_size=12
)


@given(LINES, st.sampled_from([b"\n", b"\r", b"\r\n"]), st.data())
@many(200)
def test_the_cuts_do_not_matter(lines, end, data):
    text = end.join([*lines, b"", b""])
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    chunks = [text[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert parsed(*chunks) == parsed(text)


@given(st.lists(st.binary(max_size=20), max_size=8))
@many(300)
def test_noise_never_breaks_it(chunks):
    parsed(*chunks)
