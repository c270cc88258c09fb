"""wire/quota.py: nobody takes all, and what is given back is there again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.wire.exchange import ANONYMOUS, LOCAL, Principal
from interlock.wire.quota import Shares, caller_of, share_of
from support.properties import many

ADA = Principal("i", "ada")


@pytest.mark.parametrize(("most", "share"), [(0, 1), (1, 1), (7, 1), (8, 2), (4096, 1024)])
def test_a_share_is_a_quarter_and_always_something(most, share):
    assert share_of(most) == share


def test_one_takes_a_quarter_and_the_others_find_room():
    shares = Shares(8)
    assert [shares.take("a") for _ in range(3)] == [True, True, False]
    assert [shares.take("b", 2), shares.take("c", 3), shares.take("c", 2)] == [True, False, True]
    assert shares.held == 6
    shares.give("a")
    assert shares.take("a") and not shares.take("a")


def test_who_has_no_share_of_his_own_may_take_all_there_is():
    shares = Shares(4)
    assert [shares.take(None) for _ in range(5)] == [True] * 4 + [False]
    assert not shares.has_room("a")


def test_the_share_may_be_said_and_everything_be_forgotten():
    shares = Shares(4, 3)
    assert shares.take("a", 3) and not shares.has_room("a")
    shares.clear()
    assert (shares.held, shares.take("a", 3)) == (0, True)


@given(st.lists(st.tuples(st.sampled_from(["a", "b", None]), st.integers(1, 9)), max_size=50))
@many(50)
def test_nothing_is_left_of_what_was_given_back(wanted):
    shares = Shares(20)
    taken = [(caller, amount) for caller, amount in wanted if shares.take(caller, amount)]
    assert shares.held == sum(amount for _, amount in taken) <= 20
    assert sum(amount for caller, amount in taken if caller == "a") <= 5
    for caller, amount in taken:
        shares.give(caller, amount)
    assert not shares.held and not shares._by_caller


@pytest.mark.parametrize(
    ("principal", "address", "caller"),
    [
        (ADA, "192.0.2.1", ADA),
        (ADA, "127.0.0.1", ADA),
        (ANONYMOUS, "192.0.2.1", "192.0.2.1"),
        (ANONYMOUS, "::ffff:192.0.2.1", "192.0.2.1"),
        (ANONYMOUS, "2001:db8::1", b"\x20\x01\x0d\xb8\0\0\0\0"),
        (ANONYMOUS, "2001:db8::2", b"\x20\x01\x0d\xb8\0\0\0\0"),
        (ANONYMOUS, "127.0.0.1", None),
        (ANONYMOUS, "::ffff:127.0.0.2", None),
        (ANONYMOUS, "::1", None),
        (ANONYMOUS, "", None),
        (LOCAL, "192.0.2.1", None),
    ],
)
def test_whose_share_it_is(principal, address, caller):
    assert caller_of(principal, address) == caller
