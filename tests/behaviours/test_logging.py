"""Log messages of a server, by each revision's rules: handshake LOG, modern LOG.

A session has one level, which `logging/setLevel` changes; a stateless request brings its own, or hears nothing.
"""

import json
from contextlib import asynccontextmanager

import pytest

from interlock.transport.http.server.app import HttpApp
from interlock.wire.types.common import LOG_LEVELS
from support.asgi import call_tool, post
from support.modern_peer import connected, hears, listen, settled
from support.servers.logs import SECRETS
from support.wire_peer import ALL, CARRIERS, HANDSHAKE, MODERN, fresh, server_under_test

LEVEL_KEY = "io.modelcontextprotocol/logLevel"
MESSAGE = "notifications/message"
EVERYWHERE = [*((carrier, revision) for carrier in CARRIERS for revision in ALL), ("http", MODERN[0])]
STATELESS = [*((carrier, MODERN[0]) for carrier in CARRIERS), ("http", MODERN[0])]

everywhere = pytest.mark.parametrize(("carrier", "revision"), EVERYWHERE)
stateless = pytest.mark.parametrize(("carrier", "revision"), STATELESS)
sessions = pytest.mark.parametrize(("carrier", "revision"), EVERYWHERE[:-1:])


class OnWire:
    """A client of any revision on a two-way carrier."""

    def __init__(self, peer):
        self.peer = peer

    async def call(self, tool, level=None, **arguments):
        """What was logged during the call, and its result. A level is set in the way of the revision."""
        meta = {LEVEL_KEY: level} if level and self.peer.revision in MODERN else None
        if level and meta is None:
            assert await self.peer.result("logging/setLevel", {"level": level}) == {}
        self.peer.heard.clear()
        result = await self.peer.result("tools/call", {"name": tool, "arguments": arguments}, meta=meta)
        return self.peer.notices(MESSAGE), result


class OverHttp:
    def __init__(self, app):
        self.app = app

    async def call(self, tool, level=None, **arguments):
        talk = await post(self.app, call_tool(tool, arguments, **({LEVEL_KEY: level} if level else {}))).answer()
        frames = talk.events if talk.headers["content-type"] == "text/event-stream" else [talk.json]
        *told, answer = frames
        assert all(frame["method"] == MESSAGE for frame in told)
        return [frame["params"] for frame in told], answer["result"]


@asynccontextmanager
async def speaking(carrier, revision):
    if carrier == "http":
        yield OverHttp(HttpApp(fresh("support.servers.logs").server))
        return
    async with server_under_test(carrier, revision, server="logs") as peer:
        yield OnWire(peer)


def said(messages):
    return [message["data"]["said"] for message in messages]


# --- who hears what ---


@pytest.mark.requirement("LOG-01", "LOG-001")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", ALL)
async def test_a_server_that_logs_declares_it_and_one_that_cannot_does_not(carrier, revision):
    for name, logs in (("logs", True), ("handshake_bare", False)):
        async with server_under_test(carrier, revision, server=name, opened=False) as peer:
            declared = (await peer.open())["capabilities"]
            assert ("logging" in declared) is logs
            if logs:
                assert declared["logging"] == {}
                messages, _ = await OnWire(peer).call("shout", "debug")
                assert len(messages) == 8


@pytest.mark.requirement("LOG-03", "LOG-04")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", HANDSHAKE)
@pytest.mark.parametrize("tool", ["shout", "shout_in_thread", "past_the_context"])
async def test_a_session_hears_from_its_level_on(carrier, revision, tool):
    async with speaking(carrier, revision) as client:
        for level in (*LOG_LEVELS, "debug"):
            messages, _ = await client.call(tool, level)
            assert said(messages) == list(LOG_LEVELS[LOG_LEVELS.index(level) :])
        assert said((await client.call(tool))[0]) == list(LOG_LEVELS)  # it lasts


@pytest.mark.requirement("LOG-05")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_until_a_session_says_otherwise_it_hears_from_info_on(carrier, revision):
    async with speaking(carrier, revision) as client:
        assert said((await client.call("shout"))[0]) == list(LOG_LEVELS[1:])


