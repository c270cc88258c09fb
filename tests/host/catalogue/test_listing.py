"""host/catalogue/listing.py: what a server lists, within bounds; nothing of it fails."""

from interlock import Client, Patience, Server
from interlock.host.catalogue.listing import Bounds, Offer, offered, part_of
from support.mortal import Mortal
from support.virtual_time import virtual_time

SOON = Patience(idle=5, total=5)


def listing(*names, description="d"):
    return [{"name": name, "inputSchema": {}, "description": description} for name in names]


async def offer_of(mortal, bounds=None):
    async with mortal.client(keepalive=None) as client:
        return await offered(client, SOON, bounds or Bounds())


async def test_everything_a_server_has():
    server = Server("s", instructions="be kind")
    server.tool(lambda: "", name="t")
    server.prompt(lambda: "", name="p")
    server.resource("a://b")(lambda: "")
    server.resource("a://{c}")(lambda c: "")
    async with Client(server) as client:
        offer = await offered(client, SOON, Bounds())
    assert ([*offer.tools], [*offer.prompts], [*offer.resources]) == (["t"], ["p"], ["a://b"])
    assert ([*offer.templates], offer.instructions, offer.notes) == (["a://{c}"], "be kind", ())


@virtual_time
async def test_what_is_too_much_is_cut_and_noted():
    mortal = Mortal()
    mortal.tools = listing(*(f"t{number}" for number in range(50)))
    offer = await offer_of(mortal, Bounds(tools=20))
    assert [*offer.tools] == [f"t{number}" for number in range(20)]
    assert "it lists 50 tools: only the first 20 are taken" in offer.notes


@virtual_time
async def test_a_list_that_does_not_come_is_empty_and_noted():
    mortal = Mortal()
    mortal.silent = {"tools/list"}
    offer = await offer_of(mortal)
    assert not offer.tools and "its tools could not be listed" in offer.notes[0]


@virtual_time
async def test_an_error_of_one_list_leaves_the_others():
    mortal = Mortal()
    mortal.refuses = {"resources/list"}
    mortal.tools = listing("t")
    offer = await offer_of(mortal)
    assert [*offer.tools] == ["t"] and any("its resources could not be listed" in note for note in offer.notes)


@virtual_time
async def test_of_two_different_tools_with_one_name_neither_is_taken():
    mortal = Mortal()
    mortal.tools = [*listing("a", "b"), *listing("a", description="other")]
    offer = await offer_of(mortal)
    assert [*offer.tools] == ["b"] and "twice and differently; left out: a" in offer.notes[0]


@virtual_time
async def test_the_same_twice_is_one():
    mortal = Mortal()
    mortal.tools = listing("a", "a")
    offer = await offer_of(mortal)
    assert [*offer.tools] == ["a"] and not any("twice" in note for note in offer.notes)


@virtual_time
async def test_a_definition_without_end_is_left_out():
    mortal = Mortal()
    mortal.tools = [*listing("big", description="x" * 70_000), *listing("small")]
    offer = await offer_of(mortal)
    assert [*offer.tools] == ["small"] and "1 of its tools" in offer.notes[0]


async def test_instructions_without_end_are_left_out():
    async with Client(Server("s", instructions="x" * 70_000)) as client:
        offer = await offered(client, SOON, Bounds())
    assert offer.instructions is None and "70000 characters" in offer.notes[0]


@virtual_time
async def test_a_name_in_a_note_is_escaped():
    mortal = Mortal()
    mortal.tools = [*listing("\x1b[2Ka"), *listing("\x1b[2Ka", description="other")]
    offer = await offer_of(mortal)
    assert "\x1b" not in offer.notes[0]


def test_a_part_of_an_offer_is_an_offer():
    assert part_of(Offer(instructions="a"), instructions=None) == Offer()
