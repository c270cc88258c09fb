"""state/memory.py: beyond the contract, that it is one for all threads and holds nothing longer than it says."""

import asyncio
import threading

from hypothesis.stateful import run_state_machine_as_test

from interlock.state.memory import MemoryStore
from interlock.state.store import Bounds
from support.properties import many
from support.store_model import machine
from support.stores import FOREVER, Clock


def test_it_does_what_the_model_does():
    run_state_machine_as_test(machine("memory"), settings=many(60, stateful_step_count=40))


def test_loops_in_several_threads_share_it():
    store, first = MemoryStore(), list[bool]()

    async def use() -> None:
        for number in range(300):
            first.append(await store.put(f"k{number}", b"", until=FOREVER, expect=0) > 0)
            await store.append("s", [b"x"], until=FOREVER)

    threads = [threading.Thread(target=lambda: asyncio.run(use())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(first) == 300
    assert asyncio.run(store.last("s")) == 1200


async def test_one_loop_wakes_who_waits_on_another():
    store = MemoryStore()
    wait = asyncio.create_task(store.wait("s", seconds=60))
    await asyncio.sleep(0)
    thread = threading.Thread(target=lambda: asyncio.run(store.append("s", [b"x"], until=FOREVER)))
    thread.start()
    assert await wait
    thread.join()


async def test_nothing_is_left_of_what_went():
    clock = Clock()
    store = MemoryStore(Bounds(linger_seconds=5, event_seconds=5), clock=clock)
    for number in range(100):
        await store.put(f"k{number}", b"v", until=1001)
        await store.append(f"s{number}", [b"e"], until=1001 if number % 2 else FOREVER)
    clock.now = 1010
    assert await store.take_expired() == []
    assert not store._entries._live and not store._entries._over and store._entries._bytes == 0
    assert len(store._streams._streams) == 50 and store._streams._bytes == 0
