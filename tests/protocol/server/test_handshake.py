"""protocol/server/handshake.py: NEW, OPENING, OPEN, ready; and the verbs only this era has."""

import asyncio
import logging

import pytest

from interlock.protocol.server.handshake import HandshakeServer
from interlock.revisions.table import REVISIONS, pick
from interlock.wire.errors import InvalidParams, LocalError, MethodNotFound
from interlock.wire.exchange import ANONYMOUS, LOCAL, Question
from interlock.wire.meta import NO_META, SERVER_INFO
from interlock.wire.methods import AUTHOR_METHOD, METHODS
from support.doubles import Outlet, done, request, result_frame, turns
from support.virtual_time import virtual_time

HANDSHAKE = [name for name in REVISIONS if name != "2026-07-28"]
CAPABILITIES = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {},
    "completions": {},
    "logging": {},
    "experimental": {"a": {}},
    "extensions": {"com.example/x": {}},
}
INFO = {"name": "s", "version": "1", "title": "T", "description": "D", "websiteUrl": "https://example.com"}


class Handler:
    """A server made of `server/discover`, one listen exchange and whatever `verb` answers."""

    def __init__(self, capabilities=None, verb=None, listens=True):
        self.capabilities = CAPABILITIES if capabilities is None else capabilities
        self.verb = verb
        self.listens = listens
        self.listened = []
        self.discovering = asyncio.Event()
        self.discovering.set()

    async def __call__(self, exchange):
        if exchange.method == "server/discover":
            await self.discovering.wait()
            return {"capabilities": self.capabilities, "_meta": {SERVER_INFO: INFO}, "instructions": "I", "ttlMs": 1}
        if exchange.method == "subscriptions/listen":
            if not self.listens:
                raise MethodNotFound("no")
            self.listened.append(exchange)
            await asyncio.Event().wait()
        if self.verb is not None:
            return await self.verb(exchange)
        return {"method": exchange.method}


def new(handler=None, names=None, outlet=None, **options):
    return HandshakeServer(handler or Handler(), pick(names), outlet or Outlet(), **options)


def begin(server, method, params=None, id=1, outlet=None):
    frame = request(method, params, id)
    read = METHODS.get(method, AUTHOR_METHOD).decoder.decode(frame.params or b"{}")
    return server.begin(frame, id, read, read.meta or NO_META, outlet or Outlet())


async def initialize(server, version="2025-11-25", capabilities=None, id=1):
    hello = {
        "protocolVersion": version,
        "capabilities": capabilities or {},
        "clientInfo": {"name": "c", "version": "1"},
    }
    return await done(begin(server, "initialize", hello, id))


STREAMS = []


def stream(work):
    """What a connection does with the work a notification leads to."""
    if work is not None:
        STREAMS.append(asyncio.ensure_future(work))


async def end_streams():
    mine = [each for each in STREAMS if not each.done()]
    STREAMS.clear()
    for each in mine:
        each.cancel()
    await asyncio.gather(*mine, return_exceptions=True)


async def opened(handler=None, version="2025-11-25", capabilities=None, ready=False, **options):
    server = new(handler, **options)
    await initialize(server, version, capabilities)
    if ready:
        stream(server.initialized())
        await turns()
    return server


async def error_of(work):
    return (await done(work))["error"]


# --- opening ---


@pytest.mark.parametrize("version", HANDSHAKE)
async def test_the_version_asked_for_is_the_one_answered(version):
    server = new()
    result = (await initialize(server, version))["result"]
    assert result["protocolVersion"] == version
    assert server.revision is REVISIONS[version]


@pytest.mark.parametrize("version", ["2026-07-28", "1999-01-01", ""])
async def test_an_unknown_version_is_answered_with_the_newest_of_the_era(version):
    assert (await initialize(new(), version))["result"]["protocolVersion"] == "2025-11-25"


async def test_a_server_offers_only_what_it_speaks():
    server = new(names=("2024-11-05", "2025-03-26"))
    assert (await initialize(server, "2025-06-18"))["result"]["protocolVersion"] == "2025-03-26"


async def test_without_a_handshake_revision_initialize_names_what_there_is():
    told = (await initialize(new(names=("2026-07-28",)), "2025-06-18"))["error"]
    assert told["code"] == -32022
    assert told["data"] == {"supported": ["2026-07-28"], "requested": "2025-06-18"}
    assert "2026-07-28" in told["message"]


