"""transport/shelf.py: what is kept of ended streams, and whose is forgotten first."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from interlock.transport.http_streams import Keeping
from interlock.transport.shelf import Shelf


def kept(names, *, keeping, taken="", size=1):
    """What is forgotten of these, put one after the other. The letter of a name says whose it is."""
    shelf, forgotten = Shelf(keeping), []
    for name in names:
        shelf.put(name, size, forgotten.append, taken=name in taken, whose=name[0])
    return shelf, forgotten


def test_the_oldest_is_forgotten():
    shelf, forgotten = kept(["a1", "a2", "a3", "a1", "a4"], keeping=Keeping(ended_streams=3))
    assert forgotten == ["a2"] and (len(shelf), shelf.size) == (3, 3), "what is put again is the newest"


def test_one_that_is_too_large_by_itself_is_not_kept():
    shelf, forgotten = kept(["a1", "b1"], keeping=Keeping(ended_bytes=4), size=5)
    assert forgotten == ["a1", "b1"] and (len(shelf), shelf.size) == (0, 0)


def test_what_was_handed_over_is_forgotten_first():
    names, taken = ["lost", "a", "lost too", "b", "c"], ["a", "b", "c", "d", "e"]
    shelf, forgotten = kept(names, keeping=Keeping(ended_streams=3), taken=taken)
    assert forgotten == ["a", "b"]
    shelf.put("lost", 1, forgotten.append, taken=True, whose="l")  # its client came back
    for name in "de":
        shelf.put(name, 1, forgotten.append, taken=True, whose=name)
    assert forgotten == ["a", "b", "c", "lost"] and (len(shelf), shelf.size) == (3, 3)


def test_who_leaves_much_behind_pushes_out_nobody_else():
    flood = [f"b{number}" for number in range(1000)]
    shelf, forgotten = kept(["a1", "a2", *flood], keeping=Keeping(ended_streams=10))
    assert forgotten == flood[:992] and len(shelf) == 10


def test_by_bytes_who_has_most_of_them_loses():
    shelf, forgotten = Shelf(Keeping(ended_bytes=10)), []
    for name, size in (("a1", 6), ("b1", 1), ("b2", 1), ("c1", 3)):
        shelf.put(name, size, forgotten.append, taken=False, whose=name[0])
    assert forgotten == ["a1"] and shelf.size == 5


def test_what_is_dropped_is_not_told_and_unknown_is_no_error():
    shelf, forgotten = kept(["a1", "a2"], keeping=Keeping())
    shelf.drop("a1")
    shelf.drop("a1")
    assert not forgotten and (len(shelf), shelf.size) == (1, 1)


STEPS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5), st.integers(0, 9), st.booleans()), max_size=80)


@given(STEPS)
def test_it_is_within_its_bounds_and_never_takes_from_who_has_less(steps):
    shelf, there = Shelf(Keeping(ended_streams=6, ended_bytes=30)), {}

    def forget(name):
        counts, sizes = Counter(), Counter()
        for other, (size, taken) in there.items():
            counts[other[0]] += not taken
            sizes[other[0]] += 0 if taken else size
        had = counts if sum(size for size, _ in there.values()) <= 30 else sizes
        _, taken = there.pop(name)
        assert taken or had[name[0]] == max(had.values())

    for whose, number, size, taken in steps:
        name = f"{whose}{number}"
        there[name] = size, taken
        shelf.put(name, size, forget, taken=taken, whose=whose)
        assert len(shelf) == len(there) <= 6 and shelf.size == sum(size for size, _ in there.values()) <= 30
    for name in list(there):
        shelf.drop(name)
    assert len(shelf) == shelf.size == 0 and not shelf._untaken and not shelf._taken.items, "nothing is left of anybody"
