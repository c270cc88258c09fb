"""wire/json/lenient.py: how large a value is, and no further than it matters."""

import pytest

from interlock.wire.json.lenient import parts_of


@pytest.mark.parametrize(
    ("value", "parts"),
    [(1, 1), ("x", 1), ("x" * 640, 11), ([], 1), ([1, [2]], 4), ({"a": {"b": None}}, 3)],
)
def test_parts_are_counted(value, parts):
    assert parts_of(value, 1000) == parts


def test_counting_stops_where_it_is_enough():
    deep = value = []
    for _ in range(10_000):
        value.append(value := [])
    assert parts_of(deep, 50) == 51