@pytest.mark.parametrize(
    ("version", "capabilities", "info"),
    [
        ("2024-11-05", {"tools", "resources", "prompts", "logging", "experimental"}, {"name", "version"}),
        (
            "2025-06-18",
            {"tools", "resources", "prompts", "logging", "experimental", "completions"},
            {"name", "version", "title"},
        ),
        ("2025-11-25", set(CAPABILITIES), set(INFO)),
    ],
)
async def test_the_introduction_is_in_the_words_of_the_revision(version, capabilities, info):
    result = (await initialize(new(), version))["result"]
    assert set(result) == {"protocolVersion", "capabilities", "serverInfo", "instructions"}
    assert set(result["capabilities"]) == capabilities
    assert set(result["serverInfo"]) == info


async def test_a_handler_that_says_little_is_introduced_all_the_same():
    async def silent(exchange):
        return {}

    result = (await initialize(new(silent)))["result"]
    assert result == {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "serverInfo": {"name": "unknown", "version": "0"},
    }


async def test_a_second_initialize_is_refused_and_changes_nothing():
    server = await opened(version="2025-06-18")
    told = (await initialize(server, "2025-11-25"))["error"]
    assert told["code"] == -32600
    assert server.revision.name == "2025-06-18"


async def test_two_at_once_open_one_session():
    handler = Handler()
    handler.discovering.clear()
    server = new(handler)
    first = asyncio.ensure_future(initialize(server, "2025-06-18"))
    await turns()
    assert (await initialize(server, "2025-11-25", id=2))["error"]["code"] == -32600
    handler.discovering.set()
    assert (await first)["result"]["protocolVersion"] == "2025-06-18"


async def test_an_introduction_that_fails_can_be_tried_again(caplog):
    attempts = []

    async def flaky(exchange):
        attempts.append(exchange)
        if len(attempts) == 1:
            raise RuntimeError("not yet")
        return {}

    server = new(flaky)
    assert (await initialize(server))["error"]["code"] == -32603
    assert server.revision is None
    assert "result" in await initialize(server)


async def test_the_peer_is_who_it_said_for_the_whole_session():
    server = await opened(capabilities={"roots": {}}, principal=ANONYMOUS)
    assert (server.peer.name, server.peer.can("roots"), server.peer.principal) == ("c", True, ANONYMOUS)
    assert new().peer.principal is LOCAL


# --- before and while opening ---


@pytest.mark.parametrize("method", ["tools/list", "example/own", "shutdown"])
async def test_nothing_is_served_before_initialize(method):
    told = await error_of(begin(new(), method))
    assert told["code"] == -32602
    assert "initialize" in told["message"]
    assert told["data"]["supported"][0] == "2026-07-28"


async def test_a_ping_is_answered_at_any_time():
    assert await done(begin(new(), "ping")) == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert "result" in await done(begin(await opened(), "ping"))


async def test_a_request_that_comes_while_opening_waits_and_is_served():
    handler = Handler()
    handler.discovering.clear()
    server = new(handler)
    opening = asyncio.ensure_future(initialize(server))
    await turns()
    early = asyncio.ensure_future(done(begin(server, "tools/list", {}, 2)))
    await turns()
    assert not early.done()
    handler.discovering.set()
    assert "result" in await opening
    assert (await early)["result"]["method"] == "tools/list"


async def test_a_request_that_waited_for_a_failed_opening_is_refused(caplog):
    gate = asyncio.Event()

    async def failing(exchange):
        await gate.wait()
        raise RuntimeError("never")

    server = new(failing)
    opening = asyncio.ensure_future(initialize(server))
    await turns()
    early = asyncio.ensure_future(done(begin(server, "tools/list", {}, 2)))
    await turns()
    gate.set()
    assert "error" in await opening
    assert (await early)["error"]["code"] == -32602


async def test_a_verb_that_comes_while_opening_waits_too():
    # A log level set right behind `initialize` must not be refused.
    handler = Handler()
    handler.discovering.clear()
    server = new(handler)
    opening = asyncio.ensure_future(initialize(server))
    await turns()
    level = asyncio.ensure_future(done(begin(server, "logging/setLevel", {"level": "error"}, 2)))
    await turns()
    handler.discovering.set()
    await opening
    assert (await level)["result"] == {}
    assert server.peer.log_level == "error"


# --- open ---


@pytest.mark.parametrize(
    ("version", "method"),
    [
        ("2025-11-25", "server/discover"),
        ("2025-11-25", "sampling/createMessage"),
        ("2025-11-25", "tasks/list"),
        ("2025-06-18", "tasks/get"),
    ],
)
async def test_a_method_of_another_revision_does_not_exist(version, method):
    told = await error_of(begin(await opened(version=version), method, {}))
    assert told["code"] == -32601


async def test_other_methods_are_the_handlers_business():
    server = await opened()
    for method in ("tools/list", "example/own"):
        assert (await done(begin(server, method, {})))["result"]["method"] == method


