"""wire/loose.py: any JSON may come, and nothing of it surprises."""

import pytest

from interlock.wire.loose import items_of, members_of, text_of


@pytest.mark.parametrize("value", [None, True, 0, 1.5, "", "a", [], [1], {}, {"a": 1}])
def test_what_is_of_another_shape_is_nothing(value):
    assert members_of(value) == (value if isinstance(value, dict) else {})
    assert items_of(value) == (value if isinstance(value, list) else [])
    assert text_of(value) == (value if isinstance(value, str) else None)
