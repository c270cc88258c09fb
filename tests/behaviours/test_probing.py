"""Which era is there? Every outcome of the first question (modern.md §11), in memory and with real processes."""

from __future__ import annotations

import asyncio
import sys

import pytest

from interlock import Client
from interlock.protocol.client.probe import Verdicts
from interlock.revisions.table import REVISIONS
from interlock.wire.errors import (
    CallTimeout,
    CannotAsk,
    ConnectionEnded,
    HandshakeFailed,
    HeaderMismatch,
    InterlockError,
    NoCommonRevision,
    PeerClosed,
    UnsupportedVersion,
)
from support.children import client_of
from support.talking import discovery, greet, methods, refuse, reply, start, talking, text, welcome
from support.wire_peer import ALL, CARRIERS, HANDSHAKE, HERE, MODERN, VERSION_KEY, WAIT, client_under_test

NEWEST = MODERN[0]
LEGACY = HANDSHAKE[-1]
over_carriers = pytest.mark.parametrize("carrier", CARRIERS)


def probing(carrier, script, **options):
    """A client of both eras, not yet open. The transcript holds two revisions, so no schema judges it."""
    options.setdefault("probe_timeout", 20.0)
    options.setdefault("keepalive", None)
    return client_under_test(carrier, NEWEST, script, check=False, **options)


async def shake_hands(peer, revision=LEGACY):
    """The rest of a handshake server's opening; gives its `initialize`."""
    hello = await peer.expect("initialize")
    reply_as_legacy(peer, hello, welcome(revision))
    await peer.expect("notifications/initialized")
    return hello


def reply_as_legacy(peer, request, result):
    peer.send({"jsonrpc": "2.0", "id": request["id"], "result": result}, judged=False)


async def opens(carrier, script, **options):
    """Open against `script`; gives the revision found and what was said on each connection, once `script` ended."""
    played = asyncio.Event()

    async def play(peer):
        played.clear()
        await script(peer)
        played.set()

    async with probing(carrier, play, **options) as (client, peers):
        await client.open()
        async with asyncio.timeout(WAIT):
            await played.wait()
        return client.revision, [methods(peer) for peer in peers.all]


async def fails(carrier, script, error, **options):
    """Opening must fail with `error`; gives it and what was said on each connection."""
    async with probing(carrier, script, **options) as (client, peers):
        with pytest.raises(error) as told:
            await client.open()
        return told.value, [methods(peer) for peer in peers.all]


# --- a stateless server -------------------------------------------------------------------------------------


@pytest.mark.requirement("COMPAT-009", "COMPAT-010", "DISCOVER-005", "VERSION-001")
@over_carriers
async def test_the_first_word_is_discover_and_its_answer_settles_it(carrier):
    seen = []

    async def script(peer):
        seen.append(await greet(peer))
        call = await peer.expect("tools/call")
        seen.append(call)
        reply(peer, call, text("hi"))

    async with probing(carrier, script) as (client, peer):
        await client.open()
        assert (await client.call_tool("echo")).text == "hi"
        assert client.revision == NEWEST
        assert methods(peer) == ["server/discover", "tools/call"]
    assert [frame["params"]["_meta"][VERSION_KEY] for frame in seen] == [NEWEST, NEWEST]


@pytest.mark.requirement("COMPAT-010", "DISCOVER-005", "VERSION-008")
@over_carriers
@pytest.mark.parametrize(
    "listed", [[NEWEST, LEGACY], [LEGACY, NEWEST], ["2099-01-01", NEWEST], [5, None, {}, NEWEST]], ids=repr
)
async def test_a_common_version_is_found_wherever_it_stands(carrier, listed):
    async def script(peer):
        reply(peer, await peer.receive(), discovery(NEWEST, supportedVersions=listed), judged=False)

    assert await opens(carrier, script) == (NEWEST, [["server/discover"]])


