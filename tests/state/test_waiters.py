"""state/waiters.py: news from any thread reaches every waiter, none is missed and none is kept."""

import asyncio
import threading

from interlock.state.waiters import Waiters
from support.idle import until_idle


async def test_news_from_another_thread_ends_the_wait():
    waiters, there = Waiters(), False

    async def look() -> bool:
        return there

    wait = asyncio.create_task(waiters.wait("s", look, 60))
    await asyncio.sleep(0)
    waiters.wake("s")  # a false alarm: it looks and goes on waiting
    waiters.wake("other")
    await until_idle()
    assert not wait.done()
    there = True
    thread = threading.Thread(target=waiters.wake_all)
    thread.start()
    assert await wait
    thread.join()
    assert len(waiters) == 0


async def test_what_comes_during_the_first_look_is_not_missed():
    waiters, looks = Waiters(), 0

    async def look() -> bool:
        nonlocal looks
        looks += 1
        if looks == 1:
            waiters.wake("s")  # comes after the answer was made and before it is known
            return False
        return True

    assert await waiters.wait("s", look, 60)
    assert looks == 2


async def test_who_gives_up_is_forgotten():
    waiters = Waiters()

    async def look() -> bool:
        return False

    assert not await waiters.wait("s", look, 0)
    waits = [asyncio.create_task(waiters.wait("s", look, 60)) for _ in range(2)]
    await asyncio.sleep(0)
    waits[0].cancel()
    await asyncio.wait(waits, timeout=0.01)
    assert len(waiters) == 1
    waits[1].cancel()
    await asyncio.wait(waits)
    assert len(waiters) == 0


def test_a_loop_that_was_closed_under_a_waiter_does_no_harm():
    waiters = Waiters()

    async def look() -> bool:
        return False

    loop = asyncio.new_event_loop()
    wait = loop.create_task(waiters.wait("s", look, 60))
    loop.run_until_complete(asyncio.sleep(0))
    news = waiters._by_stream["s"].copy()
    wait.cancel()
    loop.run_until_complete(asyncio.wait([wait]))
    loop.close()
    waiters._by_stream["s"] = news
    waiters.wake("s")
