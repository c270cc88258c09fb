"""Suggestions for arguments of prompts and variables of templates, in every revision and over every carrier."""

import re

import pytest

from interlock import Refused
from support.http_talk import PLACES, speaking
from support.talking import refuse, start, talking
from support.wire_peer import ALL, CARRIERS, MODERN

everywhere = pytest.mark.parametrize(("carrier", "revision"), PLACES)


def asking(ref, argument, value, **known):
    """Params of a completion; what is known already travels from 2025-06-18 on."""
    context = {"context": {"arguments": known}} if known else {}
    return {"ref": ref, "argument": {"name": argument, "value": value}, **context}


def prompt(name):
    return {"type": "ref/prompt", "name": name}


def template(uri):
    return {"type": "ref/resource", "uri": uri}


async def complete(peer, ref, argument, value, **known):
    return (await peer.result("completion/complete", asking(ref, argument, value, **known)))["completion"]


async def refused(peer, params, **options):
    return (await peer.error("completion/complete", params, **options))["code"]


# --- what is offered ---


def capabilities(peer, found):
    if found is not None:
        return found["capabilities"]
    return next(frame["result"] for frame in peer.transcript.frames("server") if "result" in frame)["capabilities"]


@everywhere
@pytest.mark.requirement("COMPL-01", "COMPL-001", "COMPL-06")
async def test_who_declares_completions_completes(carrier, revision):
    async with speaking(carrier, revision, server="library") as peer:
        found = await peer.result("server/discover", {}) if revision in MODERN else None
        assert ("completions" in capabilities(peer, found)) is (
            revision > "2024-11-05"
        )  # the first one has no such word
        told = await complete(peer, prompt("travel"), "country", "Aust")
        assert told == {"values": ["Austria", "Australia"], "total": 2, "hasMore": False}


@everywhere
@pytest.mark.requirement("COMPL-01", "COMPL-001", "COMPL-07", "COMPL-004")
async def test_who_has_none_declares_none_and_knows_no_such_method(carrier, revision):
    async with speaking(carrier, revision, server="basic") as peer:
        found = await peer.result("server/discover", {}) if revision in MODERN else None
        assert "completions" not in capabilities(peer, found)
        assert await refused(peer, asking(prompt("greet"), "name", "")) == -32601


# --- the answers ---


@everywhere
@pytest.mark.requirement("COMPL-06")
async def test_prompts_and_templates_are_completed_by_functions_of_every_kind(carrier, revision):
    async with speaking(carrier, revision, server="library") as peer:
        assert (await complete(peer, prompt("travel"), "country", "G"))["values"] == ["Germany"]  # in a thread
        assert (await complete(peer, template("library://books/{id}"), "id", ""))["values"] == ["1", "2", "3"]
        assert (await complete(peer, template("file:///folder/{+path}"), "path", "sub/"))["values"] == [
            "sub/b.json",
            "sub/raw",
        ]
        assert await complete(peer, prompt("travel"), "note", "x") == {"values": [], "total": 0, "hasMore": False}
        if revision >= "2025-06-18":  # before, nobody could say what is known already
            assert (await complete(peer, prompt("travel"), "city", "W", country="Austria"))["values"] == ["Wien"]
            assert (await complete(peer, prompt("travel"), "city", "W", country="Germany"))["values"] == ["Weimar"]
        assert (await complete(peer, prompt("travel"), "city", "W"))["values"] == []


@everywhere
@pytest.mark.requirement("COMPL-03", "COMPL-002", "COMPL-06")
async def test_a_hundred_go_out_and_the_rest_is_counted(carrier, revision):
    async with speaking(carrier, revision, server="library") as peer:
        told = await complete(peer, prompt("pick"), "many", "x")
        assert told == {"values": [f"x{number}" for number in range(100)], "total": 500, "hasMore": True}
        told = await complete(peer, prompt("pick"), "fetched", "y")
        assert (len(told["values"]), told["total"], told["hasMore"]) == (20, 7000, True)


@everywhere
@pytest.mark.requirement("COMPL-11", "COMPL-12")
async def test_the_nearest_come_first_and_near_is_enough(carrier, revision):
    async with speaking(carrier, revision, server="library") as peer:
        for typed, found in {
            "wie": ["Wien", "Wiener Neustadt", "Neuwied"],  # those that begin with it before those that hold it
            "neu": ["Neuwied", "Wiener Neustadt", "Klosterneuburg"],  # a word that begins with it comes between
            "wnstd": ["Wiener Neustadt"],  # its letters in their order
            "xyz": [],
        }.items():
            assert (await complete(peer, prompt("pick"), "town", typed))["values"] == found, typed