@pytest.mark.requirement("COMPAT-006", "VERSION-005")
@over_carriers
async def test_a_refused_version_is_tried_again_with_one_of_the_list(carrier, monkeypatch):
    """Only one stateless revision exists, so a later one is added for this test."""
    monkeypatch.setitem(REVISIONS, "2099-01-01", REVISIONS[NEWEST].evolve("2099-01-01"))
    asked = []

    async def script(peer):
        for _ in range(2):
            hello = await peer.receive()
            asked.append(hello["params"]["_meta"][VERSION_KEY])
            if asked[-1] == NEWEST:
                reply(peer, hello, discovery(NEWEST))
            else:
                data = {"supported": [LEGACY, NEWEST], "requested": asked[-1]}
                refuse(peer, hello, -32022, "Unsupported protocol version", data)

    assert await opens(carrier, script) == (NEWEST, [["server/discover", "server/discover"]])
    assert asked == ["2099-01-01", NEWEST]


@pytest.mark.requirement("COMPAT-006", "VERSION-005")
@over_carriers
async def test_it_is_tried_again_once_and_not_for_ever(carrier, monkeypatch):
    monkeypatch.setitem(REVISIONS, "2099-01-01", REVISIONS[NEWEST].evolve("2099-01-01"))

    async def script(peer):
        while True:
            hello = await peer.receive()
            refuse(peer, hello, -32022, "no", {"supported": ["2099-01-01", NEWEST], "requested": "x"})

    _, said = await fails(carrier, script, (NoCommonRevision, UnsupportedVersion))
    assert len(said) == 1
    assert set(said[0]) == {"server/discover"}
    assert len(said[0]) <= 2


@pytest.mark.requirement("COMPAT-006", "VERSION-005", "ERR-005")
@over_carriers
@pytest.mark.parametrize(
    "data",
    [
        {"supported": ["2099-01-01"], "requested": NEWEST},
        {"supported": [NEWEST], "requested": NEWEST},
        {"supported": [], "requested": NEWEST},
        {"supported": "2025-11-25"},
        {"supported": {"2025-11-25": 1}},
        {"supported": [None, 5, {}, []]},
        {},
        [],
        "x",
        None,
    ],
    ids=repr,
)
async def test_a_refused_version_without_another_is_an_error_and_no_ground_for_initialize(carrier, data):
    async def script(peer):
        refuse(peer, await peer.receive(), -32022, "no", data, judged=False)

    error, said = await fails(carrier, script, (NoCommonRevision, UnsupportedVersion))
    assert NEWEST in str(error)  # says what would be needed
    assert said == [["server/discover"]]


@pytest.mark.requirement("COMPAT-006", "ERR-005")
@over_carriers
@pytest.mark.parametrize(("code", "kind"), [(-32020, HeaderMismatch), (-32021, CannotAsk)])
async def test_the_other_stateless_errors_are_proof_too(carrier, code, kind):
    async def script(peer):
        refuse(peer, await peer.receive(), code, "no", {"requiredCapabilities": {}})

    error, said = await fails(carrier, script, HandshakeFailed)
    assert type(error.__cause__) is kind and error.__cause__.code == code
    assert said == [["server/discover"]]


@pytest.mark.requirement("COMPAT-006")
@over_carriers
async def test_once_stateless_no_error_leads_to_initialize(carrier):
    async with talking(carrier, NEWEST, revision=ALL) as (client, peer):
        for code in (-32601, -32602, -32600, -32022, -32603):
            call = start(client.call_tool("echo"))
            refuse(peer, await peer.expect("tools/call"), code, "no", {"supported": [LEGACY], "requested": NEWEST})
            with pytest.raises(InterlockError):
                await call
        assert set(methods(peer)) == {"server/discover", "tools/call"}


# --- a server with a handshake ------------------------------------------------------------------------------


@pytest.mark.requirement("COMPAT-011", "COMPAT-012")
@over_carriers
@pytest.mark.parametrize(
    "code", [-32601, -32602, -32600, -32700, -32603, -32000, -32001, -32002, -32042, -32099, -1, 0, 404]
)
async def test_any_other_error_means_handshake(carrier, code):
    hellos = []

    async def script(peer):
        refuse(peer, await peer.receive(), code, judged=False)
        hellos.append(await shake_hands(peer))

    found = await opens(carrier, script)
    assert found == (LEGACY, [["server/discover", "initialize", "notifications/initialized"]])
    assert hellos[0]["params"]["protocolVersion"] == LEGACY
    assert "_meta" not in hellos[0]["params"]  # an envelope would make it a stateless request


