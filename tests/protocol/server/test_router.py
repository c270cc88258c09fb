"""protocol/server/router.py: which era speaks is decided for every message on its own (modern.md §11)."""

import json
import logging

import pytest

from interlock.protocol.server.router import ServerSide
from interlock.revisions.table import REVISIONS, pick
from interlock.wire.errors import BadFrame, ConnectionClosed, MethodNotFound, ParseError
from interlock.wire.messages import read_frame
from interlock.wire.meta import CLIENT_CAPABILITIES, PROTOCOL_VERSION
from support.doubles import Outlet, done, notice, request, turns

NEWEST = list(REVISIONS)[-1]
ENVELOPE = {PROTOCOL_VERSION: NEWEST, CLIENT_CAPABILITIES: {}}
HELLO = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
TOOLS = {"capabilities": {"tools": {}}}


async def handler(exchange):
    if exchange.method == "server/discover":
        return dict(TOOLS)
    return {"method": exchange.method, "handshake": exchange.peer.name}


def side_of(handler=handler, names=None, **options):
    side = ServerSide(handler, pick(names), **options)
    side.attach(Outlet())
    return side


async def opened(handler=handler, **options):
    side = side_of(handler, **options)
    await done(side.request(request("initialize", HELLO)))
    return side


async def error_of(work):
    return (await done(work))["error"]


# --- the era of a request ---


async def test_a_version_in_meta_makes_a_request_stateless():
    side = await opened()
    told = (await done(side.request(request("tools/list", {"_meta": ENVELOPE}))))["result"]
    assert told == {"resultType": "complete", "method": "tools/list", "handshake": "unknown"}


async def test_without_it_a_request_belongs_to_the_session():
    side = await opened()
    told = (await done(side.request(request("tools/list"))))["result"]
    assert told == {"method": "tools/list", "handshake": "c"}


@pytest.mark.parametrize("method", ["initialize", "ping"])
async def test_an_old_verb_in_the_new_envelope_does_not_exist(method):
    params = {**(HELLO if method == "initialize" else {}), "_meta": ENVELOPE}
    assert (await error_of(side_of().request(request(method, params))))["code"] == -32601


async def test_both_eras_live_side_by_side():
    side = side_of()
    assert "result" in await done(side.request(request("tools/list", {"_meta": ENVELOPE})))
    assert "result" in await done(side.request(request("initialize", HELLO)))
    assert "result" in await done(side.request(request("tools/list", {"_meta": ENVELOPE})))
    assert "result" in await done(side.request(request("ping")))


async def test_other_keys_in_meta_make_no_request_stateless():
    side = await opened()
    told = await done(side.request(request("tools/list", {"_meta": {"progressToken": 1, "a": 2}})))
    assert told["result"]["handshake"] == "c"


async def test_batches_are_there_once_their_revision_was_agreed_on():
    side = side_of()
    assert not side.batches
    await done(side.request(request("initialize", HELLO)))
    assert side.batches


# --- params of the wrong shape ---


@pytest.mark.parametrize("params", [[], "x", {"cursor": 7}, {"_meta": []}, {"_meta": {"progressToken": {}}}])
async def test_malformed_params_are_refused(params):
    told = await error_of((await opened()).request(request("tools/list", params)))
    assert told["code"] == -32602
    assert "`" not in told["message"]


async def test_malformed_params_of_initialize_are_refused_as_such():
    told = await error_of(side_of().request(request("initialize", {"protocolVersion": 7})))
    assert told["code"] == -32602


async def test_the_version_is_judged_before_the_params():
    params = {"_meta": {**ENVELOPE, PROTOCOL_VERSION: "2099-01-01"}, "cursor": 7}
    assert (await error_of(side_of().request(request("tools/list", params))))["code"] == -32022


@pytest.mark.parametrize(
    ("method", "params"),
    [("resources/subscribe", {}), ("logging/setLevel", {}), ("prompts/get", {}), ("resources/read", {})],
)
async def test_the_method_is_judged_before_the_params(method, params):
    # Not of this revision, or behind a capability nobody offers: -32601, whatever its params are.
    envelope = {"_meta": ENVELOPE, **params}
    assert (await error_of(side_of().request(request(method, envelope))))["code"] == -32601


async def test_an_envelope_that_cannot_be_read_is_refused_and_never_legacy():
    for meta in ({**ENVELOPE, PROTOCOL_VERSION: 20260728}, {**ENVELOPE, CLIENT_CAPABILITIES: []}):
        told = await error_of((await opened()).request(request("tools/list", {"_meta": meta})))
        assert told["code"] == -32602


async def test_malformed_params_are_answered_even_if_the_handler_fails_to_introduce_itself(caplog):
    async def broken(exchange):
        raise RuntimeError("secret")

    told = await error_of(side_of(broken).request(request("tools/call", {"_meta": ENVELOPE})))
    assert told["code"] in (-32602, -32603)
    assert "secret" not in told["message"]


