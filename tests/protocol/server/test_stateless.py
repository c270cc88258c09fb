"""protocol/server/stateless.py: every request is judged by what it says itself."""

import asyncio
import json

import pytest

from interlock.protocol.server.router import ServerSide
from interlock.protocol.server.stateless import StatelessServer
from interlock.revisions.table import REVISIONS, pick
from interlock.wire.errors import InvalidParams
from interlock.wire.exchange import ANONYMOUS, Question
from interlock.wire.meta import CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, PROTOCOL_VERSION, SUBSCRIPTION_ID
from interlock.wire.methods import AUTHOR_METHOD, METHODS
from support.doubles import Outlet, done, request, started, turns

NEWEST = "2026-07-28"
ENVELOPE = {PROTOCOL_VERSION: NEWEST, CLIENT_CAPABILITIES: {}}


async def echo(exchange):
    return {"method": exchange.method}


def begin(server, method, meta=None, outlet=None, id=1, **params):
    frame = request(method, {**params, "_meta": ENVELOPE if meta is None else meta}, id)
    read = METHODS.get(method, AUTHOR_METHOD).decoder.decode(frame.params)
    return server.begin(frame, id, read, read.meta, outlet or Outlet())


async def error_of(work):
    assert isinstance(work, bytes), "refused at once, no run is started"
    return json.loads(work)["error"]


async def test_a_request_with_its_envelope_is_served():
    server = StatelessServer(echo, pick(None))
    answer = await done(begin(server, "tools/list"))
    assert answer["result"] == {"resultType": "complete", "method": "tools/list"}


@pytest.mark.parametrize("meta", [{PROTOCOL_VERSION: NEWEST}, {CLIENT_CAPABILITIES: {}}, {}])
async def test_an_envelope_lacks_nothing_it_needs(meta):
    told = await error_of(begin(StatelessServer(echo, pick(None)), "tools/list", meta))
    assert told["code"] == -32602


async def test_the_client_info_is_no_need():
    assert "result" in await done(begin(StatelessServer(echo, pick(None)), "tools/list"))


@pytest.mark.parametrize("version", ["2025-11-25", "2099-01-01", ""])
async def test_another_version_is_refused_with_those_we_have(version):
    # A handshake revision is listed, though it cannot be spoken per request (modern.md §11).
    server = StatelessServer(echo, pick(None))
    told = await error_of(begin(server, "tools/list", {**ENVELOPE, PROTOCOL_VERSION: version}))
    assert told["code"] == -32022
    assert told["data"] == {"supported": list(reversed(REVISIONS)), "requested": version}
    assert NEWEST in told["message"]


async def test_a_server_without_the_stateless_era_says_so():
    server = StatelessServer(echo, pick(("2025-06-18",)))
    told = await error_of(begin(server, "tools/list"))
    assert told["data"] == {"supported": ["2025-06-18"], "requested": NEWEST}


async def test_the_version_is_judged_before_the_method():
    server = StatelessServer(echo, pick(None))
    told = await error_of(begin(server, "ping", {**ENVELOPE, PROTOCOL_VERSION: "2099-01-01"}))
    assert told["code"] == -32022


@pytest.mark.parametrize(
    "method", ["ping", "logging/setLevel", "resources/subscribe", "sampling/createMessage", "tasks/get"]
)
async def test_a_method_of_another_revision_does_not_exist(method):
    params = {"level": "info"} if method == "logging/setLevel" else {"uri": "a:b"}
    told = await error_of(begin(StatelessServer(echo, pick(None)), method, **params))
    assert told["code"] == -32601


async def test_an_authors_own_method_is_the_handlers_business():
    answer = await done(begin(StatelessServer(echo, pick(None)), "example/own"))
    assert answer["result"]["method"] == "example/own"


@pytest.mark.parametrize("level", ["warn", "INFO", ""])
async def test_a_level_that_is_none_is_refused(level):
    told = await error_of(begin(StatelessServer(echo, pick(None)), "tools/list", {**ENVELOPE, LOG_LEVEL: level}))
    assert told["code"] == -32602
    assert "debug" in told["message"]


