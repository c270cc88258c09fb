"""client/supervisor.py: a connection that is watched, brought back, and made what it was."""

import asyncio
import contextlib
import logging
import os
import signal

import pytest

from interlock import Client, Keepalive, OutcomeUnknown, Patience, Supervision
from interlock.wire.errors import (
    CallTimeout,
    ConnectionClosed,
    ConnectionLost,
    HttpStatus,
    LocalError,
    NotOpen,
    PeerClosed,
    SpawnFailed,
)
from support.children import client_of
from support.doubles import Channel, turns
from support.http_handshake import handshake
from support.http_peer import HttpPeer, chunk, chunked, event, http, notice, result, server
from support.mortal import Mortal
from support.virtual_time import virtual_time

QUIET = Supervision(ping_every=None)


class States:
    """Hears of every change."""

    def __init__(self):
        self.changes = []

    def __call__(self, change):
        self.changes.append(change)

    @property
    def names(self):
        return [change.state for change in self.changes if change.state != change.before]

    @property
    def pauses(self):
        return [change.pause for change in self.changes if change.attempt]


async def until(holds, seconds=20):
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.005 if seconds == 20 else 0.1)


# --- states ---


@virtual_time
async def test_the_states_of_a_life():
    mortal, states = Mortal(), States()
    client = mortal.client(supervise=QUIET, on_state=states)
    assert client.state == "connecting"
    async with client:
        assert client.state == "ready"
        mortal.die()
        assert client.state == "recovering"
        assert isinstance(states.changes[-1].cause, PeerClosed)
        await until(lambda: client.state == "ready")
        assert (await client.call_tool("x")).text == "2"
    assert client.state == "closed"
    assert states.names == ["ready", "recovering", "ready", "closed"]


@virtual_time
async def test_without_supervision_nothing_happens_by_itself():
    mortal = Mortal()
    async with mortal.client(keepalive=None) as client:
        assert client.state is None
        mortal.die()
        await asyncio.sleep(1000)
        assert mortal.made == 1
        assert (await client.call_tool("x")).text == "2"


@virtual_time
async def test_opening_that_fails_is_left_to_the_caller():
    mortal = Mortal()
    mortal.refused = 1
    client = mortal.client(supervise=True)
    with pytest.raises(ConnectionLost, match="nobody there"):
        await client.open()
    assert client.state == "connecting"
    with pytest.raises(NotOpen):
        await client.list_tools()
    await client.open()
    assert client.state == "ready"
    await client.close()
    with pytest.raises(NotOpen):
        await client.list_tools()


@virtual_time
async def test_a_listener_that_fails_harms_nobody(caplog):
    mortal = Mortal()
    with caplog.at_level(logging.ERROR):
        async with mortal.client(supervise=True, on_state=lambda change: 1 / 0) as client:
            await client.list_tools()
    assert "on_state failed" in caplog.text


def test_a_listener_is_a_plain_function():
    async def hear(change): ...

    with pytest.raises(LocalError, match="plain function"):
        Mortal().client(supervise=True, on_state=hear)


# --- calls that were under way ---


async def lost_under(client, mortal, call, **channel):
    """A call whose connection dies, how it ends, and whether it was said again."""
    mortal.silent = {"tools/call", "tools/list"}
    task = asyncio.ensure_future(call)
    await turns(10)
    mortal.silent = set()
    mortal.die()
    return (await asyncio.gather(task, return_exceptions=True))[0]


@virtual_time
async def test_what_only_reads_is_said_again():
    mortal = Mortal()
    async with mortal.client(supervise=QUIET) as client:
        assert await lost_under(client, mortal, client.list_tools()) == []
        assert mortal.methods(2) == ["initialize", "notifications/initialized", "tools/list"]


@virtual_time
async def test_what_may_have_had_an_effect_is_not():
    mortal = Mortal()
    async with mortal.client(supervise=QUIET) as client:
        outcome = await lost_under(client, mortal, client.call_tool("x"))
        assert isinstance(outcome, OutcomeUnknown)
        assert isinstance(outcome.__cause__, PeerClosed) and outcome.__cause__.exit_code == -9
        assert "last words" in str(outcome)
        await until(lambda: client.state == "ready")
        assert "tools/call" not in mortal.methods(2)


