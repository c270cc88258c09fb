"""wire/json/unique_items.py: equal items are found, and arrays made to be slow take no longer than others."""

import json
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.wire.json.schema import MAX_COMPARED, Mismatch, validator_of
from interlock.wire.json.unique_items import are_unique
from support.properties import JSON

UNIQUE = validator_of({"type": "array", "uniqueItems": True})


@pytest.mark.parametrize(
    "items",
    [
        [1, 1],
        [1, 1.0],
        [[1.0], [1]],
        [{"a": 1, "b": 2}, {"b": 2.0, "a": 1}],
        ["x", "y", "x"],
        [None, None],
        [2**62, 2.0**62],
        [1e19, 10000000000000000000],
        [-1e19, {"a": 0}, -10000000000000000000],
        [{"a": [2**64]}, {"a": [2.0**64]}],
        [10**22, 1e22],
        [-(2**1000), -(2.0**1000)],
        [10**400, 10**400],
        [[], {}, []],
    ],
)
def test_equal_items_are_found(items):
    assert not are_unique(items)
    with pytest.raises(Mismatch, match="has items that are equal"):
        UNIQUE(items)


@pytest.mark.parametrize(
    "items",
    [
        [],
        [1, "1"],
        [1, True],
        [0, False],
        [0, None],
        ["1.0", "1"],
        [[1], [[1]]],
        [{"a": 1}, {"a": 2}],
        [1.5, 1],
        [1e300],
        [1e19, 10000000000000000001],
        [2.0**64, 2**64 + 1],
        [10**23, 1e23],  # no float is 10**23
        [10**400, 1e300],
        ["10000000000000000000", "1e19", 10000000000000000000],
    ],
)
def test_different_items_are_not(items):
    assert are_unique(items)
    UNIQUE(items)


@given(st.lists(JSON, max_size=4), JSON)
def test_what_is_there_twice_is_always_found(items, twice):
    assert not are_unique([*items, twice, json.loads(json.dumps(twice))])


def test_false_asks_for_nothing():
    validator_of({"type": "array", "uniqueItems": False})([1, 1])


@cache
def trees(pairs):
    """All ways to nest that many arrays: the same leaves in each of them, namely none."""
    if not pairs:
        return [[]]
    return [[first, *rest] for left in range(pairs) for first in trees(left) for rest in trees(pairs - 1 - left)]


@pytest.mark.parametrize("shape", [trees, lambda pairs: [{"a": tree} for tree in trees(pairs)]])
def test_arrays_that_differ_in_brackets_only_are_not_compared_with_each_other(shape):
    """58,786 of them in 1.4 MB: pair by pair that would be 1.7 billion comparisons, more than a minute."""
    items = shape(11)
    assert len(items) == 58_786
    assert are_unique(items)
    assert not are_unique([*items, items[-1]])


def test_what_is_too_large_to_be_compared_is_refused_where_items_are_compared():
    many = list(range(MAX_COMPARED))
    with pytest.raises(Mismatch, match="too large to be compared"):
        UNIQUE(many)
    with pytest.raises(Mismatch, match="too large to be compared"):
        UNIQUE(trees(11))
    validator_of({"type": "array"})(many)
    UNIQUE(many[:-1])


@pytest.mark.parametrize(
    "value", [["\ud800", "a"], [{1: 2}], [object()]], ids=["half a character", "a key", "an object"]
)
@pytest.mark.parametrize("schema", [{"uniqueItems": True}, {"items": {"type": "integer"}}], ids=str)
def test_what_is_not_json_does_not_fit(value, schema):
    with pytest.raises(Mismatch):
        validator_of({"type": "array", **schema})(value)
