"""protocol/throttling.py: so many at once, so many a second."""

from interlock.protocol.throttling import BURST, PER_SECOND, QuestionMeter


def admitted(meter, count, now):
    return sum(meter.refusal(now) is None for _ in range(count))


def test_so_many_at_once_and_so_many_a_second():
    meter = QuestionMeter()
    assert admitted(meter, 1000, 0.0) == BURST
    assert admitted(meter, 1000, 1.0) == PER_SECOND
    assert admitted(meter, 1000, 1e6) == BURST, "what was not used is not saved up"


def test_a_clock_that_goes_back_gives_nothing():
    meter = QuestionMeter()
    admitted(meter, 1000, 10.0)
    assert admitted(meter, 10, 5.0) == 0


def test_a_refusal_says_the_numbers():
    meter = QuestionMeter()
    admitted(meter, 1000, 0.0)
    assert "200 at once and 20 a second" in meter.refusal(0.0)