# --- what is refused ---


@everywhere
@pytest.mark.requirement("COMPL-08", "COMPL-16", "COMPL-004")
async def test_what_is_not_there_cannot_be_completed(carrier, revision):
    async with speaking(carrier, revision, server="library") as peer:
        assert await refused(peer, asking(prompt("none"), "country", "")) == -32602
        assert await refused(peer, asking(template("library://none/{id}"), "id", "")) == -32602
        assert await refused(peer, asking(template("library://plain"), "id", "")) == -32602
        assert await refused(peer, asking(prompt("travel"), "planet", "")) == -32602


@everywhere
@pytest.mark.requirement("COMPL-09", "COMPL-16", "COMPL-004")
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"ref": prompt("travel")},
        {"argument": {"name": "country", "value": ""}},
        {"ref": prompt("travel"), "argument": {"name": "country"}},
        {"ref": prompt("travel"), "argument": {"value": ""}},
        {"ref": prompt("travel"), "argument": {"name": 1, "value": ""}},
        {"ref": prompt("travel"), "argument": {"name": "country", "value": None}},
        {"ref": prompt("travel"), "argument": []},
        {"ref": {"type": "ref/prompt"}, "argument": {"name": "country", "value": ""}},
        {"ref": {"type": "ref/other", "name": "travel"}, "argument": {"name": "country", "value": ""}},
        {"ref": "travel", "argument": {"name": "country", "value": ""}},
        {"ref": prompt("travel"), "argument": {"name": "country", "value": "x" * 9000}},
    ],
    ids=range(12),
)
async def test_what_is_incomplete_or_of_another_type_is_refused(carrier, revision, params):
    async with speaking(carrier, revision, server="library") as peer:
        assert await refused(peer, params, judged=False) == -32602


@everywhere
@pytest.mark.requirement("COMPL-16")
async def test_only_what_is_known_of_the_prompt_is_handed_over(carrier, revision):
    if revision < "2025-06-18":
        return  # there is no context there, and what is sent all the same is not read
    async with speaking(carrier, revision, server="library") as peer:
        odd = asking(prompt("travel"), "city", "", country="Austria", planet="Earth")
        assert (await peer.result("completion/complete", odd))["completion"]["values"] == ["Wien", "Graz"]
        wrong = asking(prompt("travel"), "city", "", country=5)
        assert await refused(peer, wrong, judged=False) == -32602


@everywhere
@pytest.mark.requirement("COMPL-10", "COMPL-19", "COMPL-004")
@pytest.mark.parametrize("argument", ["failing", "garbage"])
async def test_a_failure_is_an_internal_error_that_tells_nothing(carrier, revision, argument):
    async with speaking(carrier, revision, server="library") as peer:
        error = await peer.error("completion/complete", asking(prompt("pick"), argument, "x"))
        assert error["code"] == -32603
        told = rf"The completion of {argument} failed unexpectedly \(reference [0-9a-f]{{8}}\)"
        assert re.fullmatch(told, error["message"]) and "secret" not in str(error)


@everywhere
@pytest.mark.requirement("COMPL-18", "COMPL-19")
async def test_who_may_not_see_it_gets_no_suggestion_of_it(carrier, revision):
    """A filter of the author's decides; what is private answers like what is not there."""
    async with speaking(carrier, revision, server="library") as peer:
        private = await peer.error("completion/complete", asking(template("private://notes/{id}"), "id", "s"))
        missing = await peer.error("completion/complete", asking(template("private://none/{id}"), "id", "s"))
        assert private == missing and private["code"] == -32602
        await peer.result("tools/call", {"name": "allow", "arguments": {}})
        found = await complete(peer, template("private://notes/{id}"), "id", "s")
        assert found["values"] == ["secret-1", "secret-2"]


# --- the client ---


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.requirement("COMPL-02")
async def test_a_client_of_the_first_revision_tries_and_takes_no_for_an_answer(carrier):
    revision = ALL[0]
    async with talking(carrier, revision) as (client, peer):
        asked = start(client.request("completion/complete", asking(prompt("p"), "a", "")))
        refuse(peer, await peer.expect("completion/complete"), -32601)
        with pytest.raises(Refused) as caught:
            await asked
        assert caught.value.code == -32601
