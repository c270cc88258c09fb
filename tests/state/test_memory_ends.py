"""state/memory.py: what is due comes out once, the earliest first, and nothing piles up."""

import math

from hypothesis import given
from hypothesis import strategies as st

from interlock.state.memory import Ends
from support.properties import many


def due(ends: Ends, now: float) -> list[str]:
    found: list[str] = []
    while (name := ends.pop_due(now)) is not None:
        found.append(name)
    return found


def test_the_earliest_come_first_and_only_once():
    ends = Ends()
    for name, until in (("c", 3.0), ("a", 1.0), ("b", 2.0), ("never", math.inf)):
        ends.set(name, until)
    assert due(ends, 0.9) == []
    assert due(ends, 2.0) == ["a", "b"]
    assert due(ends, 1e300) == ["c"]


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.none() | st.integers(0, 5) | st.just(math.inf))), st.integers(0, 5)
)
@many(200)
def test_the_last_word_about_a_name_counts(words, now):
    ends, expected = Ends(), dict[str, float]()
    for name, until in words:
        if until is None:
            ends.remove(name)
            expected.pop(name, None)
        else:
            ends.set(name, until)
            expected[name] = until
    assert sorted(due(ends, now)) == sorted(name for name, until in expected.items() if until <= now)
    assert sorted(due(ends, 1e9)) == sorted(name for name, until in expected.items() if now < until < math.inf)


def test_what_is_touched_often_does_not_pile_up():
    ends = Ends()
    for number in range(10_000):
        ends.set(str(number % 10), float(number))
    assert len(ends._heap) <= 2 * 10 + 64 + 1
    assert due(ends, 9994.0) == ["0", "1", "2", "3", "4"]