@pytest.mark.parametrize(("delivered", "repeated"), [(5, True), (11, False)])
@virtual_time
async def test_what_provably_did_not_leave_is_said_again(delivered, repeated):
    mortal = Mortal()
    async with mortal.client(supervise=QUIET) as client:
        mortal.channel.positions, mortal.channel.delivered = [10], delivered
        outcome = await lost_under(client, mortal, client.call_tool("x"))
        assert outcome.text == "2" if repeated else outcome.sent is True


@pytest.mark.parametrize(
    ("rules", "repeated"), [({"idempotent": ("x",)}, True), ({"trust_hints": True}, True), ({}, False)]
)
@virtual_time
async def test_a_tool_that_may_run_twice(rules, repeated):
    mortal = Mortal()
    mortal.tools = [{"name": "x", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}]
    async with mortal.client(supervise=Supervision(ping_every=None, **rules)) as client:
        await client.list_tools()
        outcome = await lost_under(client, mortal, client.call_tool("x"))
        assert (not isinstance(outcome, OutcomeUnknown)) is repeated


@virtual_time
async def test_a_call_is_repeated_so_often_and_no_more():
    mortal = Mortal()
    async with mortal.client(supervise=Supervision(ping_every=None, retries=2)) as client:
        mortal.kills = {"tools/list"}
        with pytest.raises(PeerClosed):
            await client.list_tools()
        assert mortal.methods().count("tools/list") == 3


@virtual_time
async def test_a_call_waits_for_the_connection_as_long_as_it_may():
    mortal = Mortal()
    async with mortal.client(supervise=QUIET) as client:
        mortal.refused = 4
        mortal.die()
        with pytest.raises(CallTimeout) as told:
            await client.call_tool("x", timeout=0.1)
        assert told.value.which == "connect" and isinstance(told.value.__cause__, ConnectionLost)
        assert (await client.call_tool("x", timeout=Patience(idle=None, total=None))).text == "6"


@virtual_time
async def test_notifications_wait_too():
    mortal = Mortal()
    async with mortal.client(supervise=QUIET) as client:
        mortal.die()
        await client.notify("notifications/mine")
        assert mortal.methods(2)[-1] == "notifications/mine"


@virtual_time
async def test_closing_ends_what_waits():
    mortal = Mortal()
    client = mortal.client(supervise=QUIET)
    await client.open()
    mortal.refused = 100
    mortal.die()
    waiting = asyncio.ensure_future(client.call_tool("x"))
    await asyncio.sleep(1)
    await client.close()
    with pytest.raises(NotOpen):
        await waiting


# --- made what it was ---


@virtual_time
async def test_the_level_is_told_before_anybody_calls_and_lists_are_news():
    mortal, heard = Mortal(), []
    async with mortal.client(supervise=QUIET, on_notification=lambda *told: heard.append(told)) as client:
        await client.set_log_level("debug")
        mortal.die()
        await client.list_tools()
        assert mortal.methods(2) == ["initialize", "notifications/initialized", "logging/setLevel", "tools/list"]
        assert heard == [("notifications/tools/list_changed", {}), ("notifications/resources/list_changed", {})]


@virtual_time
async def test_who_listens_subscribes_again_once_and_what_was_closed_meanwhile_is_not_asked_for():
    mortal, changed = Mortal(), []
    async with mortal.client(supervise=QUIET, on_change=changed.append) as client:
        kept, closed = client.subscribe("a:1", "a:2"), client.subscribe("a:3")
        async with kept:
            async with closed:
                mortal.refused = 3
                mortal.die()
            assert {(await anext(kept)).uri for _ in range(2)} == {"a:1", "a:2"}  # they may have been missed
            said = [params["uri"] for number, method, params in mortal.heard if number > 1 and "subscribe" in method]
            assert sorted(said) == ["a:1", "a:2"]
            assert {change.uri for change in changed if change.kind == "resource"} == {"a:1", "a:2"}