async def test_a_result_is_in_the_words_of_the_session():
    async def verb(exchange):
        return {"tools": [{"name": "n", "title": "T"}], "ttlMs": 1}

    server = await opened(Handler(verb=verb), "2024-11-05")
    assert (await done(begin(server, "tools/list", {})))["result"] == {"tools": [{"name": "n"}]}


# --- ready ---


async def test_initialized_before_initialize_means_nothing():
    told = []
    server = new(on_ready=lambda: told.append(1))
    stream(server.initialized())
    assert told == []


async def test_initialized_counts_once_and_starts_one_stream():
    told, handler = [], Handler()
    server = await opened(handler, on_ready=lambda: told.append(1))
    stream(server.initialized())
    stream(server.initialized())
    await turns()
    assert told == [1]
    assert len(handler.listened) == 1
    await end_streams()


async def test_the_stream_asks_for_what_the_server_declared():
    handler = Handler()
    await opened(handler, ready=True)
    [exchange] = handler.listened
    wanted = exchange.params.notifications
    assert (wanted.tools_list_changed, wanted.prompts_list_changed, wanted.resources_list_changed) == (
        True,
        False,
        True,
    )
    await end_streams()


async def test_change_notices_are_told_to_the_session_in_its_words():
    outlet, handler = Outlet(), Handler()
    await opened(handler, ready=True, outlet=outlet)
    [exchange] = handler.listened
    await exchange.notify("notifications/subscriptions/acknowledged", {"notifications": {}})
    await exchange.notify("notifications/tools/list_changed", {})
    assert outlet.told == [("notifications/tools/list_changed", {})]
    await end_streams()


async def test_initialized_may_overtake_the_answer():
    handler = Handler()
    handler.discovering.clear()
    server = new(handler)
    opening = asyncio.ensure_future(initialize(server))
    await turns()
    stream(server.initialized())
    await turns()
    assert handler.listened == []
    handler.discovering.set()
    await opening
    await turns()
    assert len(handler.listened) == 1
    await end_streams()


async def test_a_stream_for_an_opening_that_failed_is_never_asked_for(caplog):
    gate = asyncio.Event()
    asked = []

    async def failing(exchange):
        asked.append(exchange.method)
        await gate.wait()
        raise RuntimeError("never")

    server = new(failing)
    opening = asyncio.ensure_future(initialize(server))
    await turns()
    stream(server.initialized())
    gate.set()
    await opening
    await turns()
    assert asked == ["server/discover"]


async def test_a_handler_without_change_notices_is_fine(caplog):
    await opened(Handler(listens=False), ready=True)
    await end_streams()
    assert not caplog.records


async def test_a_stream_that_breaks_is_logged(caplog):
    async def broken(exchange):
        if exchange.method == "server/discover":
            return {}
        raise RuntimeError("stream")

    with caplog.at_level(logging.ERROR, "interlock.server"):
        await opened(broken, ready=True)
    assert "change notices" in caplog.text


# --- asking ---


def asking(method="roots/list", needs=()):
    async def verb(exchange):
        return {"answer": await exchange.ask(Question(method, {}, needs))}

    return verb


async def test_a_question_waits_for_initialized():
    outlet = Outlet(result_frame({"roots": []}))
    server = await opened(Handler(verb=asking()), capabilities={"roots": {}})
    work = asyncio.ensure_future(done(begin(server, "tools/call", {"name": "a"}, 2, outlet)))
    await turns()
    assert outlet.asked == []  # nothing but pings and logs before `initialized` (basic/lifecycle)
    stream(server.initialized())
    assert (await work)["result"] == {"answer": {"roots": []}}
    assert [method for method, *_ in outlet.asked] == ["roots/list"]
    await end_streams()


async def test_a_question_that_may_not_be_asked_does_not_wait():
    server = await opened(Handler(verb=asking()))
    told = await error_of(begin(server, "tools/call", {"name": "a"}))
    assert told["code"] == -32601
    assert told["data"] == {"requiredCapabilities": {"roots": {}}}


@virtual_time
async def test_a_client_that_never_says_initialized_is_given_up():
    caught = []

    async def verb(exchange):
        try:
            await exchange.ask(Question("roots/list", {}))
        except LocalError as error:
            caught.append(str(error))
        return {}

    server = await opened(Handler(verb=verb), capabilities={"roots": {}})
    await done(begin(server, "tools/call", {"name": "a"}))
    assert "initialized" in caught[0]


# --- the old verbs ---


async def test_the_log_level_of_the_session():
    server = await opened()
    assert server.peer.log_level == "info"  # until the client says otherwise (server/utilities/logging)
    for level in ("debug", "emergency"):
        assert (await done(begin(server, "logging/setLevel", {"level": level})))["result"] == {}
        assert server.peer.log_level == level