@pytest.mark.requirement("COMPAT-011", "RESULT-006")
@over_carriers
@pytest.mark.parametrize(
    "result",
    [
        {},
        {"tools": []},
        {"supportedVersions": None},
        {"supportedVersions": NEWEST},
        {"supportedVersions": {NEWEST: 1}},
        {"protocolVersion": NEWEST, "capabilities": {}},
        [],
        None,
        "ok",
        0,
    ],
    ids=repr,
)
async def test_an_answer_that_is_no_discovery_means_handshake(carrier, result):
    async def script(peer):
        hello = await peer.receive()
        peer.send({"jsonrpc": "2.0", "id": hello["id"], "result": result}, judged=False)
        await shake_hands(peer)

    found = await opens(carrier, script)
    assert found == (LEGACY, [["server/discover", "initialize", "notifications/initialized"]])


@pytest.mark.requirement("RESULT-006")
@over_carriers
async def test_a_discovery_of_an_unknown_kind_is_not_believed(carrier):
    """An unknown resultType makes the whole response invalid, that of discover too."""

    async def script(peer):
        reply(peer, await peer.receive(), {**discovery(NEWEST), "resultType": "x"}, judged=False)
        refuse(peer, await peer.expect("initialize"), -32601, judged=False)

    async with probing(carrier, script) as (client, _):
        with pytest.raises(InterlockError):
            await client.open()


@pytest.mark.requirement("COMPAT-011")
@over_carriers
@pytest.mark.parametrize(
    "line",
    [
        b"Starting server...",
        b"{",
        b"[]",
        b"null",
        b'{"jsonrpc":"2.0"}',
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}',
        b'{"jsonrpc":"2.0","error":{"code":-32601,"message":"no"}}',
        b'{"jsonrpc":"2.0","id":1}',
        b'{"jsonrpc":"1.0","id":1,"result":{"supportedVersions":["2026-07-28"]}}',
        b'{"jsonrpc":"2.0","id":"1","error":{"code":-32601,"message":"no"}}',
        b"\xff\xfe\x00",
    ],
    ids=repr,
)
async def test_nonsense_means_handshake(carrier, line):
    async def script(peer):
        await peer.receive()
        peer.channel.send(line)
        await shake_hands(peer)

    found = await opens(carrier, script, probe_timeout=0.1)
    assert found == (LEGACY, [["server/discover", "initialize", "notifications/initialized"]])


@pytest.mark.requirement("COMPAT-011")
@over_carriers
@pytest.mark.parametrize("late", ["nothing", "an error"])
async def test_silence_means_handshake_and_a_late_refusal_changes_nothing(carrier, late):
    async def script(peer):
        first = await peer.receive()
        hello = await peer.expect("initialize")
        if late == "an error":
            refuse(peer, first, -32601)
        reply_as_legacy(peer, hello, welcome(LEGACY))
        await peer.expect("notifications/initialized")
        reply_as_legacy(peer, await peer.expect("tools/call"), text("hi"))

    async with probing(carrier, script, probe_timeout=0.1) as (client, peer):
        await client.open()
        assert client.revision == LEGACY
        assert (await client.call_tool("echo")).text == "hi"
        assert methods(peer) == ["server/discover", "initialize", "notifications/initialized", "tools/call"]


@pytest.mark.requirement("COMPAT-006")
@over_carriers
@pytest.mark.parametrize("both", [True, False])
async def test_a_discovery_that_comes_late_counts(carrier, both):
    async def script(peer):
        first = await peer.receive()
        hello = await peer.expect("initialize")
        reply(peer, first, discovery(NEWEST))
        if both:
            reply_as_legacy(peer, hello, welcome(LEGACY))

    async with probing(carrier, script, probe_timeout=0.1) as (client, peer):
        await client.open()
        assert client.revision == NEWEST
        assert methods(peer)[:2] == ["server/discover", "initialize"]


