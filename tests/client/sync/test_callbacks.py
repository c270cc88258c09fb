"""client/sync/callbacks.py: plain functions beside the loop, within bounds."""

import asyncio
import logging
import threading

import pytest

from interlock.client.sync import callbacks as sync_callbacks
from interlock.client.sync.callbacks import Callbacks
from interlock.wire.errors import LocalError


async def test_a_plain_function_may_block_while_the_loop_goes_on():
    callbacks, begun, go = Callbacks(), threading.Event(), threading.Event()
    asked = asyncio.ensure_future(callbacks.awaited(lambda a, b: begun.set() or (go.wait(20) and a + b))(1, 2))
    await asyncio.to_thread(begun.wait, 20)
    assert not asked.done()
    go.set()
    assert await asked == 3


async def test_what_is_async_already_or_no_function_is_left_alone():
    async def ask(): ...

    for given in (ask, None, ["file:///x"]):
        assert Callbacks().awaited(given) is given
    assert Callbacks().told(ask) is ask


async def test_a_function_may_give_something_to_await():
    async def later():
        return 7

    assert await Callbacks().awaited(lambda: later())() == 7


async def test_what_it_raises_is_raised():
    def fail():
        raise KeyError("x")

    def leave():
        raise SystemExit(1)

    with pytest.raises(KeyError):
        await Callbacks().awaited(fail)()
    with pytest.raises(LocalError, match="SystemExit"):
        await Callbacks().awaited(leave)()


async def test_it_knows_who_is_waited_for():
    callbacks, other = Callbacks(), Callbacks()
    assert await callbacks.awaited(lambda: (callbacks.is_waited_for, other.is_waited_for))() == (True, False)
    assert not callbacks.is_waited_for


async def test_so_many_run_at_once(monkeypatch):
    monkeypatch.setattr(sync_callbacks, "_AT_ONCE", 2)
    callbacks, go = Callbacks(), threading.Event()
    running = [asyncio.ensure_future(callbacks.awaited(lambda: go.wait(20))()) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(LocalError, match="2 callbacks are running"):
        await callbacks.awaited(lambda: None)()
    running.pop().cancel()  # a thread that nobody waits for is counted until it ends
    await asyncio.sleep(0)
    with pytest.raises(LocalError):
        await callbacks.awaited(lambda: None)()
    go.set()
    assert await running.pop()
    async with asyncio.timeout(20):
        while callbacks._running:
            await asyncio.sleep(0.001)
    assert await callbacks.awaited(lambda: 1)() == 1


def test_news_are_told_in_order_and_to_the_end(caplog):
    callbacks, heard = Callbacks(), []

    def hear(number):
        if number == 3:
            raise ValueError("3")
        heard.append((number, callbacks.is_waited_for))

    take_note = callbacks.told(hear)
    with caplog.at_level(logging.ERROR):
        for number in range(100):
            take_note(number)
        callbacks.close()
    assert heard == [(number, False) for number in range(100) if number != 3]
    assert caplog.text.count("a listener failed") == 1
    take_note(7)  # after the end: nobody listens, nothing is started


def test_a_slow_listener_loses_the_oldest_news(monkeypatch):
    monkeypatch.setattr(sync_callbacks, "_MOST_NEWS", 3)
    callbacks, heard, go, busy = Callbacks(), [], threading.Event(), threading.Event()

    def hear(number):
        busy.set()
        go.wait(20)
        heard.append(number)

    take_note = callbacks.told(hear)
    take_note(0)
    assert busy.wait(20)
    for number in range(1, 6):
        take_note(number)
    go.set()
    callbacks.close()
    assert heard == [0, 3, 4, 5]
