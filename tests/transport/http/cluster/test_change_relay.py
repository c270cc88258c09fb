"""transport/http/cluster/change_relay.py: what changes in one process is known in the others, once."""

import asyncio
import threading

from interlock import Server
from interlock.transport.http.cluster.change_relay import ChangeRelay
from interlock.transport.http.cluster.membership import Sharing


class House:
    """A handler that knows of changes, in a process of its own."""

    def __init__(self, path):
        self.told = []
        self.sharing = Sharing(path, "x", lease=5.0)
        ChangeRelay.between(self, self.sharing)

    def relay_changes(self, relay):
        self.tell = relay
        return lambda what, uri, admits: self.told.append((what, uri, admits and admits(1)))


async def until(condition):
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.005)


async def test_all_hear_of_a_change_in_the_same_order_and_once(tmp_path):
    houses = one, two = House(tmp_path / "state.db"), House(tmp_path / "state.db")
    for house in houses:
        await house.sharing.ready()
    thread = threading.Thread(target=one.tell, args=("resource", "note://ü\udc80", None))
    thread.start()
    thread.join()
    await until(lambda: len(two.told) == 1)
    for _ in range(50):
        assert one.tell("prompts", "", None)  # a burst is told once
    await until(lambda: len(two.told) == 2)
    assert two.tell("tools", "", None)
    await until(lambda: len(one.told) == len(two.told) == 3)
    assert [what for what, _, _ in one.told] == ["resource", "prompts", "tools"] and one.told == two.told
    assert one.told[0][1] == "note://ü\udc80"
    for house in houses:
        await house.sharing.leave()


async def test_who_may_hear_of_it_is_known_where_it_was_made(tmp_path):
    houses = one, two = House(tmp_path / "state.db"), House(tmp_path / "state.db")
    for house in houses:
        await house.sharing.ready()
    for admits in (lambda who: who == 1, lambda who: False):
        assert one.tell("tools", "", admits)  # together: whom either of them admits
    assert one.tell("prompts", "", lambda who: False)
    await until(lambda: len(one.told) == len(two.told) == 2)
    assert one.told == [("tools", "", True), ("prompts", "", False)]
    assert two.told == [("tools", "", None), ("prompts", "", None)]
    for house in houses:
        await house.sharing.leave()


async def test_what_cannot_be_passed_on_is_told_here(tmp_path):
    house = House(tmp_path / "state.db")
    assert not house.tell("tools", "", None)  # nothing is shared yet
    await house.sharing.ready()
    await house.sharing.state.close()
    assert house.tell("tools", "", None)
    await until(lambda: house.told)
    await house.sharing.leave()
    assert not house.tell("tools", "", None)
    loop = asyncio.new_event_loop()
    loop.close()
    relay = house.tell.__self__
    relay._loop, house.sharing._joining = loop, asyncio.get_running_loop().create_future()
    assert not house.tell("prompts", "", None)


async def test_a_handler_without_changes_has_no_relay(tmp_path):
    sharing = Sharing(tmp_path / "state.db", "x", lease=5.0)
    ChangeRelay.between(lambda exchange: None, sharing)
    assert sharing.on_ready == []


async def test_a_server_tells_its_relay_instead_of_those_who_listen():
    server, told = Server("s"), []
    heard = server.relay_changes(lambda what, uri, admits: told.append((what, uri)) or True)

    @server.tool
    async def hi() -> str:
        return "hi"

    server.resource_changed("note://1")
    assert told == [("tools", ""), ("resource", "note://1")]
    for what in ("tools", "resource", "nothing"):
        heard(what, "note://1", None)
    assert len(told) == 2
