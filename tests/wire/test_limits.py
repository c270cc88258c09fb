"""wire/limits.py: every bound is there, positive and smaller than what must contain it."""

import msgspec
import pytest

from interlock.wire.limits import DEFAULT_LIMITS, MIB, Limits


def test_every_bound_is_a_positive_number():
    assert all(value > 0 for value in msgspec.structs.asdict(DEFAULT_LIMITS).values())


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
