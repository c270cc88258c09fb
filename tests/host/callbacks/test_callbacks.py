"""One set of answers for each server."""

import pytest

from interlock import Client, Context, Server
from interlock.host.callbacks.callbacks import Questions
from interlock.host.models.scripted import ScriptedModel
from interlock.host.user import Absent, ScriptedUser
from support.open_gate import OpenGate


async def nobody(server):
    raise AssertionError("nothing changed")


def questions(gate=None, user=None, **more):
    return Questions(gate or OpenGate(), user or ScriptedUser(), changed=nobody, **more)


def test_what_there_is_nothing_for_is_not_claimed(tmp_path):
    bare = questions().for_server("a")
    assert "sample" not in bare
    rich = questions(models=[ScriptedModel()], roots={"a": [tmp_path]})
    assert "sample" in rich.for_server("a")


async def test_roots_are_claimed_while_there_are_none_and_asked_for_without_a_question():
    gate = OpenGate()
    assert await questions(gate).for_server("a")["roots"]() == []
    assert gate.deeds == []


def test_where_nobody_is_there_no_server_is_told_that_it_can_ask():
    alone = questions(user=Absent()).for_server("a")
    assert "elicit" not in alone and "elicit_url" not in alone
    assert {"elicit", "elicit_url"} <= questions().for_server("a").keys()


def test_what_a_server_used_up_stays_used_up():
    found = questions(models=[ScriptedModel()])
    found.for_server("a")["sample"].used = 7
    assert found.for_server("a")["sample"].used == 7
    assert found.for_server("b")["sample"].used == 0
    one, again, other = (found.for_server(name)["elicit"].__self__ for name in ("a", "a", "b"))
    assert one is again is not other, "nor does it get new questions by ending and coming back"


@pytest.mark.parametrize("decision, told", [("allow", 1), ("deny", 0)])
async def test_roots_go_through_the_gate(tmp_path, decision, told):
    gate = OpenGate(roots=decision)
    found = questions(gate, roots=[tmp_path])
    roots = await found.for_server("a")["roots"]()
    assert len(roots) == told
    uri = tmp_path.resolve().as_uri()
    assert [(deed.kind, deed.server, deed.arguments) for deed in gate.deeds] == [
        ("roots", "a", {"roots": [{"uri": uri}]})
    ]
    await found.close()


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_client_takes_all_of_them(tmp_path, revision):
    server = Server("notes")

    @server.tool
    async def look(ctx: Context) -> str:
        return f"{len(await ctx.roots())} {ctx.client.can('sampling.tools')} {ctx.client.can('elicitation.url')}"

    found = questions(roots=[tmp_path], models=[ScriptedModel()])
    async with Client(server, revision=revision, **found.for_server("notes")) as client:
        assert (await client.call_tool("look")).text == "1 True True"
    await found.close()
