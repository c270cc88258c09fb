"""wire/lazy_types.py: names that signatures have are loaded when a hint is evaluated, and not before."""

import pytest

from interlock.wire.lazy_types import finder


def test_a_name_is_taken_from_where_it_is():
    find = finder("interlock.server.lazy_types", {"Limits": "..wire.limits", "Item": ".registry.visibility"})
    assert find("Limits").__module__ == "interlock.wire.limits"
    assert find("Item").__module__ == "interlock.server.registry.visibility"


def test_another_name_is_told_as_a_module_tells_it():
    with pytest.raises(AttributeError, match=r"module 'a\.b' has no attribute 'Nobody'"):
        finder("a.b", {})("Nobody")