async def test_params_that_are_no_json_inside_are_refused():
    # Raw members are skipped by their outline: this one is found out when it is read.
    frame = read_frame(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":1e400}}')
    assert (await error_of((await opened()).request(frame)))["code"] in (-32602, -32700)


# --- notifications ---


async def hear(side, frame):
    """What a connection does: it runs the work that a notification leads to."""
    if (work := side.notification(frame)) is not None:
        await work


async def test_initialized_makes_the_session_ready_once():
    ready = []
    side = await opened(on_ready=lambda: ready.append(1))
    await hear(side, notice("notifications/initialized"))
    await hear(side, notice("notifications/initialized"))
    assert ready == [1]
    await turns()


async def test_a_notification_is_handed_to_the_handler():
    heard = []

    async def hears(exchange):
        if exchange.method == "server/discover":
            return {}
        heard.append((exchange.method, bytes(exchange.raw), exchange.meta.progress_token, exchange.peer.name))
        return {}

    side = await opened(hears)
    await hear(side, notice("notifications/example/ring", {"tone": 1, "_meta": {"progressToken": 5}}))
    await turns()
    assert heard == [("notifications/example/ring", b'{"tone":1,"_meta":{"progressToken":5}}', 5, "c")]


async def test_notifications_of_the_edge_are_not():
    heard = []

    async def hears(exchange):
        heard.append(exchange.method)
        return {}

    side = side_of(hears)
    for method in ("notifications/initialized", "notifications/cancelled", "notifications/progress"):
        await hear(side, notice(method, {}))
    await turns()
    assert heard == []


@pytest.mark.parametrize("error", [MethodNotFound("no"), RuntimeError("boom")])
async def test_a_notification_that_fails_harms_nobody(error, caplog):
    async def fails(exchange):
        raise error

    side = side_of(fails)
    with caplog.at_level(logging.ERROR, "interlock.server"):
        await hear(side, notice("notifications/example/ring"))
        await turns()
    assert ("boom" in caplog.text) == isinstance(error, RuntimeError)


async def test_a_malformed_notification_is_ignored(caplog):
    heard = []

    async def hears(exchange):
        heard.append(exchange)
        return {}

    side = side_of(hears)
    await hear(side, notice("notifications/example/ring", []))
    await hear(side, notice("notifications/example/ring", {"_meta": 7}))
    await turns()
    assert heard == []
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


# --- junk and the end ---


def test_junk_is_answered_with_what_it_deserves():
    side = ServerSide(handler, pick(None))
    assert side.junk(b"x", BadFrame(None)) is None
    told = json.loads(side.junk(b"x", BadFrame(ParseError("broken"), 7)))
    assert told == {"jsonrpc": "2.0", "id": 7, "error": {"code": -32700, "message": "broken"}}
    assert "id" not in json.loads(side.junk(b"x", BadFrame(ParseError("broken"))))


async def test_the_end_is_told():
    told = []
    side = await opened(on_end=lambda: told.append(1))
    side.ended(ConnectionClosed("over"))
    assert told == [1]


async def test_the_end_may_come_before_anything_else():
    side = side_of()
    side.ended(ConnectionClosed("over"))


def test_a_side_must_be_attached_first():
    with pytest.raises(AssertionError, match="attach"):
        ServerSide(handler, pick(None)).batches


# --- keys of `_meta` that an older revision does not know ---


@pytest.mark.parametrize(
    "meta",
    [
        {CLIENT_CAPABILITIES: 7},
        {"io.modelcontextprotocol/clientInfo": "x"},
        {"io.modelcontextprotocol/logLevel": [], "progressToken": 5},
    ],
)
async def test_a_handshake_request_is_served_whatever_stands_at_keys_of_the_future(meta):
    # META-01: no behaviour depends on values at reserved keys that its revision does not define.
    side = await opened()
    told = await done(side.request(request("tools/list", {"_meta": meta})))
    assert told["result"]["handshake"] == "c"
    assert (await done(side.request(request("ping", {"_meta": meta}))))["result"] == {}


async def test_params_that_are_wrong_beside_that_are_refused_all_the_same():
    told = await error_of(
        (await opened()).request(request("tools/list", {"cursor": 7, "_meta": {CLIENT_CAPABILITIES: 7}}))
    )
    assert told["code"] == -32602


async def test_before_the_introduction_even_malformed_params_hear_of_it():
    told = await error_of(side_of().request(request("tools/list", {"cursor": 7})))
    assert told["code"] == -32602
    assert "supported" in told["data"]


async def test_a_method_without_its_id_never_runs_its_handler():
    ran = []

    async def notes(exchange):
        ran.append(exchange.method)
        return {}

    side = side_of(notes)
    for method in ("tools/call", "example/own", "initialize", "notification/x"):
        await hear(side, notice(method, {"name": "a"}))
    await turns()
    assert ran == []


async def test_an_authors_own_method_with_malformed_meta_is_refused():
    told = await error_of((await opened()).request(request("example/own", {"_meta": []})))
    assert told["code"] == -32602


async def test_malformed_params_of_a_method_without_a_capability_are_refused_as_such():
    told = await error_of(side_of().request(request("subscriptions/listen", {"_meta": ENVELOPE})))
    assert told["code"] == -32602


@pytest.mark.parametrize(
    ("version", "params", "opens"),
    [
        ("2024-11-05", {"clientInfo": {"name": "c", "version": "1", "title": 7}}, True),
        ("2024-11-05", {"capabilities": {"elicitation": True, "roots": {}}}, True),
        ("2025-06-18", {"clientInfo": {"name": "c", "version": "1", "title": 7}}, False),
        ("2025-06-18", {"capabilities": {"elicitation": True}}, False),
        ("2024-11-05", {"clientInfo": {"name": 7, "version": "1"}}, False),
        ("2024-11-05", {"clientInfo": []}, False),
        ("2024-11-05", {"capabilities": []}, False),
        (7, {}, False),
    ],
)
async def test_an_introduction_is_read_in_the_words_of_its_own_revision(version, params, opens):
    told = await done(side_of().request(request("initialize", {**HELLO, "protocolVersion": version, **params})))
    assert ("result" in told) is opens
    assert opens or told["error"]["code"] == -32602
