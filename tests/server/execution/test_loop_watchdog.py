"""server/execution/loop_watchdog.py: a handler that blocks the loop is named, everybody else is left alone."""

import asyncio
import logging
import threading
import time

import pytest

from interlock import Client, Server
from interlock.server.execution.loop_watchdog import Stalls
from interlock.wire.errors import LocalError

SECONDS = 0.05


def run(work, stalls):
    """Run `work` on a loop that is watched, as a server's main loop is."""
    loop = asyncio.new_event_loop()
    try:
        with stalls.watch(loop):
            return loop.run_until_complete(work)
    finally:
        loop.close()


class Told(logging.Handler):
    """Sets an event with every warning, so that a handler can block until it was named."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.event, self.texts = threading.Event(), []

    def emit(self, record):
        self.texts.append(record.getMessage())
        self.event.set()


@pytest.fixture
def told():
    handler, logger = Told(), logging.getLogger("interlock.server")
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)


def call(server, name):
    async def called():
        async with Client(server) as client:
            return await client.call_tool(name, {})

    return called()


def test_a_tool_that_blocks_is_named_with_the_place(told):
    server = Server("s", stall_seconds=SECONDS)

    @server.tool
    async def sleepy() -> str:
        def deep_inside():
            assert told.event.wait(20)

        deep_inside()
        return "awake"

    result = run(call(server, "sleepy"), server.stalls)
    assert result.content[0].text == "awake"
    [text] = told.texts
    assert "the tool sleepy has blocked the event loop for more than 0.05 s" in text
    assert "deep_inside" in text and __file__ in text
    assert "answering.py" not in text  # the stack begins at the handler


def test_a_plain_function_on_the_loop_is_named_too(told):
    server = Server("s", stall_seconds=SECONDS)

    @server.tool(thread="loop", name="on-loop")
    def blocks() -> str:
        return str(told.event.wait(20))

    assert run(call(server, "on-loop"), server.stalls).content[0].text == "True"
    assert "the tool on-loop has blocked" in told.texts[0]


def test_what_is_no_tool_is_named_by_its_function(told):
    server = Server("s", stall_seconds=SECONDS)

    @server.resource("note://slow")
    async def slow_note() -> str:
        return str(told.event.wait(20))

    async def reads():
        async with Client(server) as client:
            return await client.read_resource("note://slow")

    run(reads(), server.stalls)
    assert "the handler" in told.texts[0] and "slow_note has blocked" in told.texts[0]


def test_the_same_one_is_not_named_again_at_once(told):
    server = Server("s", stall_seconds=SECONDS)
    again = threading.Event()

    @server.tool
    async def sleepy() -> str:
        if not told.event.wait(20):
            return "unseen"
        again.wait(10 * SECONDS)
        return "seen"

    async def twice():
        async with Client(server) as client:
            return [(await client.call_tool("sleepy", {})).content[0].text for _ in range(2)]

    assert run(twice(), server.stalls) == ["seen", "seen"]
    assert len(told.texts) == 1


class Looks:
    """Stands for the event that ends a watch: lets it look until it has found a handler so often."""

    def __init__(self, stalls, count):
        self.found, self.count = [], count
        look = stalls._handler_in

        def looks(watched):
            found = look(watched)
            self.found.append(found is not None)
            return found

        stalls._handler_in = looks

    def wait(self, seconds):
        time.sleep(0.001)  # the loop has its turns meanwhile
        return sum(self.found) >= self.count

    def is_set(self):
        return False


def test_a_handler_that_gives_way_answers_the_knock(told):
    server = Server("s", stall_seconds=10.0)
    looks, watched = Looks(server.stalls, 3), threading.get_ident()
    watcher: list[threading.Thread] = []

    @server.tool
    async def busy() -> str:
        loop = asyncio.get_running_loop()
        watcher.append(threading.Thread(target=server.stalls._look_after, args=(loop, watched, looks)))
        watcher[0].start()
        while watcher[0].is_alive():
            for _ in range(1_000_000):  # long enough to be seen at it: threads take turns every 5 ms
                pass
            await asyncio.sleep(0)
        return "busy"

    asyncio.run(call(server, "busy"))
    assert sum(looks.found) == 3
    assert told.texts == []


def test_who_waits_or_works_in_a_thread_is_not_on_the_loop():
    server, watched = Server("s"), threading.get_ident()
    loops: list[asyncio.AbstractEventLoop] = []

    def looks() -> str:
        for _ in range(3):  # whatever led here has gone back to the loop by then
            asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loops[-1]).result(20)
        return str([server.stalls._handler_in(watched) for _ in range(100)].count(None))

    server.tool(name="in_thread")(looks)

    @server.tool
    async def waits() -> str:
        return await asyncio.to_thread(looks)

    async def called(name):
        loops.append(asyncio.get_running_loop())
        return await call(server, name)

    for name in ("in_thread", "waits"):
        assert asyncio.run(called(name)).content[0].text == "100"


def test_the_watcher_goes_with_the_loop():
    stalls = Stalls(30.0)

    async def nothing():
        return [thread.name for thread in threading.enumerate()]

    assert "interlock-stalls" in run(nothing(), stalls)
    assert "interlock-stalls" not in [thread.name for thread in threading.enumerate()]


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), 1e6])
def test_a_time_that_makes_no_sense_is_told(seconds):
    with pytest.raises(LocalError, match="stall_seconds"):
        Server("s", stall_seconds=seconds)


def test_without_a_time_nobody_watches():
    assert Server("s", stall_seconds=None).stalls is None
    assert Server("s").stalls.seconds == 1.0
