"""How a client of ours opens and ends a conversation with a server that has a handshake."""

from __future__ import annotations

import asyncio

import pytest

from interlock import Client
from interlock.wire.errors import (
    BadResult,
    HandshakeFailed,
    LocalError,
    NoCommonRevision,
    NotOpen,
    Refused,
    RemoteError,
)
from support.talking import discovery, greet, methods, refuse, reply, settled, start, talking, text, turns, welcome
from support.wire_peer import ALL, CARRIERS, HANDSHAKE, MODERN, WAIT, client_under_test

over_handshake = pytest.mark.parametrize("revision", HANDSHAKE)
over_all = pytest.mark.parametrize("revision", ALL)
over_carriers = pytest.mark.parametrize("carrier", CARRIERS)

# Client capabilities by revision (CAP-10); `extensions` is legal as an unknown key before it was named.
KNOWN_CAPABILITIES = {
    "2024-11-05": {"experimental", "roots", "sampling"},
    "2025-03-26": {"experimental", "roots", "sampling"},
    "2025-06-18": {"experimental", "roots", "sampling", "elicitation"},
    "2025-11-25": {"experimental", "roots", "sampling", "elicitation", "extensions"},
}


def decline(_: dict) -> dict:
    return {"action": "decline"}


def sample(_: dict) -> dict:
    return {"role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "none"}


FULL = {
    "elicit": decline,
    "sample": sample,
    "roots": ["file:///home/ada"],
    "experimental": {"com.example/new": {"on": True}},
    "extensions": {"com.example/extra": {"level": 1}},
}


async def refused_opening(carrier, revision, script, error, /, **options):
    """Open a client against `script`, which must fail with `error`; gives the raw server after it was left alone."""
    options.setdefault("revision", revision)
    async with client_under_test(carrier, revision, script, check=False, **options) as (client, peers):
        with pytest.raises(error) as told:
            await client.open()
        with pytest.raises(NotOpen):
            _ = client.revision
        for peer in peers.all:
            async with asyncio.timeout(WAIT):
                await peer.ended_event.wait()
        return peers.all[-1], told.value


# --- the opening --------------------------------------------------------------------------------------------


@pytest.mark.requirement(
    "LIFE-01", "LIFE-02", "LIFE-04", "LIFE-08", "SCH-03", "BASE-15", "TRANS-STDIO-01", "TRANS-STDIO-02"
)
@over_carriers
@over_handshake
async def test_it_introduces_itself_and_then_says_that_it_is_ready(carrier, revision):
    async with talking(carrier, revision, name="ada", version="7") as (client, peer):
        hello, ready = peer.transcript.frames("client")
        assert hello["method"] == "initialize"
        assert hello["params"]["protocolVersion"] == revision
        assert hello["params"]["capabilities"] == {}
        assert hello["params"]["clientInfo"] == {"name": "ada", "version": "7"}
        assert ready == {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert client.revision == revision


@pytest.mark.requirement("LIFE-05")
@over_carriers
@over_handshake
async def test_calls_made_early_wait_for_the_end_of_the_opening(carrier, revision):
    """Before the answer to `initialize` nothing but a ping may be sent."""
    asked, go = asyncio.Event(), asyncio.Event()

    async def script(peer):
        hello = await peer.receive()
        asked.set()
        await go.wait()
        assert peer.inbox.empty()
        reply(peer, hello, welcome(revision))
        call = await peer.expect("tools/call")
        reply(peer, call, text("served"))

    async with client_under_test(carrier, revision, script, revision=revision) as (client, peer):
        opening = start(client.open())
        await asked.wait()
        call = start(client.call_tool("early"))
        await turns()
        go.set()
        assert (await call).text == "served"
        await opening
        assert methods(peer) == ["initialize", "notifications/initialized", "tools/call"]


@pytest.mark.requirement("LIFE-07", "BASE-01", "BASE-18", "BASE-20", "TRANS-STDIO-05")
@over_carriers
@over_handshake
async def test_every_message_of_the_opening_stands_alone(carrier, revision):
    """No array, least of all around `initialize` (2025-03-26 basic/lifecycle)."""
    async with talking(carrier, revision) as (_, peer):
        assert [raw[:1] for raw in peer.raw] == [b"{", b"{"]
        assert all(b"\n" not in raw for raw in peer.raw)


@pytest.mark.requirement("LIFE-08", "LIFE-09", "LIFE-32")
@over_carriers
@pytest.mark.parametrize(
    "offered", [HANDSHAKE[:1], HANDSHAKE[:2], HANDSHAKE[1:3], HANDSHAKE[::-1], (HANDSHAKE[0], HANDSHAKE[2])]
)
async def test_it_offers_the_newest_revision_it_has(carrier, offered):
    newest = max(offered)
    async with talking(carrier, newest, revision=offered) as (client, peer):
        assert peer.transcript.frames("client")[0]["params"]["protocolVersion"] == newest
        assert client.revision == newest


@pytest.mark.requirement("LIFE-15", "LIFE-31", "LIFE-32")
@over_carriers
@over_handshake
async def test_it_takes_the_older_revision_that_the_server_names(carrier, revision):
    """From then on everything is that revision's: the transcript is judged by its schema."""
    async with talking(carrier, revision, revision=HANDSHAKE, title="Ada", **FULL) as (client, peer):
        assert peer.transcript.frames("client")[0]["params"]["protocolVersion"] == HANDSHAKE[-1]
        assert client.revision == revision
        call = start(client.call_tool("echo"))
        reply(peer, await peer.expect("tools/call"), text("hi"))
        assert (await call).text == "hi"
        answer = await peer.request(
            "elicitation/create",
            {"message": "?", "requestedSchema": {"type": "object", "properties": {}}},
            judged=False,
        )
        # A question this revision does not have is unknown, whatever was offered at first.
        known = "elicitation" in KNOWN_CAPABILITIES[revision]
        assert ("result" in answer) is known


@pytest.mark.requirement("LIFE-13", "LIFE-29")
@over_carriers
@over_handshake
@pytest.mark.parametrize("named", ["1999-12-31", "2099-01-01", "latest", ""])
async def test_it_leaves_when_the_server_names_an_unknown_revision(carrier, revision, named):
    async def script(peer):
        reply(peer, await peer.receive(), welcome(revision, protocolVersion=named))

    peer, error = await refused_opening(carrier, revision, script, NoCommonRevision)
    assert methods(peer) == ["initialize"]
    assert error.offered == (named,)


@pytest.mark.requirement("LIFE-13", "LIFE-15")
@over_carriers
@over_handshake
async def test_it_leaves_when_the_server_names_a_revision_that_was_not_offered(carrier, revision):
    other = next(name for name in HANDSHAKE if name != revision)

    async def script(peer):
        reply(peer, await peer.receive(), welcome(revision, protocolVersion=other))

    peer, _ = await refused_opening(carrier, revision, script, NoCommonRevision)
    assert methods(peer) == ["initialize"]


@pytest.mark.requirement("LIFE-13", "LIFE-31")
@over_carriers
async def test_a_handshake_never_leads_to_a_revision_without_one(carrier):
    """`initialize` answered with the stateless revision: there is no such session (modern.md §11)."""

    async def script(peer):
        refuse(peer, await peer.expect("server/discover"), -32601)
        reply(peer, await peer.expect("initialize"), welcome(HANDSHAKE[-1], protocolVersion=MODERN[0]))

    peer, _ = await refused_opening(carrier, HANDSHAKE[-1], script, NoCommonRevision, revision=ALL)
    assert methods(peer) == ["server/discover", "initialize"]


@pytest.mark.requirement("LIFE-31")
@over_carriers
@over_handshake
@pytest.mark.parametrize("named", [20250618, None, ["2025-06-18"], {}], ids=repr)
async def test_a_version_that_is_no_string_ends_the_opening(carrier, revision, named):
    async def script(peer):
        reply(peer, await peer.receive(), welcome(revision, protocolVersion=named), judged=False)

    peer, error = await refused_opening(carrier, revision, script, HandshakeFailed)
    assert isinstance(error.__cause__, BadResult)
    assert methods(peer) == ["initialize"]


@pytest.mark.requirement("LIFE-29")
@over_carriers
@over_handshake
async def test_a_refused_initialize_is_told_as_it_came(carrier, revision):
    async def script(peer):
        refuse(peer, await peer.receive(), -32602, "Unsupported protocol version", {"supported": ["1999-01-01"]})

    peer, error = await refused_opening(carrier, revision, script, HandshakeFailed)
    assert isinstance(error.__cause__, Refused)
    assert error.__cause__.code == -32602
    assert error.__cause__.data == {"supported": ["1999-01-01"]}
    assert methods(peer) == ["initialize"]


@pytest.mark.requirement("BASE-26", "LIFE-29")
@over_carriers
@over_handshake
@pytest.mark.parametrize("result", [[], None, "welcome", 1, {}], ids=repr)
async def test_an_answer_to_initialize_that_is_none_ends_the_opening(carrier, revision, result):
    async def script(peer):
        hello = await peer.receive()
        peer.send({"jsonrpc": "2.0", "id": hello["id"], "result": result}, judged=False)

    peer, _ = await refused_opening(carrier, revision, script, RemoteError)
    assert methods(peer) == ["initialize"]


@pytest.mark.requirement("PING-01", "PING-02")
@over_carriers
@over_handshake
async def test_a_ping_is_answered_before_initialize_is(carrier, revision):
    """Either side may ping at any time, also while the opening is under way."""

    async def script(peer):
        hello = await peer.receive()
        answer = await peer.request("ping", id="early")
        assert answer == {"jsonrpc": "2.0", "id": "early", "result": {}}
        reply(peer, hello, welcome(revision))
        await peer.expect("notifications/initialized")

    async with client_under_test(carrier, revision, script, revision=revision, connect_timeout=20) as (client, _):
        await client.open()


@pytest.mark.requirement("LIFE-04", "CAP-02")
@over_carriers
@over_handshake
async def test_a_question_right_behind_initialized_is_answered(carrier, revision):
    """`initialized` says that normal work begins: a server may ask in the very same moment."""
    answered = asyncio.Event()

    async def script(peer):
        await greet(peer)
        answer = await peer.request("roots/list")
        assert answer["result"] == {"roots": [{"uri": "file:///home/ada"}]}
        answered.set()

    async with client_under_test(carrier, revision, script, revision=revision, roots=["file:///home/ada"]) as (
        client,
        _,
    ):
        await client.open()
        async with asyncio.timeout(20):
            await answered.wait()


# --- capabilities -------------------------------------------------------------------------------------------


@pytest.mark.requirement("CAP-07", "CAP-10", "CAP-13", "LIFE-15")
@over_carriers
@over_handshake
async def test_it_declares_what_it_has_and_the_revision_knows(carrier, revision):
    async with talking(carrier, revision, **FULL) as (_, peer):
        declared = peer.transcript.frames("client")[0]["params"]["capabilities"]
        assert declared.keys() == KNOWN_CAPABILITIES[revision]
        assert all(isinstance(value, dict) for value in declared.values())
        assert declared["experimental"] == {"com.example/new": {"on": True}}
        # Only forms can be filled in and only plain messages sampled: nothing finer is claimed.
        assert declared.get("elicitation", {}).keys() <= {"form"}
        assert declared["sampling"] == {}


@pytest.mark.requirement("CAP-10", "LIFE-16")
@over_carriers
@over_handshake
@pytest.mark.parametrize("only", ["elicit", "sample", "roots"])
async def test_it_declares_nothing_it_has_no_answer_for(carrier, revision, only):
    capability = {"elicit": "elicitation", "sample": "sampling", "roots": "roots"}[only]
    async with talking(carrier, revision, **{only: FULL[only]}) as (_, peer):
        declared = peer.transcript.frames("client")[0]["params"]["capabilities"]
        assert set(declared) == {capability} & KNOWN_CAPABILITIES[revision]


@pytest.mark.requirement("CAP-06")
@over_carriers
@over_handshake
@pytest.mark.parametrize("value", [True, "yes", []], ids=repr)
async def test_a_server_capability_that_is_no_object_ends_the_opening(carrier, revision, value):
    async def script(peer):
        reply(peer, await peer.receive(), welcome(revision, {"tools": value}), judged=False)

    peer, error = await refused_opening(carrier, revision, script, HandshakeFailed)
    assert isinstance(error.__cause__, BadResult)
    assert methods(peer) == ["initialize"]


@pytest.mark.requirement("CAP-06")
@over_carriers
@over_handshake
async def test_a_capability_that_is_null_is_one_that_is_not_there(carrier, revision):
    async with talking(carrier, revision, capabilities={"tools": None, "prompts": {}}, check=False) as (client, _):
        assert client.capabilities.can("prompts")
        assert not client.capabilities.can("tools")


@pytest.mark.requirement("CAP-06", "CAP-08", "CAP-11", "SCH-23")
@over_carriers
@over_handshake
async def test_empty_and_unknown_capabilities_are_legal(carrier, revision):
    odd = {
        "tools": {},
        "resources": {"templates": True},
        "x": True,
        "com.example/y": {"a": 1},
        "prompts": {"dynamic": 1},
    }
    async with talking(carrier, revision, capabilities=odd, check=False) as (client, _):
        assert client.capabilities.can("tools")
        assert client.capabilities.can("prompts")
        assert not client.capabilities.can("tools.listChanged")  # absent means no
        assert not client.capabilities.can("resources.subscribe")
        assert not client.capabilities.can("logging")


@pytest.mark.requirement("CAP-07", "CAP-08")
@over_carriers
@over_handshake
async def test_experimental_features_of_the_server_are_passed_on(carrier, revision):
    told = {"experimental": {"com.example/new": {"a": 1}}}
    async with talking(carrier, revision, capabilities=told) as (client, _):
        assert client.capabilities.experimental == {"com.example/new": {"a": 1}}


@pytest.mark.requirement("BASE-16")
@over_carriers
@over_all
async def test_a_server_without_any_feature_can_be_opened(carrier, revision):
    async with talking(carrier, revision, capabilities={}) as (client, peer):
        await settled(client, peer)


@pytest.mark.requirement("CAP-11", "LIFE-16")
@over_carriers
@over_all
async def test_it_tells_of_changed_roots_only_where_it_declared_to(carrier, revision):
    async with talking(carrier, revision, roots=["file:///home/ada"]) as (client, peer):
        await client.roots_changed()
        await settled(client, peer)
        hello = peer.transcript.frames("client")[0]["params"]
        declared = hello.get("capabilities", {}).get("roots", {}).get("listChanged") is True
        assert ("notifications/roots/list_changed" in methods(peer)) is declared


@pytest.mark.requirement("LIFE-16")
@over_carriers
@over_all
async def test_without_roots_it_never_speaks_of_them(carrier, revision):
    async with talking(carrier, revision) as (client, peer):
        await client.roots_changed()
        await settled(client, peer)
        assert "notifications/roots/list_changed" not in methods(peer)


# --- who is who ---------------------------------------------------------------------------------------------


@pytest.mark.requirement("SCH-01", "LIFE-15")
@over_carriers
@over_handshake
async def test_its_identity_has_the_members_the_revision_knows(carrier, revision):
    async with talking(carrier, revision, name="ada", version="7", title="Ada") as (_, peer):
        info = peer.transcript.frames("client")[0]["params"]["clientInfo"]
        plain = {"name": "ada", "version": "7"}
        assert info == (plain if revision < "2025-06-18" else {**plain, "title": "Ada"})


@pytest.mark.requirement("SCH-01")
@over_carriers
@over_all
async def test_what_the_server_says_about_itself_can_be_read(carrier, revision):
    async with talking(carrier, revision, members={"instructions": "Be kind."}) as (client, _):
        assert client.instructions == "Be kind."
        assert (client.server_info.name, client.server_info.version) == ("played", "1")


@pytest.mark.requirement("SCH-23", "DISCOVER-006")
@over_carriers
@over_all
@pytest.mark.parametrize("told", [None, [], "me", {"name": 5}, {"version": "1"}], ids=repr)
async def test_a_made_up_identity_changes_nothing(carrier, revision, told):
    """serverInfo is display data: a malformed one is shown as unknown and the work goes on."""
    if revision in HANDSHAKE:
        result = welcome(revision, serverInfo=told, instructions=5)
    else:
        result = discovery(revision, _meta={"io.modelcontextprotocol/serverInfo": told}, instructions=5)

    async def script(peer):
        reply(peer, await peer.receive(), result, judged=False)
        reply(peer, await peer.expect("tools/call"), text("hi"))

    async with client_under_test(carrier, revision, script, check=False, revision=revision) as (client, _):
        await client.open()
        assert client.server_info.name == "unknown"
        assert client.instructions is None
        assert (await client.call_tool("echo")).text == "hi"


# --- the end ------------------------------------------------------------------------------------------------


@pytest.mark.requirement("LIFE-17")
@over_carriers
@over_all
async def test_the_end_is_said_by_closing_and_by_nothing_else(carrier, revision):
    async with talking(carrier, revision) as (client, peer):
        before = len(peer.raw)
        await client.close()
        async with asyncio.timeout(WAIT):
            await peer.ended_event.wait()
        assert len(peer.raw) == before


@pytest.mark.requirement("LIFE-15")
@over_carriers
async def test_an_unknown_revision_is_refused_before_anything_starts(carrier):
    with pytest.raises(LocalError, match="2099-01-01"):
        Client(["true"], revision="2099-01-01")
    with pytest.raises(LocalError):
        Client(["true"], revision=())