@pytest.mark.requirement("COMPAT-011")
@over_carriers
async def test_what_a_server_says_before_its_answer_is_heard(carrier):
    heard = []

    async def script(peer):
        hello = await peer.receive()
        peer.notify("notifications/message", {"level": "info", "data": "starting"}, judged=False)
        refuse(peer, hello, -32601)
        await shake_hands(peer)

    await opens(carrier, script, on_notification=lambda method, _: heard.append(method))
    assert heard == ["notifications/message"]


@pytest.mark.requirement("COMPAT-024", "COMPAT-010")
@over_carriers
@pytest.mark.parametrize("how", ["discovery", "-32022"])
@pytest.mark.parametrize("listed", [[LEGACY], list(HANDSHAKE), ["2099-01-01", HANDSHAKE[0]]], ids=repr)
async def test_a_list_of_handshake_revisions_alone_leads_to_initialize(carrier, how, listed):
    async def script(peer):
        hello = await peer.receive()
        if how == "discovery":
            reply(peer, hello, discovery(NEWEST, supportedVersions=listed))
        else:
            refuse(peer, hello, -32022, "no", {"supported": listed, "requested": NEWEST})
        await shake_hands(peer, max(name for name in listed if name in HANDSHAKE))

    revision, said = await opens(carrier, script)
    assert revision in listed
    assert said == [["server/discover", "initialize", "notifications/initialized"]]


@pytest.mark.requirement("COMPAT-024", "DISCOVER-005")
@over_carriers
@pytest.mark.parametrize("listed", [[], ["2099-01-01"], [5, None]], ids=repr)
async def test_a_list_with_nothing_in_common_is_reported(carrier, listed):
    async def script(peer):
        reply(peer, await peer.receive(), discovery(NEWEST, supportedVersions=listed), judged=False)

    error, said = await fails(carrier, script, NoCommonRevision)
    assert NEWEST in str(error)
    assert said == [["server/discover"]]


# --- a server that leaves -----------------------------------------------------------------------------------


@pytest.mark.requirement("COMPAT-011")
@over_carriers
async def test_a_server_that_leaves_at_the_first_word_is_started_again(carrier):
    starts = []

    async def script(peer):
        starts.append(peer)
        if len(starts) == 1:
            await peer.receive()
            await peer.channel.close()
        else:
            await shake_hands(peer)

    revision, said = await opens(carrier, script)
    assert revision == LEGACY
    assert said == [["server/discover"], ["initialize", "notifications/initialized"]]


@pytest.mark.requirement("COMPAT-011")
@pytest.mark.parametrize("code", [0, 1, 101])
async def test_a_process_that_exits_on_what_it_does_not_know_is_started_again(tmp_path, code):
    """As servers of at least one SDK do: the first message has to be `initialize`."""
    body = f"""
    def strict(request):
        if request["method"] == "server/discover":
            sys.exit({code})
        answer(request)

    serve(strict)
    """
    async with client_of(tmp_path, body, revision=None) as client:
        assert client.revision == LEGACY
        assert (await client.call_tool("echo", {"text": "hi"})).text == "hi"


@pytest.mark.requirement("COMPAT-011")
async def test_a_process_that_refuses_first_and_exits_then_is_started_again(tmp_path):
    """It answers the unknown message with an error and gives up on the conversation: respawn where needed."""
    body = """
    def strict(request):
        if request["method"] == "server/discover":
            error(request, -32600, "initialize first")
            os.read(0, 65536)
            sys.exit(1)
        answer(request)

    serve(strict)
    """
    async with client_of(tmp_path, body, revision=None) as client:
        assert client.revision == LEGACY


@pytest.mark.requirement("COMPAT-011")
async def test_a_process_that_exits_whatever_is_said_is_reported_with_its_last_words(tmp_path):
    body = """
    # no loop
    sys.stderr.write("no licence found")
    sys.exit(3)
    """
    client = client_of(tmp_path, body, revision=None)
    with pytest.raises(PeerClosed) as told:
        await client.open()
    assert told.value.exit_code == 3
    assert "no licence found" in str(told.value)
    await client.close()


# --- a stateless server that is slow to start ---------------------------------------------------------------


async def refuse_to_shake_hands(peer):
    hello = await peer.expect("initialize")
    refuse(peer, hello, -32022, "no handshake here", {"supported": [NEWEST], "requested": LEGACY}, judged=False)


