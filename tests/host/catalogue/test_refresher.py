"""host/catalogue/refresher.py: the catalogue is true, and a server that cries all day is heard now and then."""

import asyncio

from interlock import Client, Server
from interlock.host.catalogue.catalogue import Catalogue
from interlock.host.catalogue.listing import Bounds, Offer, part_of
from interlock.host.catalogue.refresher import Shelving
from interlock.wire.errors import LocalError
from support.mortal import Mortal
from support.virtual_time import virtual_time


class House:
    def __init__(self, admit=None, **bounds):
        self.catalogue = Catalogue(["a"])
        self.notes, self.changes, self.offers = [], [], []
        self._admit = admit
        tell = lambda server, note: self.notes.append(note)  # noqa: E731
        self.shelving = Shelving(self.catalogue, self.admit, tell, self.changes.append, Bounds(**bounds))

    async def admit(self, server, offer):
        self.offers.append(offer)
        return await self._admit(offer) if self._admit else offer

    @property
    def names(self):
        return [*self.catalogue.tools]


def server_of(*names):
    server = Server("s")
    for name in names:
        server.tool(lambda: "", name=name)
    return server


@virtual_time
async def test_what_a_server_has_is_on_the_shelf_as_soon_as_it_is_known():
    house = House()
    async with Client(server_of("x")) as client:
        house.shelving.connected("a", client, 5)
        assert not house.names
        await house.shelving.known("a")
        assert house.names == ["a__x"] and house.changes == ["a"]
        house.shelving.gone("a")
        assert not house.names and house.changes == ["a", "a"]
        await house.shelving.close()


@virtual_time
async def test_of_a_server_that_goes_nothing_is_under_way_when_it_has_gone():
    asked, ended = asyncio.Event(), []

    async def admit(offer):
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(3)  # what it takes to close a question
            ended.append("asking")

    house = House(admit, tools=1)
    async with Client(server_of("x", "y")) as client:
        house.shelving.connected("a", client, 5)
        await asked.wait()
        assert house.notes and house.shelving.is_listing("a")
        await house.shelving.ended("a")
        assert ended == ["asking"] and not house.names and not house.shelving.is_listing("a")
        house.shelving.connected("a", client, 5)  # what comes under its name is told anew
        await asyncio.sleep(1)
        assert house.notes == [house.notes[0]] * 2
        await house.shelving.close()


@virtual_time
async def test_only_what_is_admitted_is():
    async def admit(offer):
        return part_of(offer, tools={"x": offer.tools["x"]})

    house = House(admit)
    async with Client(server_of("x", "y")) as client:
        house.shelving.connected("a", client, 5)
        await house.shelving.known("a")
        assert house.names == ["a__x"]
        await house.shelving.close()


@virtual_time
async def test_where_admission_fails_nothing_is_used(caplog):
    for error in (LocalError("no room"), ZeroDivisionError("oops")):

        async def admit(offer, error=error):
            raise error

        house = House(admit)
        async with Client(server_of("x")) as client:
            house.catalogue.put("a", Offer(instructions="old"))
            house.shelving.connected("a", client, 5)
            await house.shelving.known("a")
            assert not house.names and not house.catalogue.instructions
            await house.shelving.close()
        assert isinstance(error, ZeroDivisionError) or any("no room" in note for note in house.notes)
    assert "oops" in caplog.text


@virtual_time
async def test_a_change_is_listed_again():
    house, server = House(), server_of("x")
    async with Client(server) as client:
        house.shelving.connected("a", client, 5)
        await house.shelving.known("a")
        server.tool(lambda: "", name="y")
        house.shelving.refresh("a", client, 5)
        await asyncio.sleep(5)
        assert house.names == ["a__x", "a__y"]


@virtual_time
async def test_a_server_that_cries_all_day_is_listed_ever_more_rarely():
    house = House()
    async with Client(server_of("x")) as client:
        house.shelving.connected("a", client, 5)
        for _ in range(3_600):
            house.shelving.refresh("a", client, 5)
            await asyncio.sleep(0.1)
        assert 5 < len(house.offers) < 25
        await house.shelving.close()


@virtual_time
async def test_nobody_waits_for_what_is_known_or_gone():
    house, mortal = House(), Mortal()
    mortal.silent = {"tools/list"}
    await house.shelving.known("a")
    async with mortal.client() as client:
        house.shelving.connected("a", client, 500)
        waiting = asyncio.ensure_future(house.shelving.known("a"))
        await asyncio.sleep(1)
        assert not waiting.done()
        house.shelving.gone("a")
        await waiting
        await house.shelving.close()


@virtual_time
async def test_a_note_is_told_once_as_long_as_it_is_true():
    house = House(tools=1)
    async with Client(server_of("x", "y")) as client:
        for _ in range(3):
            house.shelving.refresh("a", client, 5)
            await asyncio.sleep(5)
    assert house.notes == ["it lists 2 tools: only the first 1 are taken"]


@virtual_time
async def test_a_new_connection_is_looked_at_at_once():
    house = House()
    async with Client(server_of("x")) as one, Client(server_of("y")) as other:
        house.shelving.connected("a", one, 5)
        await house.shelving.known("a")
        before = asyncio.get_running_loop().time()
        house.shelving.connected("a", other, 5)
        await house.shelving.known("a")
        assert house.names == ["a__y"] and asyncio.get_running_loop().time() == before
        await house.shelving.close()


@virtual_time
async def test_what_was_given_up_has_ended_when_it_is_closed():
    begun, ended = asyncio.Event(), []

    async def admit(offer):
        begun.set()
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(0.01)
            ended.append(True)

    house = House(admit)
    async with Client(server_of("x")) as client:
        house.shelving.connected("a", client, 5)
        await begun.wait()
        house.shelving.gone("a")
        assert ended == []
        await house.shelving.close()
        assert ended == [True]
