"""transport/http/server/replay_buffer.py: what is kept of ended streams, and what is forgotten first."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.transport.http.server.event_stream import Keeping
from interlock.transport.http.server.replay_buffer import Shelf
from interlock.wire.quota import share_of
from support.properties import many


def fill(names, *, taken=(), size=1, caller=None, **keeping):
    """What is forgotten of these, put one after the other."""
    shelf, forgotten = Shelf(Keeping(**keeping)), []
    for name in names:
        whose = caller(name) if caller else None
        shelf.put(name, size, forgotten.append, taken=name in taken, caller=whose)
    return shelf, forgotten


def initial(name):
    return name[0]


def test_the_oldest_is_forgotten():
    shelf, forgotten = fill(["a", "b", "c", "a", "d"], ended_streams=3)
    assert forgotten == ["b"] and (len(shelf), shelf.size) == (3, 3), "what is put again is the newest"


def test_one_that_is_too_large_by_itself_is_not_kept():
    shelf, forgotten = fill(["a", "b"], ended_bytes=4, size=5)
    assert forgotten == ["a", "b"] and (len(shelf), shelf.size) == (0, 0)


@pytest.mark.parametrize("caller", [None, "one"])
def test_what_was_handed_over_is_forgotten_first(caller):
    most = {None: 3, "one": 12}[caller]  # of which a quarter is his
    names, taken = ["lost", "a", "lost too", "b", "c"], ["a", "b", "c"]
    shelf, forgotten = fill(names, taken=taken, ended_streams=most, caller=lambda name: caller)
    assert forgotten == ["a", "b"]
    shelf.put("lost", 1, forgotten.append, taken=True, caller=caller)  # its client came back
    for name in "de":
        shelf.put(name, 1, forgotten.append, taken=True, caller=caller)
    assert forgotten == ["a", "b", "c", "lost"] and (len(shelf), shelf.size) == (3, 3)


@pytest.mark.parametrize("taken", [False, True])
def test_who_leaves_much_behind_pushes_out_nobody_else(taken):
    """Neither by what he never took nor by what he did; and his own last ones are there."""
    flood = [f"b{number}" for number in range(1000)]
    shelf, forgotten = fill(["a1", "a2", *flood], taken=flood if taken else (), ended_streams=40, caller=initial)
    assert forgotten == flood[:990] and len(shelf) == 12


def test_large_answers_push_out_nobody_else_either():
    flood = [f"b{number}" for number in range(50)]
    shelf, forgotten = fill(["a1", *flood], size=10, ended_bytes=100, caller=initial)
    assert forgotten == flood[:48] and shelf.size == 30


def test_one_that_is_larger_than_a_share_is_kept_where_there_is_room_for_it():
    shelf, forgotten = fill(["a1", "a2", "b1"], size=40, ended_bytes=100, caller=initial)
    assert forgotten == ["a1"] and shelf.size == 80


def test_many_callers_together_age_as_one():
    names = [f"{letter}1" for letter in "abcdef"]
    shelf, forgotten = fill(names, ended_streams=4, caller=initial)
    assert forgotten == ["a1", "b1"] and len(shelf) == 4


def test_what_is_dropped_is_not_told_and_unknown_is_no_error():
    shelf, forgotten = fill(["a", "b", "c"], caller=initial)
    shelf.drop("a")
    shelf.drop("a")
    assert not forgotten and (len(shelf), shelf.size) == (2, 2)
    shelf.clear()
    assert not forgotten and (len(shelf), shelf.size) == (0, 0)


MOST, BYTES = 12, 60
STEPS = st.lists(st.tuples(st.sampled_from("abc-"), st.integers(0, 9), st.integers(0, 30), st.booleans()), max_size=80)


def held(there, caller=None):
    found = [size for name, (size, _) in there.items() if caller in (None, name[0])]
    return len(found), sum(found)


@many(100)
@given(STEPS)
def test_it_is_within_its_bounds_and_forgets_in_order(steps):
    shelf, there = Shelf(Keeping(ended_streams=MOST, ended_bytes=BYTES)), {}  # name: size and taken, oldest first

    def forget(name):
        count, size = held(there, name[0])
        his = name[0] != "-" and count > 1 and (count > share_of(MOST) or size > share_of(BYTES))
        among = [other for other in there if not his or other[0] == name[0]]
        handed_over = [other for other in among if there[other][1]]
        assert name == (handed_over or among)[0]
        del there[name]

    for letter, number, size, taken in steps:
        name = f"{letter}{number}"
        there.pop(name, None)
        there[name] = size, taken
        shelf.put(name, size, forget, taken=taken, caller=None if letter == "-" else letter)
        assert (len(shelf), shelf.size) == held(there) and len(shelf) <= MOST and shelf.size <= BYTES
        count, size = held(there, letter)
        assert letter == "-" or count <= 1 or (count <= share_of(MOST) and size <= share_of(BYTES))
    shelf.clear()
    assert not len(shelf) and not shelf._of_caller and not shelf._places, "nothing is left of anybody"