@pytest.mark.requirement("COMPAT-006", "VERSION-005")
@over_carriers
async def test_a_slow_stateless_server_is_known_by_its_refusal(carrier):
    """The probe was given up too early; what it says to `initialize` is proof of its era."""

    async def script(peer):
        await peer.receive()  # and no answer in time
        await refuse_to_shake_hands(peer)
        reply(peer, await peer.expect("server/discover"), discovery(NEWEST))

    revision, said = await opens(carrier, script, probe_timeout=0.1)
    assert revision == NEWEST
    assert said == [["server/discover", "initialize", "server/discover"]]


@pytest.mark.requirement("COMPAT-006")
@over_carriers
@pytest.mark.parametrize("first", ["silent", "leaves"])
async def test_a_server_that_contradicts_itself_is_left_with_a_plain_error(carrier, first):
    """No handshake, and no discovery either: an error of ours, and no connection stays."""

    async def script(peer):
        if first == "silent" or len(peers.all) == 1:
            await peer.receive()
        if first == "leaves" and len(peers.all) == 1:
            await peer.channel.close()
            return
        await refuse_to_shake_hands(peer)
        refuse(peer, await peer.expect("server/discover"), -32601)

    async with probing(carrier, script, probe_timeout=0.1 if first == "silent" else 20) as (client, peers):
        with pytest.raises(InterlockError):
            await client.open()
        for peer in peers.all:
            async with asyncio.timeout(WAIT):
                await peer.ended_event.wait()


# --- clients of one era -------------------------------------------------------------------------------------


@pytest.mark.requirement("COMPAT-013")
@over_carriers
@pytest.mark.parametrize("server", ["refuses", "silent", "leaves", "lists only others"])
async def test_a_stateless_client_says_plainly_that_the_server_is_too_old(carrier, server):
    async def script(peer):
        hello = await peer.receive()
        if server == "refuses":
            refuse(peer, hello, -32601)
        elif server == "leaves":
            await peer.channel.close()
        elif server == "lists only others":
            refuse(peer, hello, -32022, "no", {"supported": list(HANDSHAKE), "requested": NEWEST})

    patience = 0.2 if server == "silent" else 20  # there is nothing to fall back to, so all of it is waited for
    kinds = {"silent": CallTimeout, "leaves": ConnectionEnded}.get(server, NoCommonRevision)  # no answer tells nothing
    error, said = await fails(carrier, script, kinds, revision=NEWEST, connect_timeout=patience)
    assert NEWEST in str(error) or not isinstance(error, NoCommonRevision)
    assert said == [["server/discover"]]


@pytest.mark.requirement("LIFE-01", "LIFE-02")
@over_carriers
@pytest.mark.parametrize("pinned", [*HANDSHAKE, HANDSHAKE], ids=str)
async def test_a_handshake_client_does_not_probe(carrier, pinned):
    async def script(peer):
        await shake_hands(peer, pinned if isinstance(pinned, str) else LEGACY)

    _, said = await opens(carrier, script, revision=pinned)
    assert said == [["initialize", "notifications/initialized"]]


@pytest.mark.requirement("VERSION-008", "LIFE-32")
@pytest.mark.parametrize("pinned", [None, *ALL], ids=str)
async def test_our_own_server_is_found_in_every_revision(pinned):
    command = [sys.executable, "-m", "interlock", "run", str(HERE / "servers" / "basic.py")]
    async with Client(command, revision=pinned, verdicts=Verdicts()) as client:
        assert client.revision == (pinned or NEWEST)
        assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"
        assert client.server_info.name == "basic"


# --- giving up ----------------------------------------------------------------------------------------------


@over_carriers
async def test_who_gives_up_during_the_probe_leaves_nothing_behind(carrier):
    asked = asyncio.Event()

    async def script(peer):
        await peer.receive()
        asked.set()

    async with probing(carrier, script) as (client, peer):
        opening = start(client.open())
        await asked.wait()
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        async with asyncio.timeout(20):
            await peer.ended_event.wait()
        assert methods(peer) == ["server/discover"]
