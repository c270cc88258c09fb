"""server/lifespans.py: entered and left by one task, whoever asks and from wherever."""

import asyncio
import threading
from contextlib import asynccontextmanager

import pytest

from interlock.server import lifespans as module
from interlock.server.lifespans import Span
from support.doubles import turns


class Recorded:
    """A context manager that records which task enters and leaves it."""

    def __init__(self, value="value", enter=None, leave=None):
        self.value, self.enter, self.leave = value, enter, leave
        self.tasks = []

    def __call__(self):
        return self.live()

    @asynccontextmanager
    async def live(self):
        self.tasks.append(asyncio.current_task())
        if self.enter is not None:
            await self.enter()
        yield self.value
        self.tasks.append(asyncio.current_task())
        if self.leave is not None:
            await self.leave()


async def test_one_task_enters_and_leaves():
    recorded = Recorded()
    span = Span("s", recorded)
    assert await asyncio.gather(span.entered(), span.entered()) == ["value", "value"]
    assert await span.entered() == "value"
    await asyncio.gather(span.left(), span.left())
    first, last = recorded.tasks
    assert first is last is not asyncio.current_task()


async def test_a_failure_at_the_beginning_reaches_everybody():
    async def fail():
        raise OSError("no disk")

    span = Span("s", Recorded(enter=fail))
    for _ in range(2):
        with pytest.raises(OSError, match="no disk"):
            await span.entered()
    await span.left()


async def test_a_failure_at_the_end_is_logged(caplog):
    async def fail():
        raise OSError("no disk")

    span = Span("app lifespan", Recorded(leave=fail))
    await span.entered()
    await span.left()
    assert "the end of the app lifespan failed" in caplog.text and "no disk" in caplog.text


async def test_who_gives_up_waiting_ends_nothing():
    go = asyncio.Event()
    span = Span("s", Recorded(enter=go.wait))
    waiting = asyncio.ensure_future(span.entered())
    await turns()
    waiting.cancel()
    await turns()
    go.set()
    assert await span.entered() == "value"
    await span.left()


async def test_a_beginning_that_lasts_is_cancelled_by_the_end():
    span = Span("s", Recorded(enter=asyncio.Event().wait))
    await turns()
    await span.left()
    with pytest.raises(asyncio.CancelledError):
        await span.entered()


async def test_an_end_that_lasts_is_cut_off(monkeypatch, caplog):
    monkeypatch.setattr(module, "END_SECONDS", 0.01)
    span = Span("app lifespan", Recorded(leave=asyncio.Event().wait))
    await span.entered()
    await span.left()
    assert "took more than 0.01 s" in caplog.text
    assert len(caplog.records) == 1, "that it was cancelled is told once"


async def test_the_next_begins_when_the_last_has_ended():
    order, go = [], asyncio.Event()

    async def leave():
        await go.wait()
        order.append("left")

    async def enter():
        order.append("entered")

    first = Span("s", Recorded(leave=leave))
    await first.entered()
    second = Span("s", Recorded(enter=enter), first)
    await turns(10)
    assert order == []
    go.set()
    await second.entered()
    assert order == ["left", "entered"]
    await second.left()


def test_a_loop_that_ends_ends_it_in_good_order():
    done = []

    async def leave():
        await asyncio.sleep(0)
        done.append("clean")

    async def main():
        await Span("s", Recorded(leave=leave)).entered()

    asyncio.run(main())
    assert done == ["clean"]


def test_a_loop_that_was_closed_under_it():
    loop = asyncio.new_event_loop()

    async def make():
        span = Span("s", Recorded())
        await span.entered()
        return span

    span = loop.run_until_complete(make())
    loop.run_until_complete(span.left())
    loop.close()
    assert span.is_lost
    asyncio.run(span.left())


async def test_it_is_used_and_ended_from_another_loop():
    span, found = Span("s", Recorded()), []

    async def use():
        found.append(await span.entered())
        await span.left()

    thread = threading.Thread(target=lambda: asyncio.run(use()))
    thread.start()
    while thread.is_alive():
        await asyncio.sleep(0.001)
    thread.join()
    assert found == ["value"]