@virtual_time
async def test_who_listens_waits_as_long_as_recovering_takes():
    mortal = Mortal()
    rules = Supervision(ping_every=None, first_pause=10.0, attempts=8)
    async with mortal.client(supervise=rules, timeout=1.0) as client, client.subscribe("a:1") as changes:
        mortal.refused = 5
        mortal.die()
        assert (await anext(changes)).uri == "a:1"


@virtual_time
async def test_a_connection_lost_while_it_is_restored_is_one_more_attempt():
    mortal = Mortal()
    async with mortal.client(supervise=QUIET) as client:
        await client.set_log_level("debug")
        mortal.kills = {"logging/setLevel"}
        mortal.die()
        await until(lambda: mortal.made == 3)
        mortal.kills = set()
        await until(lambda: client.state == "ready")
        assert mortal.made == 4


# --- attempts ---


@virtual_time
async def test_the_pauses_grow_and_are_shortened_by_chance():
    mortal, states = Mortal(), States()
    rules = Supervision(ping_every=None, first_pause=1.0, longest_pause=5.0)
    async with mortal.client(supervise=rules, on_state=states) as client:
        mortal.refused = 6
        mortal.die()
        await until(lambda: client.state == "ready", 60)
    assert states.pauses[0] == 0.0
    for pause, whole in zip(states.pauses[1:], (1, 2, 4, 5, 5, 5), strict=True):
        assert whole / 2 <= pause <= whole
    assert [change.attempt for change in states.changes if change.attempt] == [1, 2, 3, 4, 5, 6, 7]


@virtual_time
async def test_after_so_many_it_has_failed_until_somebody_opens_it():
    mortal, states = Mortal(), States()
    client = mortal.client(supervise=Supervision(ping_every=None, attempts=3), on_state=states)
    async with client:
        await client.set_log_level("debug")
        mortal.refused = 1000
        mortal.die()
        with pytest.raises(ConnectionLost, match=r"given up \(nobody there\)") as told:
            await client.call_tool("x")
        assert told.value.sent is False and client.state == "failed" and mortal.made == 4
        await asyncio.sleep(1000)
        with pytest.raises(ConnectionLost, match="given up"):
            await client.notify("notifications/x")
        assert mortal.made == 4
        mortal.refused = 0
        await client.open()
        assert (await client.call_tool("x")).text == "5"
        assert "logging/setLevel" in mortal.methods(5)
    assert states.names == ["ready", "recovering", "failed", "recovering", "ready", "closed"]


@virtual_time
async def test_who_opens_it_again_gets_all_attempts():
    mortal = Mortal()
    async with mortal.client(supervise=Supervision(ping_every=None, attempts=3, settled=1e6)) as client:
        mortal.refused = 3
        mortal.die()
        await until(lambda: client.state == "failed")
        await client.open()
        await until(lambda: client.state == "ready")
        mortal.refused = 2
        mortal.die()
        await until(lambda: client.state == "ready")


@virtual_time
async def test_the_end_of_another_connection_says_nothing():
    async with Mortal().client(supervise=QUIET) as client:
        client._supervisor.lost(ConnectionLost("one that was only tried"))
        assert client.state == "ready"


@virtual_time
async def test_a_call_that_lasts_outlives_more_connections_than_one_that_does_not():
    mortal = Mortal()
    rules = Supervision(ping_every=None, retries=1)
    async with mortal.client(supervise=rules, timeout=Patience(idle=None, total=None)) as client:
        mortal.silent = {"tools/list"}
        lasting = asyncio.ensure_future(client.list_tools())
        for _ in range(4):
            await asyncio.sleep(rules.settled + 1)
            mortal.die()
            await until(lambda: client.state == "ready")
        await asyncio.sleep(rules.settled + 1)
        mortal.silent = set()
        mortal.die()
        assert await lasting == []
    assert mortal.made == 6


@virtual_time
async def test_a_server_that_dies_again_and_again_is_given_up():
    mortal = Mortal()
    async with mortal.client(supervise=Supervision(ping_every=None, attempts=3)) as client:
        for _ in range(3):
            mortal.die()
            await until(lambda: client.state == "ready")
        mortal.die()
        await until(lambda: client.state == "failed")


