"""A client that asks for suggestions: what it says, how often, and what it makes of half an answer."""

from __future__ import annotations

import pytest

from interlock.protocol.client.base import NotOffered
from support.talking import Clock, methods, refuse, reply, start, talking, turns
from support.wire_peer import ALL, CARRIERS

over_all = pytest.mark.parametrize("revision", ALL)
KNOWS_CONTEXT = ALL[2:]


async def answered(client, peer, values, *given, **more):
    call = start(client.complete(*given, **more))
    request = await peer.expect("completion/complete")
    reply(peer, request, {"completion": {"values": values}})
    return (await call).values, request["params"]


@pytest.mark.requirement("COMPL-04", "SCHEMA-006")
@pytest.mark.parametrize("carrier", CARRIERS)
@over_all
async def test_what_is_completed_is_a_prompt_or_a_template(carrier, revision):
    async with talking(carrier, revision) as (client, peer):
        found, params = await answered(client, peer, ["Graz"], "city", "G", prompt="trip")
        assert found == ("Graz",)
        assert params["ref"] == {"type": "ref/prompt", "name": "trip"}
        assert params["argument"] == {"name": "city", "value": "G"}
        _, params = await answered(client, peer, [], "id", "", template="note://{id}")
        assert params["ref"] == {"type": "ref/resource", "uri": "note://{id}"}
        assert params["argument"] == {"name": "id", "value": ""}


@pytest.mark.requirement("COMPL-05", "COMPL-003")
@over_all
async def test_what_is_known_already_is_said_where_there_is_a_word_for_it(revision):
    async with talking("memory", revision) as (client, peer):
        _, params = await answered(client, peer, [], "city", "G", prompt="trip", known={"land": "AT"})
        expected = {"arguments": {"land": "AT"}} if revision in KNOWS_CONTEXT else None
        assert params.get("context") == expected


@pytest.mark.requirement("COMPL-13", "COMPL-006")
@over_all
async def test_of_letters_typed_in_a_hurry_only_the_last_is_asked_for(revision):
    async with talking("memory", revision) as (client, peer):
        await answered(client, peer, ["Graz"], "city", "G", prompt="trip")
        clock = Clock()
        typed = [start(client.complete("city", value, prompt="trip")) for value in ("Gr", "Gra", "Graz")]
        await turns()
        assert methods(peer).count("completion/complete") == 1
        await clock.advance(1)
        request = await peer.expect("completion/complete")
        assert request["params"]["argument"]["value"] == "Graz"
        reply(peer, request, {"completion": {"values": ["Graz"]}})
        assert [(await each).superseded for each in typed] == [True, True, False]
        assert methods(peer).count("completion/complete") == 2


@pytest.mark.requirement("COMPL-14", "COMPL-006")
@over_all
async def test_the_same_is_not_asked_twice(revision):
    async with talking("memory", revision) as (client, peer):
        clock = Clock()
        await answered(client, peer, ["Graz"], "city", "G", prompt="trip")
        await clock.advance(5)
        assert (await client.complete("city", "G", prompt="trip")).values == ("Graz",)
        await clock.advance(60)
        found, _ = await answered(client, peer, ["Gmunden"], "city", "G", prompt="trip")
        assert found == ("Gmunden",), "and not for ever"


@pytest.mark.requirement("COMPL-15", "COMPL-006")
@over_all
@pytest.mark.parametrize(
    ("said", "values"),
    [({}, ()), ({"completion": {}}, ()), ({"completion": {"values": ["a", 7]}}, ("a",)), ({"completion": []}, ())],
    ids=str,
)
async def test_half_an_answer_is_one(revision, said, values):
    async with talking("memory", revision, check=False) as (client, peer):
        call = start(client.complete("city", "G", prompt="trip"))
        reply(peer, await peer.expect("completion/complete"), said, judged=False)
        assert (await call).values == values


@pytest.mark.requirement("COMPL-02")
async def test_where_nobody_can_say_that_he_has_it_the_server_is_asked():
    async with talking("memory", ALL[0]) as (client, peer):
        call = start(client.complete("city", "G", prompt="trip"))
        refuse(peer, await peer.expect("completion/complete"), -32601, "Method not found")
        assert (await call).values == ()


@pytest.mark.parametrize("revision", ALL[1:])
async def test_where_a_server_can_say_so_and_does_not_it_is_not_asked(revision):
    async with talking("memory", revision, capabilities={"prompts": {}}) as (client, peer):
        with pytest.raises(NotOffered):
            await client.complete("city", "G", prompt="trip")
        assert "completion/complete" not in methods(peer)
