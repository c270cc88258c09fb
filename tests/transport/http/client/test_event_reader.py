"""transport/http/client/event_reader.py: one stream over several connections."""

import pytest

from interlock.transport.http.client import event_reader
from interlock.transport.http.client.event_reader import EventReader
from interlock.wire.errors import BadResult


def event(data="", **fields):
    return "".join(f"{name}: {value}\n" for name, value in fields.items()).encode() + f"data: {data}\n\n".encode()


def test_messages_are_what_has_data_and_the_usual_name():
    reader = EventReader("x", 1000)
    assert reader.messages(event("a") + b": comment\n\n" + event("b", event="other") + event() + event("c")) == [
        b"a",
        b"c",
    ]
    assert reader.after is None


def test_the_last_id_is_where_to_go_on_from():
    reader = EventReader("x", 1000)
    assert reader.messages(event(id="1") + event("a", id="2") + event("b")) == [b"a", b"b"]
    assert reader.after == "2"


def test_an_event_without_data_says_its_id_all_the_same():
    reader = EventReader("x", 1000)
    reader.messages(b"id: 7\n\n")
    assert reader.after == "7"


@pytest.mark.parametrize("id", ["", "é", "a\tb", "x" * 5000])
def test_an_id_that_cannot_be_sent_back_is_no_place_to_go_on_from(id):
    reader = EventReader("x", 100_000)
    reader.messages(event("a", id="1"))
    assert reader.messages(event("b", id=id)) == [b"b"]
    assert reader.after is None


def test_what_comes_twice_is_dropped_on_whatever_connection():
    reader = EventReader("x", 1000)
    assert reader.messages(event("a", id="1") + event("a", id="1") + event("b", id="2")) == [b"a", b"b"]
    reader.connected()
    assert reader.messages(event("a", id="1") + event("c", id="3")) == [b"c"]
    assert reader.after == "3"


def test_the_memory_for_ids_is_bounded(monkeypatch):
    monkeypatch.setattr(event_reader, "_REMEMBERED", 2)
    reader = EventReader("x", 1000)
    reader.messages(b"".join(event(id=each) for each in "123"))
    assert reader.messages(event("again", id="1")) == [b"again"]
    assert len(reader._seen) == len(reader._order) == 2


def test_ids_that_are_too_long_to_be_sent_back_are_not_kept():
    """1024 of them, as long as an event may be, would be all the memory there is."""
    reader = EventReader("x", 100_000)
    for number in range(3):
        assert reader.messages(event("a", id="x" * 5000 + str(number))) == [b"a"]
    assert not reader._seen and not reader._order


def test_a_new_connection_does_not_finish_what_the_last_one_began():
    reader = EventReader("x", 1000)
    reader.messages(b"data: half")
    reader.connected()
    assert reader.messages(event("whole")) == [b"whole"]


def test_an_event_that_is_too_large_is_an_error_of_the_server():
    reader = EventReader("tools/call", 10)
    with pytest.raises(BadResult, match="tools/call"):
        reader.messages(b"data: " + b"x" * 20)


def test_the_wait_is_what_the_server_said():
    reader = EventReader("x", 1000)
    assert reader.wait == 1.0
    reader.messages(event(id="1", retry=500))
    assert reader.wait == 0.5
    reader.messages(b"retry: 0\n\n")
    assert reader.wait == 0.05
    reader.messages(b"retry: 90000\n\n")
    reader.connected()
    reader.connected()
    assert reader.wait == 90.0


def test_the_wait_grows_while_nothing_comes():
    reader = EventReader("x", 1000)
    waits = []
    for _ in range(8):
        reader.failed()
        waits.append(reader.wait)
    assert waits == [1, 2, 4, 8, 16, 30, 30, 30]
    reader.messages(event("a"))
    assert reader.wait == 1.0
