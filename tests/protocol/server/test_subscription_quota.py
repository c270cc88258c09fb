"""protocol/server/subscription_quota.py: what a client watches is bounded by what it takes, alone and with all
others."""

import pytest

from interlock.protocol.server.subscription_quota import WatchMeter, watched_bytes
from interlock.wire.errors import InternalError, InvalidParams
from interlock.wire.limits import LONGEST_URI, MOST_SUBSCRIPTIONS, WATCHED_BYTES
from interlock.wire.quota import Shares

LONG = "a:" + "b" * (LONGEST_URI - 2)


def test_one_client_watches_so_many_and_so_much():
    meter = WatchMeter()
    room = WATCHED_BYTES // watched_bytes([LONG])
    for number in range(room):
        meter.add(LONG, number)
    with pytest.raises(InvalidParams, match="unsubscribe"):
        meter.add(LONG, room)
    meter.remove(LONG)
    meter.add(LONG, room - 1)
    with pytest.raises(InvalidParams, match="At most 10000"):
        WatchMeter().add("a:b", MOST_SUBSCRIPTIONS)


def test_as_many_as_are_allowed_fit_where_they_are_of_the_usual_length():
    assert watched_bytes(["x" * 200] * MOST_SUBSCRIPTIONS) <= WATCHED_BYTES


def test_one_caller_has_a_share_of_what_all_may_watch():
    one = watched_bytes(["a:b"])
    all = Shares(8 * one)
    first, second, other = WatchMeter(all, "ada"), WatchMeter(all, "ada"), WatchMeter(all, "bob")
    first.add("a:b", 0)
    second.add("a:b", 0)
    with pytest.raises(InternalError, match="at this server"):
        second.add("a:b", 1)
    other.add("a:b", 0)
    assert all.held == 3 * one
    first.end()
    second.add("a:b", 1)
    assert all.held == 3 * one


def test_what_others_let_be_watched_counts_until_the_end_and_not_behind_it():
    all = Shares(1)
    meter = WatchMeter(all, "ada")
    meter.recount({"a:b", "a:c"})
    assert all.held == watched_bytes(["a:b", "a:c"])
    meter.recount({"a:b"})
    assert all.held == watched_bytes(["a:b"])
    meter.end()
    meter.recount({"a:b"})
    assert all.held == 0