@pytest.mark.requirement("LOG-002")
@stateless
@pytest.mark.parametrize("tool", ["shout", "shout_in_thread", "past_the_context"])
async def test_a_request_without_a_level_hears_nothing(carrier, revision, tool):
    async with speaking(carrier, revision) as client:
        assert (await client.call(tool))[0] == []
        assert len((await client.call(tool, "debug"))[0]) == 8
        assert (await client.call(tool))[0] == []  # the level was that request's alone


@pytest.mark.requirement("LOG-003", "LOG-004")
@stateless
@pytest.mark.parametrize("tool", ["shout", "shout_in_thread", "past_the_context"])
async def test_a_request_hears_from_its_own_level_on_before_its_answer(carrier, revision, tool):
    async with speaking(carrier, revision) as client:
        for level in LOG_LEVELS:
            messages, result = await client.call(tool, level)
            assert said(messages) == list(LOG_LEVELS[LOG_LEVELS.index(level) :])
            assert result["content"][0]["text"] == "said"


@pytest.mark.requirement("LOG-005")
@pytest.mark.parametrize("revision", MODERN)
async def test_over_http_messages_go_to_their_own_request(revision):
    app = HttpApp(fresh("support.servers.logs").server)
    loud = [post(app, call_tool("shout", {"logger": name}, id=name, **{LEVEL_KEY: "debug"})) for name in "ab"]
    quiet = post(app, call_tool("shout", {"logger": "c"}, id="c"))
    for talk, name in zip(loud, "ab", strict=True):
        *told, answer = (await talk.answer()).events
        assert {frame["params"]["logger"] for frame in told} == {name}
        assert answer["id"] == name
    assert (await quiet.answer()).json["id"] == "c"


@pytest.mark.requirement("LOG-005")
@pytest.mark.parametrize("revision", MODERN)
async def test_no_message_goes_to_a_stream_of_change_notices(revision):
    server = fresh("support.servers.logs").server
    async with connected(server, revision) as peer:
        await listen(peer, {"resourceSubscriptions": ["note://one"]}, id="l", meta={LEVEL_KEY: "debug"})
        await peer.result("tools/call", {"name": "shout", "arguments": {}})
        await peer.result("resources/read", {"uri": "note://one"})
        await peer.result("tools/call", {"name": "touch", "arguments": {}})
        await hears(peer, lambda frame: frame.get("method") == "notifications/resources/updated")
        await settled(peer)
        assert peer.notices(MESSAGE) == []


@pytest.mark.requirement("LOG-17", "LOG-010")
@pytest.mark.parametrize("revision", ALL)
async def test_nobody_hears_what_is_said_to_another(revision):
    server = fresh("support.servers.logs").server
    async with connected(server, revision) as one, connected(server, revision) as other:
        messages, _ = await OnWire(one).call("shout", "debug")
        await settled(other)
        assert len(messages) == 8
        assert other.notices(MESSAGE) == []


# --- levels ---


@pytest.mark.requirement("LOG-06", "LOG-07")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_levels_are_the_eight_names_and_no_others(carrier, revision):
    async with server_under_test(carrier, revision, server="handshake_strict") as peer:
        for level in LOG_LEVELS:
            assert await peer.result("logging/setLevel", {"level": level}) == {}
        for level in ("warn", "loud", "INFO", "", " info", 3, None):
            assert (await peer.error("logging/setLevel", {"level": level}, judged=False))["code"] == -32602
        assert (await peer.error("logging/setLevel", {}, judged=False))["code"] == -32602


@pytest.mark.requirement("LOG-07")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_level_that_does_not_exist_changes_nothing(carrier, revision):
    async with server_under_test(carrier, revision, server="logs") as peer:
        client = OnWire(peer)
        await client.call("shout", "alert")
        assert (await peer.error("logging/setLevel", {"level": "loud"}, judged=False))["code"] == -32602
        assert said((await client.call("shout"))[0]) == ["alert", "emergency"]