async def test_the_peer_is_who_this_request_says():
    seen = []

    async def look(exchange):
        peer = exchange.peer
        seen.append((peer.name, peer.can("roots"), peer.log_level, peer.principal))
        return {}

    server = StatelessServer(look, pick(None), principal=ANONYMOUS)
    full = {
        **ENVELOPE,
        CLIENT_CAPABILITIES: {"roots": {}},
        CLIENT_INFO: {"name": "n", "version": "1"},
        LOG_LEVEL: "error",
    }
    await done(begin(server, "tools/list", full))
    await done(begin(server, "tools/list"))  # nothing is remembered from the request before (META-022)
    assert seen == [("n", True, "error", ANONYMOUS), ("unknown", False, None, ANONYMOUS)]


# --- asking ---


async def test_an_undeclared_capability_is_refused_with_its_object():
    async def ask(exchange):
        return await exchange.ask(Question("roots/list", {}))

    server = StatelessServer(ask, pick(None))
    told = (await done(begin(server, "tools/call", name="a")))["error"]
    assert (told["code"], told["data"]) == (-32021, {"requiredCapabilities": {"roots": {}}})


async def test_a_question_is_never_sent_to_a_stateless_client():
    async def ask(exchange):
        return await exchange.ask(Question("roots/list", {}))

    outlet = Outlet()
    server = StatelessServer(ask, pick(None))
    await done(begin(server, "tools/call", {**ENVELOPE, CLIENT_CAPABILITIES: {"roots": {}}}, outlet, name="a"))
    assert outlet.asked == []


# --- listening ---


def listening():
    """A handler whose stream ends when the event is set."""
    end = asyncio.Event()

    async def handler(exchange):
        await exchange.notify("notifications/subscriptions/acknowledged", {"notifications": {}})
        await end.wait()
        return {"_meta": {"com.example/x": 1}}

    return handler, end


async def test_a_listen_stream_is_tagged_and_ends_with_result_and_cancellation():
    handler, end = listening()
    outlet = Outlet()
    server = StatelessServer(handler, pick(None))
    work = started(begin(server, "subscriptions/listen", None, outlet, "L", notifications={}))
    await turns()
    assert outlet.told == [
        ("notifications/subscriptions/acknowledged", {"notifications": {}, "_meta": {SUBSCRIPTION_ID: "L"}})
    ]
    end.set()
    result = json.loads(await work)["result"]
    assert result == {"resultType": "complete", "_meta": {"com.example/x": 1, SUBSCRIPTION_ID: "L"}}
    # The result first, then the notification that the cancellation page asks for (modern.md §13.1).
    assert len(outlet.told) == 1
    await turns()
    assert outlet.told[1][0] == "notifications/cancelled"
    assert outlet.told[1][1]["requestId"] == "L"


async def test_a_listen_stream_that_the_client_ends_says_nothing_more():
    handler, _ = listening()
    outlet = Outlet()
    work = started(begin(StatelessServer(handler, pick(None)), "subscriptions/listen", None, outlet, notifications={}))
    await turns()
    work.cancel()
    await asyncio.wait([work])
    await turns()
    assert [method for method, _ in outlet.told] == ["notifications/subscriptions/acknowledged"]


async def test_a_listen_stream_that_is_refused_never_began_and_so_does_not_end():
    async def handler(exchange):
        raise InvalidParams("nothing can be watched there")

    outlet = Outlet()
    work = started(begin(StatelessServer(handler, pick(None)), "subscriptions/listen", None, outlet, notifications={}))
    assert json.loads(await work)["error"]["code"] == -32602
    await turns()
    assert outlet.told == []


async def test_the_end_of_a_stream_whose_connection_is_gone_harms_nobody():
    handler, end = listening()
    outlet = Outlet()

    async def broken(method, params):
        raise ConnectionError("gone")

    work = started(begin(StatelessServer(handler, pick(None)), "subscriptions/listen", None, outlet, notifications={}))
    await turns()
    outlet.tell = broken
    end.set()
    await work
    await turns()  # an exception that nobody retrieved would fail the test


async def test_a_side_sends_stateless_requests_here():
    side = ServerSide(echo, pick(None))
    side.attach(Outlet())
    answer = await done(side.request(request("tools/list", {"_meta": ENVELOPE})))
    assert answer["result"]["resultType"] == "complete"