@virtual_time
async def test_one_that_lasted_counts_from_the_beginning():
    mortal = Mortal()
    async with mortal.client(supervise=Supervision(ping_every=None, attempts=1)) as client:
        for _ in range(5):
            await asyncio.sleep(61)
            mortal.die()
            await until(lambda: client.state == "ready")


@virtual_time
async def test_what_cannot_get_better_fails_at_once():
    states, channels = States(), [Mortal()()]
    channel = channels[0]
    client = Client(channel, revision="2025-11-25", supervise=QUIET, on_state=states)
    async with client:
        channel.receiver.ended(PeerClosed("gone"))
        await until(lambda: client.state == "failed")
        with pytest.raises(ConnectionLost, match="used already"):
            await client.list_tools()
    assert len(states.pauses) == 1


@virtual_time
async def test_a_carrier_that_breaks_in_its_own_way_hangs_nobody(caplog):
    mortal = Mortal()
    made = []

    def make():
        if made:
            raise KeyError("mine")
        made.append(mortal())
        return made[0]

    with caplog.at_level(logging.ERROR):
        async with Client(make, revision="2025-11-25", supervise=QUIET) as client:
            mortal.die()
            with pytest.raises(ConnectionLost, match="supervision failed"):
                await client.list_tools()
    assert "supervision failed" in caplog.text


# --- pings ---


@virtual_time
async def test_a_quiet_server_is_pinged_and_a_deaf_one_replaced():
    mortal, states = Mortal(), States()
    async with mortal.client(supervise=True, on_state=states) as client:
        await asyncio.sleep(65)
        assert mortal.methods().count("ping") == 2 and states.names == ["ready"]
        mortal.silent = {"ping"}
        await until(lambda: client.state == "degraded", 500)
        assert isinstance(states.changes[-1].cause, CallTimeout)
        await until(lambda: mortal.made == 2, 500)
        mortal.silent = set()
        await until(lambda: client.state == "ready", 500)
    assert states.names == ["ready", "degraded", "recovering", "ready", "closed"]


@virtual_time
async def test_one_ping_lost_is_not_the_end():
    mortal, states = Mortal(), States()

    def hear(change):
        states(change)
        if change.state == "degraded":
            mortal.silent = set()

    async with mortal.client(supervise=True, on_state=hear):
        mortal.silent = {"ping"}
        await until(lambda: states.names == ["ready", "degraded", "ready"], 500)
        await asyncio.sleep(100)
        assert mortal.made == 1 and len(states.names) == 3


@virtual_time
async def test_a_lost_ping_is_followed_by_the_next_one_at_once():
    mortal = Mortal()
    rules = Supervision(ping_every=30.0, ping_timeout=10.0, losses=2)
    async with mortal.client(supervise=rules) as client:
        mortal.silent = {"ping"}
        await asyncio.sleep(55)  # 30 of rest and two pings of 10
        assert mortal.methods(1).count("ping") == 2 and client.state == "ready" and mortal.made == 2


@virtual_time
async def test_who_only_listens_is_pinged():
    asked = []

    async def handler(exchange):
        asked.append(exchange.method)
        if exchange.method == "subscriptions/listen":
            told = {"notifications": {"toolsListChanged": True}}
            await exchange.notify("notifications/subscriptions/acknowledged", told)
            await asyncio.Event().wait()
        return {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {"listChanged": True}}}

    rules = Supervision(ping_every=10.0)
    async with Client(handler, supervise=rules) as client, client.listen(tools=True):
        await asyncio.sleep(100)
    assert asked.count("server/discover") > 5


@virtual_time
async def test_an_answer_to_somebody_else_is_as_good_as_one_to_a_ping():
    mortal, states = Mortal(), States()
    async with mortal.client(supervise=True, on_state=states) as client:
        mortal.silent = {"ping"}
        for _ in range(10):
            await until(lambda: mortal.methods()[-1] == "ping", 500)
            await client.list_tools()
            assert client.state == "ready"
        assert mortal.made == 1


