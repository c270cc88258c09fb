"""transport/change_relay.py: what changes in one process is known in the others, once."""

import asyncio
import threading

from interlock import Server
from interlock.transport.change_relay import ChangeRelay
from interlock.transport.sharing import Sharing


class House:
    """A handler that knows of changes, in a process of its own."""

    def __init__(self, path):
        self.told = []
        self.sharing = Sharing(path, "x", lease=5.0)
        ChangeRelay.between(self, self.sharing)

    def relay_changes(self, relay):
        self.tell = relay
        return lambda what, uri: self.told.append((what, uri))


async def until(condition):
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.005)


async def test_changes_reach_the_others_and_not_who_made_them(tmp_path):
    one, two = House(tmp_path / "state.db"), House(tmp_path / "state.db")
    one.tell("tools", "")  # before there is anybody to tell: it waits
    await two.sharing.ready()
    await one.sharing.ready()
    await until(lambda: two.told)
    thread = threading.Thread(target=one.tell, args=("resource", "note://ü\udc80"))
    thread.start()
    thread.join()
    for _ in range(50):
        one.tell("prompts", "")  # a burst is told once
    await until(lambda: len(two.told) == 3)
    assert two.told == [("tools", ""), ("resource", "note://ü\udc80"), ("prompts", "")]
    two.tell("tools", "")
    await until(lambda: one.told)
    assert (one.told, len(two.told)) == ([("tools", "")], 3)
    for house in (one, two):
        await house.sharing.leave()


async def test_after_the_end_of_its_loop_nothing_is_passed_on(tmp_path):
    house = House(tmp_path / "state.db")
    house.tell("tools", "")
    loop = asyncio.new_event_loop()
    loop.close()
    house.sharing.on_ready.clear()
    relay = house.tell.__self__
    relay._loop, relay._waiting = loop, {}
    house.tell("tools", "")
    assert house.told == []


async def test_a_handler_without_changes_has_no_relay(tmp_path):
    sharing = Sharing(tmp_path / "state.db", "x", lease=5.0)
    ChangeRelay.between(lambda exchange: None, sharing)
    assert sharing.on_ready == []


async def test_a_server_hears_of_others_without_telling_again():
    server, told = Server("s"), []
    heard = server.relay_changes(lambda what, uri: told.append((what, uri)))

    @server.tool
    async def hi() -> str:
        return "hi"

    server.resource_changed("note://1")
    assert told == [("tools", ""), ("resource", "note://1")]
    for what in ("tools", "resource", "nothing"):
        heard(what, "note://1")
    assert len(told) == 2
