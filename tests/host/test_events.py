"""host/events.py: told once, heard by all, and nobody holds anything up."""

import asyncio

import pytest

from interlock.host import events as module
from interlock.host.events import CatalogueChange, Events
from interlock.wire.errors import LocalError


def change(number):
    return CatalogueChange("a", number)


async def test_all_who_follow_hear_everything_in_order():
    events = Events()
    with events.follow() as one, events.follow() as other:
        for number in range(3):
            events.tell(change(number))
        events.close()
        assert [each.version async for each in one] == [each.version async for each in other] == [0, 1, 2]


async def test_who_waits_is_told_at_once():
    events = Events()
    with events.follow() as following:
        waiting = asyncio.ensure_future(anext(following))
        await asyncio.sleep(0)
        events.tell(change(1))
        assert await waiting == change(1)


async def test_who_does_not_take_them_misses_the_oldest(monkeypatch):
    monkeypatch.setattr(module, "MOST_WAITING", 3)
    events = Events()
    following = events.follow()
    for number in range(5):
        events.tell(change(number))
    events.close()
    assert [each.version async for each in following] == [2, 3, 4] and following.missed == 2


async def test_who_has_ended_hears_no_more():
    events = Events()
    with events.follow() as following:
        pass
    events.tell(change(1))
    assert [each async for each in following] == []


async def test_followers_are_bounded(monkeypatch):
    monkeypatch.setattr(module, "MOST_FOLLOWERS", 1)
    events = Events()
    with events.follow(), pytest.raises(LocalError, match="follow this host already"):
        events.follow()
    events.follow().close()


async def test_a_listener_that_fails_harms_nobody(caplog):
    heard = []

    def fails(event):
        heard.append(event)
        raise ZeroDivisionError

    events = Events(fails)
    for number in range(30):
        events.tell(change(number))
    assert len(heard) == 30 and caplog.text.count("on_event failed") == 10


async def test_a_listener_is_a_plain_function():
    async def wrong(event):
        pass

    for given in (wrong, "no"):
        with pytest.raises(LocalError, match="plain function"):
            Events(given)


async def test_who_follows_what_is_closed_waits_for_nothing():
    events = Events()
    events.close()
    late = events.follow()
    events.tell(change(1))
    async with asyncio.timeout(5):
        assert [event async for event in late] == []
    events.open()
    again = events.follow()
    events.tell(change(2))
    events.close()
    assert [event async for event in again] == [change(2)]
