"""wire/limits.py: every bound is there, positive and smaller than what must contain it."""

import msgspec
import pytest

from interlock.wire.limits import DEFAULT_LIMITS, MIB, Limits


def test_every_bound_is_a_positive_number():
    numbers = [value for value in msgspec.structs.asdict(DEFAULT_LIMITS).values() if not isinstance(value, bool)]
    assert numbers and all(value > 0 for value in numbers)


def test_the_bounds_fit_into_each_other():
    assert DEFAULT_LIMITS.id_bytes < DEFAULT_LIMITS.message_bytes
    # One message of the largest size must not end the connection that carries it.
    assert DEFAULT_LIMITS.message_bytes < DEFAULT_LIMITS.outbound_bytes
    assert DEFAULT_LIMITS.pressure_bytes < DEFAULT_LIMITS.outbound_bytes
    assert MIB == 2**20


def test_limits_cannot_be_changed_in_use():
    with pytest.raises(AttributeError):
        DEFAULT_LIMITS.depth = 1
    assert Limits(depth=1).depth == 1
    assert Limits(depth=1).batch == DEFAULT_LIMITS.batch


def test_strictness_that_was_asked_for_outweighs_the_default():
    lax, strict = DEFAULT_LIMITS, Limits(strict_json=True, depth=7)
    found = {
        (limits.strict_json, wanted, default): limits.with_strict_json(wanted, default).strict_json
        for limits in (lax, strict)
        for wanted in (None, True, False)
        for default in (True, False)
    }
    assert [case for case, on in found.items() if not on] == [
        (False, None, False),
        (False, False, True),
        (False, False, False),
        (True, False, True),
        (True, False, False),
    ]
    assert strict.with_strict_json(False, True).depth == 7