@virtual_time
async def test_a_refusal_is_a_sign_of_life():
    mortal, states = Mortal(), States()
    async with mortal.client(supervise=True, on_state=states):
        mortal.refuses = {"ping"}
        await asyncio.sleep(300)
    assert states.names == ["ready", "closed"]


@virtual_time
async def test_who_is_busy_is_not_pinged():
    mortal = Mortal()
    async with mortal.client(supervise=True) as client:
        mortal.silent = {"tools/call"}
        call = asyncio.ensure_future(client.call_tool("x", timeout=Patience(idle=None)))
        await asyncio.sleep(200)
        assert "ping" not in mortal.methods()
        call.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await call
        for _ in range(10):
            await client.list_tools()
            await asyncio.sleep(20)
        assert "ping" not in mortal.methods()


@virtual_time
async def test_supervision_takes_the_place_of_the_keepalive():
    mortal = Mortal()
    async with mortal.client(supervise=QUIET, keepalive=Keepalive(interval=1)):
        await asyncio.sleep(100)
    assert "ping" not in mortal.methods()


@virtual_time
async def test_a_server_that_is_gone_before_anybody_looked():
    class Gone(Mortal):
        def _hear(self, channel, message):
            super()._hear(channel, message)
            if message["method"] == "notifications/initialized" and self.made == 1:
                self.die()

    mortal = Gone()
    async with mortal.client(supervise=QUIET) as client:
        assert (await client.call_tool("x")).text == "2"


# --- on real carriers ---


async def test_a_killed_child_is_started_again(tmp_path):
    states = States()
    async with client_of(tmp_path, supervise=QUIET, on_state=states) as client:
        pid = int((await client.call_tool("pid")).text)
        os.kill(pid, signal.SIGKILL)
        await until(lambda: states.names == ["ready", "recovering", "ready"])
        assert int((await client.call_tool("pid")).text) != pid
    assert states.changes[1].cause.exit_code == -signal.SIGKILL


async def test_a_program_that_is_not_there_any_more_is_tried_again_for_a_while(tmp_path):
    states = States()
    rules = Supervision(ping_every=None, attempts=2, first_pause=0.01)
    client = client_of(tmp_path, supervise=rules, on_state=states, cwd=str(tmp_path / "here"))
    (tmp_path / "here").mkdir()
    async with client:
        (tmp_path / "here").rmdir()
        with pytest.raises(OutcomeUnknown):
            await client.call_tool("leave")
        await until(lambda: client.state == "failed")
    assert isinstance(states.changes[-2].cause, SpawnFailed) and len(states.pauses) == 2


async def test_a_session_that_was_forgotten_is_begun_anew():
    alive, states = ["s1"], States()
    script = handshake(
        session=None,
        logging_setLevel={},
        tools_call=lambda request, stream: (
            http(200, b'{"jsonrpc":"2.0","id":%d,"result":{"content":[]}}' % request.id)
            if request.header("Mcp-Session-Id") in alive
            else http(404)
        ),
        initialize=lambda request, stream: http(
            200,
            b'{"jsonrpc":"2.0","id":%d,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"logging":{}},'
            b'"serverInfo":{"name":"a","version":"1"}}}' % request.id,
            f"Mcp-Session-Id: {alive[-1]}",
        ),
    )
    async with (
        HttpPeer(script) as peer,
        Client(peer.url, revision="2025-11-25", supervise=QUIET, on_state=states) as client,
    ):
        await client.set_log_level("debug")
        alive[:] = ["s2"]
        await client.call_tool("x")
        assert peer.methods.count("initialize") == 2 and peer.methods.count("logging/setLevel") == 2
    assert states.names == ["ready", "recovering", "ready", "closed"]