async def test_warn_is_a_courtesy():
    # handshake.md §16.10: peers written from a summary say `warn`.
    server = await opened()
    assert "result" in await done(begin(server, "logging/setLevel", {"level": "warn"}))
    assert server.peer.log_level == "warning"
    strict = await opened(strict=True)
    assert (await error_of(begin(strict, "logging/setLevel", {"level": "warn"})))["code"] == -32602


async def test_a_level_that_is_none_is_refused():
    server = await opened()
    told = await error_of(begin(server, "logging/setLevel", {"level": "loud"}))
    assert told["code"] == InvalidParams.code
    assert server.peer.log_level == "info"


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("logging/setLevel", {"level": "info"}),
        ("resources/subscribe", {"uri": "a:b"}),
        ("resources/unsubscribe", {"uri": "a:b"}),
    ],
)
async def test_a_verb_behind_an_undeclared_capability_does_not_exist(method, params):
    server = await opened(Handler({"resources": {}}))
    assert (await error_of(begin(server, method, params)))["code"] == -32601


async def test_subscriptions_are_what_the_stream_watches():
    handler = Handler()
    server = await opened(handler, ready=True)
    wanted = handler.listened[0].params.notifications
    for method, params, watched in (
        ("resources/subscribe", {"uri": "a:b"}, {"a:b"}),
        ("resources/subscribe", {"uri": "a:b"}, {"a:b"}),
        ("resources/subscribe", {"uri": "a:c"}, {"a:b", "a:c"}),
        ("resources/unsubscribe", {"uri": "a:b"}, {"a:c"}),
        ("resources/unsubscribe", {"uri": "a:never"}, {"a:c"}),
    ):
        assert (await done(begin(server, method, params)))["result"] == {}
        assert wanted.resource_subscriptions == watched
    await end_streams()


async def test_a_subscription_made_before_initialized_counts():
    handler = Handler()
    server = await opened(handler)
    await done(begin(server, "resources/subscribe", {"uri": "a:b"}))
    stream(server.initialized())
    await turns()
    assert handler.listened[0].params.notifications.resource_subscriptions == {"a:b"}
    await end_streams()


async def test_shutdown_is_a_courtesy():
    assert (await done(begin(await opened(), "shutdown")))["result"] == {}
    assert (await error_of(begin(await opened(strict=True), "shutdown")))["code"] == -32601


async def test_a_question_after_initialized_does_not_wait():
    outlet = Outlet(result_frame({"roots": []}))
    server = await opened(Handler(verb=asking()), capabilities={"roots": {}}, ready=True)
    answer = await done(begin(server, "tools/call", {"name": "a"}, 2, outlet))
    assert answer["result"] == {"answer": {"roots": []}}
    await end_streams()


async def test_a_server_without_the_handshake_has_no_ping():
    assert (await error_of(begin(new(names=("2026-07-28",)), "ping")))["code"] == -32602


async def test_what_was_not_declared_is_not_used_though_it_is_added_later():
    assert (await opened(Handler({"tools": {}}))).peer.log_level is None


# --- the same session in another process ---


async def test_a_session_goes_on_in_another_process():
    first = await opened(capabilities={"roots": {}}, ready=True)
    await done(begin(first, "logging/setLevel", {"level": "error"}))
    await done(begin(first, "resources/subscribe", {"uri": "note://1"}))
    handler = Handler()
    second = new(handler)
    assert second.record() is None
    assert second.recall(first.record())
    assert second.record(7) == first.record(7) and second.record(7).speaker == 7
    assert (second.peer.name, second.peer.log_level, second.peer.can("roots")) == ("c", "error", True)
    assert (await done(begin(second, "x/y")))["result"] == {"method": "x/y"}
    await end_streams()


async def test_what_was_recalled_changes_with_its_record_also_for_who_listens():
    handler, told = Handler(), []
    first, second = await opened(), new(handler, on_ready=lambda: told.append(True))
    second.recall(first.record())
    stream(first.initialized())
    await done(begin(first, "resources/subscribe", {"uri": "note://1"}))
    second.recall(first.record())
    stream(second.listen())
    await turns()
    [listening] = handler.listened
    for verb in ("resources/subscribe", "resources/unsubscribe"):
        await done(begin(first, verb, {"uri": "note://2"}))
        second.recall(first.record())
        watched = listening.params.notifications.resource_subscriptions
        assert watched == {"note://1", "note://2"} if verb == "resources/subscribe" else {"note://1"}
    assert told == [True]
    await end_streams()


async def test_a_revision_that_is_not_spoken_cannot_be_recalled():
    first = await opened(version="2025-06-18")
    other = new(names=("2025-11-25",))
    assert not other.recall(first.record()) and other.revision is None
