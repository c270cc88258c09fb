"""wire/json/lenient.py: any JSON may come, and nothing of it surprises."""

import pytest

from interlock.wire.json.lenient import is_number, items_of, members_of, one_or_more, text_of


@pytest.mark.parametrize("value", [None, True, 0, 1.5, "", "a", [], [1], {}, {"a": 1}])
def test_what_is_of_another_shape_is_nothing(value):
    assert members_of(value) == (value if isinstance(value, dict) else {})
    assert items_of(value) == (value if isinstance(value, list) else [])
    assert text_of(value) == (value if isinstance(value, str) else None)
    assert one_or_more(value) == (value if isinstance(value, list) else [value])


@pytest.mark.parametrize(("value", "number"), [(0, True), (-1.5, True), (True, False), ("1", False), (None, False)])
def test_true_is_no_number(value, number):
    assert is_number(value) is number