@pytest.mark.parametrize("era", ["stateless", "handshake"])
async def test_a_server_that_restarts_is_waited_for(era):
    states = States()
    tools = {"tools": [], "ttlMs": 0, "cacheScope": "private"}
    script = server(tools_list=tools) if era == "stateless" else handshake(tools_list=tools, ping={})
    peer = HttpPeer(script)
    await peer.start()
    rules = Supervision(ping_every=None, first_pause=0.02)
    async with Client(peer.url, supervise=rules, on_state=states) as client:
        await peer.stop()
        call = asyncio.ensure_future(client.list_tools())
        await until(lambda: len(states.pauses) >= 3)
        await peer.start()
        assert await call == []
        assert client.state == "ready"
    await peer.stop()
    assert states.names == ["ready", "recovering", "ready", "closed"]
    assert peer.methods.count("initialize") == (era == "handshake")  # what still stands is not begun anew


async def replaced(script, states):
    """A client whose server went away under a call and came back as `script`."""
    peer = HttpPeer(handshake())
    await peer.start()
    client = Client(peer.url, supervise=Supervision(ping_every=None, first_pause=0.02), on_state=states)
    await client.open()
    await peer.stop()
    call = asyncio.ensure_future(client.list_tools())
    await until(lambda: len(states.pauses) >= 2)
    peer.script = script
    await peer.start()
    return client, peer, call


async def test_what_is_there_now_is_met_anew():
    client, peer, call = await replaced(server(tools_list={"tools": []}), States())
    assert await call == []
    assert client.revision == "2026-07-28"
    await client.close()
    await peer.stop()


async def test_no_entry_is_no_matter_of_patience():
    states = States()
    client, peer, call = await replaced(lambda request, stream: http(401), states)
    with pytest.raises(ConnectionLost, match="given up"):
        await call
    assert client.state == "failed" and isinstance(states.changes[-1].cause, HttpStatus)
    await client.close()
    await peer.stop()


async def test_one_call_that_fails_leaves_the_others_alone():
    """Over HTTP the stream of one call may break: the server is asked whether it lives, and nothing is closed."""
    states, held = States(), asyncio.Event()

    async def call(request, stream):
        if request.params["name"] == "held":
            await held.wait()
            return result(request, {"content": []})
        stream.reset()
        return None

    async with HttpPeer(server(tools_call=call)) as peer, Client(peer.url, supervise=QUIET, on_state=states) as client:
        other = asyncio.ensure_future(client.call_tool("held"))
        for _ in range(12):
            with pytest.raises(OutcomeUnknown):
                await client.call_tool("breaks")
            await until(lambda: client.state == "ready")
        held.set()
        assert (await other).content == []


async def test_listening_goes_on_after_the_stream_broke():
    told, begun = [], []

    async def listen(request, stream):
        begun.append(request)
        tag = {"io.modelcontextprotocol/subscriptionId": request.id}
        acknowledged = notice("notifications/subscriptions/acknowledged", notifications={}, _meta=tag)
        await stream.write(chunked() + chunk(event(acknowledged)))
        if len(begun) < 3:
            stream.reset()
            return None
        final = {"jsonrpc": "2.0", "id": request.id, "result": {"resultType": "complete"}}
        return chunk(event(final)) + b"0\r\n\r\n"

    script = server(subscriptions_listen=listen)
    async with HttpPeer(script) as peer, Client(peer.url, supervise=QUIET) as client:
        params = {"notifications": {"toolsListChanged": True}}
        await client.request("subscriptions/listen", params, on_notification=lambda method, _: told.append(method))
    assert len(begun) == 3 and told == ["notifications/subscriptions/acknowledged"] * 3


async def test_calls_from_another_task_at_the_end_of_the_client_are_told():
    mortal = Mortal()
    mortal.silent = {"tools/call"}
    client = mortal.client(supervise=QUIET)
    await client.open()
    call = asyncio.ensure_future(client.call_tool("x"))
    await turns(5)
    await client.close()
    with pytest.raises(ConnectionClosed):
        await call
    assert isinstance(mortal.channel, Channel)


@virtual_time
async def test_what_was_listed_and_listened_to_is_asked_for_anew():
    mortal = Mortal()
    async with mortal.client(supervise=QUIET) as client, client.subscribe("a:1") as changes:
        mortal.die()
        assert (await anext(changes)).uri == "a:1"  # it may have been missed
        await client.list_tools()
        assert mortal.methods(2).count("tools/list") == 1 and "resources/subscribe" in mortal.methods(2)