@pytest.mark.requirement("LOG-006")
@pytest.mark.parametrize("revision", MODERN)
@pytest.mark.parametrize("level", ["loud", "warn", "INFO", ""])
@pytest.mark.parametrize("carrier", [*CARRIERS, "http"])
async def test_an_unknown_level_fails_the_request(carrier, revision, level):
    if carrier == "http":
        app = HttpApp(fresh("support.servers.logs").server)
        talk = await post(app, call_tool("shout", {}, **{LEVEL_KEY: level})).answer()
        assert talk.status == 400
        assert talk.error["code"] == -32602
        return
    async with server_under_test(carrier, revision, server="logs") as peer:
        meta = {LEVEL_KEY: level}
        error = await peer.error("tools/call", {"name": "shout", "arguments": {}}, meta=meta, judged=False)
        assert error["code"] == -32602
        assert peer.notices(MESSAGE) == []


# --- what is in them ---


@pytest.mark.requirement("LOG-18")
@everywhere
@pytest.mark.parametrize("data", [None, True, 0, 1.5, "text", "", [], [1, "a"], {}, {"a": {"b": [None]}}], ids=str)
async def test_data_is_any_json_and_the_logger_may_be_absent(carrier, revision, data):
    async with speaking(carrier, revision) as client:
        messages, _ = await client.call("say", "error", data=data)
        assert messages == [{"level": "error", "data": data}]
        named, _ = await client.call("shout", "emergency", logger="disk")
        assert named == [{"level": "emergency", "data": {"said": "emergency"}, "logger": "disk"}]


@pytest.mark.requirement("LOG-17", "LOG-010")
@everywhere
@pytest.mark.parametrize(("what", "error"), [("level", "LocalError"), ("data", "TypeError")])
async def test_what_is_no_message_is_refused_to_its_author(carrier, revision, what, error):
    async with speaking(carrier, revision) as client:
        messages, result = await client.call("odd", "debug", what=what)
        assert messages == []
        assert result["content"][0]["text"] == f"refused: {error}"


@pytest.mark.requirement("LOG-12", "LOG-14", "LOG-17", "LOG-007", "LOG-008", "LOG-010")
@everywhere
async def test_secrets_do_not_leave(carrier, revision):
    async with speaking(carrier, revision) as client:
        [message], _ = await client.call("leak", "error")
    told = json.dumps(message)
    for secret in ("hunter2", "abcdef0123456789", "ghp_", "MIIEvQ"):
        assert secret not in told
    assert message["data"].keys() == SECRETS.keys()  # what is no secret stays
    assert message["data"]["url"] == "postgres://ada:[redacted]@db/notes"


@pytest.mark.requirement("LOG-16", "LOG-007")
@everywhere
async def test_a_failure_inside_is_no_log_message_to_the_client(carrier, revision):
    async with speaking(carrier, revision) as client:
        messages, result = await client.call("bug", "debug")
        assert messages == []
        assert result["isError"] is True
        assert "inside of this server" not in json.dumps(result)


# --- how many of them ---


@pytest.mark.requirement("LOG-09", "LOG-008")
@everywhere
async def test_a_flood_is_cut_and_the_client_is_told_how_much(carrier, revision):
    count = 5000
    async with speaking(carrier, revision) as client:
        messages, result = await client.call("flood", "error", count=count)
    assert result["content"][0]["text"] == "said"
    sent = [message for message in messages if message["logger"] == "flood"]
    told = [message for message in messages if message["logger"] == "interlock"]
    assert 200 <= len(sent) < count
    assert len(told) >= 1
    assert all(message["level"] == "error" for message in told)
    assert sum(int(message["data"].split()[0]) for message in told) + len(sent) == count


@pytest.mark.requirement("LOG-09")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_session_is_one_listener_however_many_requests_speak(carrier, revision):
    async with speaking(carrier, revision) as client:
        counts = [len((await client.call("flood", count=100))[0]) for _ in range(20)]
        assert sum(counts) < 2000
