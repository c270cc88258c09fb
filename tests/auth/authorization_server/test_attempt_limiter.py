"""Guessing: what is counted, for whom, and when it is forgotten."""

from __future__ import annotations

import pytest

from interlock.auth.authorization_server.attempt_limiter import Guesses, place_of


def test_after_some_tries_one_waits_for_each_further_one():
    now = [100.0]
    guesses = Guesses(lambda: now[0], 3, 10.0)
    assert [guesses.take("ada") for _ in range(5)] == [0, 0, 0, 10, 10]
    now[0] += 4
    assert guesses.take("ada") == pytest.approx(6)
    now[0] += 6.001
    assert guesses.take("ada") == 0 < guesses.take("ada")


def test_a_right_one_and_time_give_the_tries_back():
    now = [100.0]
    guesses = Guesses(lambda: now[0], 2, 10.0)
    assert [guesses.take("ada"), guesses.take("ada")] == [0, 0]
    guesses.right("ada")
    assert [guesses.take("ada"), guesses.take("ada")] == [0, 0]
    now[0] += 1000
    assert [guesses.take("ada") for _ in range(3)] == [0, 0, 10]
    now[0] -= 5000  # a clock that was set back gives nothing
    assert guesses.take("ada") > 0


def test_a_try_that_is_given_back_is_one_more_and_never_more_than_all():
    guesses = Guesses(lambda: 1.0, 2, 10.0)
    guesses.give_back("ada")
    assert [guesses.take("ada"), guesses.take("ada")] == [0, 0]
    guesses.give_back("ada")
    assert [guesses.take("ada"), guesses.take("ada")] == [0, 10]
    for _ in range(5):
        guesses.give_back("ada")
    assert [guesses.take("ada") for _ in range(3)] == [0, 0, 10]


def test_nobody_waits_for_the_tries_of_others_and_the_table_is_bounded():
    guesses = Guesses(lambda: 1.0, 1, 10.0, most=3)
    assert guesses.take("ada") == 0 < guesses.take("ada")
    assert all(guesses.take(name) == 0 for name in "bcde")
    assert len(guesses._left) == 3 and guesses.take("ada") == 0


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("", ""),
        ("/run/socket", ""),
    ],
)
def test_a_place_is_an_address_or_the_network_of_one_subscriber(address, place):
    assert place_of(address) == place
