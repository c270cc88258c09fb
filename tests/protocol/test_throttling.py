"""protocol/throttling.py: strictly increasing, bounded in rate, and the last value is never lost."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.protocol.throttling import ProgressMeter
from support.properties import many

STEPS = st.lists(
    st.tuples(
        st.integers(-5, 400) | st.floats(allow_nan=True, allow_infinity=False) | st.sampled_from([None, "1", [1]]),
        st.floats(0, 0.2),  # seconds since the last one
    ),
    max_size=300,
)


def run(steps):
    """What goes out on the way, and what is let out before the answer."""
    now, meter, sent = 50.0, ProgressMeter(50.0), []
    for number, (value, pause) in enumerate(steps):
        now += pause
        admitted = meter.admit({"progress": value, "message": str(number)}, now)
        if admitted is not None:
            sent.append(admitted)
    return sent, meter.rest()


def is_number(value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)


@many(300)
@given(STEPS)
def test_what_goes_out_increases_strictly_and_ends_with_the_last_value(steps):
    sent, rest = run(steps)
    values = [each["progress"] for each in sent] + ([rest["progress"]] if rest else [])
    assert all(one < other for one, other in itertools.pairwise(values))
    largest = max((value for value, _ in steps if is_number(value)), default=None)
    assert (values[-1] if values else None) == largest


@many(200)
@given(st.integers(1, 2000), st.floats(0, 0.01))
def test_the_rate_is_bounded(count, pause):
    sent, _ = run([(value, pause) for value in range(count)])
    assert len(sent) <= 64 + 32 * count * pause + 1


def test_a_burst_passes_then_the_newest_is_held():
    meter = ProgressMeter(0.0)
    sent = [meter.admit({"progress": value}, 0.0) for value in range(1000)]
    passed = [each for each in sent if each]
    assert 1 < len(passed) < 1000
    assert meter.rest() == {"progress": 999}
    assert meter.rest() is None


def test_what_was_held_is_superseded_by_what_passes():
    meter = ProgressMeter(0.0)
    for value in range(1000):
        meter.admit({"progress": value}, 0.0)
    assert meter.admit({"progress": 1000}, 60.0) == {"progress": 1000}
    assert meter.rest() is None


def test_patience_refills_the_bucket_but_not_beyond_a_burst():
    meter = ProgressMeter(0.0)
    for value in range(1000):
        meter.admit({"progress": value}, 0.0)
    sent = [meter.admit({"progress": value}, 1e9) for value in range(1000, 3000)]
    assert sum(1 for each in sent if each) == 64


def test_nothing_was_said_nothing_is_left():
    assert ProgressMeter(0.0).rest() is None


@pytest.mark.parametrize("value", [None, "1", [1], {}, True, math.nan, math.inf, -math.inf])
def test_what_is_no_number_in_json_is_no_progress(value):
    meter = ProgressMeter(0.0)
    assert meter.admit({"progress": value}, 0.0) is None
    assert meter.admit({}, 0.0) is None
    assert meter.admit({"progress": -1}, 0.0) == {"progress": -1}


def test_the_same_value_twice_goes_out_once():
    meter = ProgressMeter(0.0)
    assert meter.admit({"progress": 1}, 0.0)
    assert meter.admit({"progress": 1.0}, 0.0) is None


def test_the_params_are_copied():
    params = {"progress": 1}
    assert ProgressMeter(0.0).admit(params, 0.0) is not params
