"""A server of both eras: every message is judged on its own (basic/versioning, modern.md §11).

In these tests the older conversation counts its requests, the newer one names them: the type of an id tells the era.
"""

import asyncio

import pytest

from interlock import Client
from support.modern_peer import ACKNOWLEDGED, NOTICE_OF, UPDATED, connected, hears, modern, same, settled, tag_of
from support.transcripts import Transcript
from support.wire_peer import (
    CAPABILITIES_KEY,
    CARRIERS,
    CLIENT_KEY,
    HANDSHAKE,
    MODERN,
    VERSION_KEY,
    fresh,
    server_under_test,
)

pytestmark = pytest.mark.filterwarnings("ignore::interlock.revisions.deprecation.DeprecatedFeature")

REMOVED = {
    "initialize": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
    "ping": {},
    "logging/setLevel": {"level": "debug"},
    "resources/subscribe": {"uri": "note://one"},
    "resources/unsubscribe": {"uri": "note://one"},
}
LEVEL_KEY = "io.modelcontextprotocol/logLevel"


def over_both(test):
    """Every carrier, every revision of the older era."""
    return pytest.mark.parametrize("carrier", CARRIERS)(pytest.mark.parametrize("revision", HANDSHAKE)(test))


def envelope(**more):
    return {VERSION_KEY: MODERN[0], CAPABILITIES_KEY: {}, CLIENT_KEY: {"name": "new", "version": "1"}, **more}


def send_modern(peer, method, params=None, *, id, judged=True, **meta):
    frame = {"jsonrpc": "2.0", "id": id, "method": method, "params": {**(params or {}), "_meta": envelope(**meta)}}
    peer.send(frame, judged=judged)


async def ask_modern(peer, method, params=None, *, id, judged=True, **meta):
    send_modern(peer, method, params, id=id, judged=judged, **meta)
    return await peer.response(id)


def judge_apart(peer):
    """Every frame by the schema of its own era."""
    for revision, kind in ((peer.revision, int), (MODERN[0], str)):
        transcript = Transcript(revision)
        transcript.entries = [entry for entry in peer.transcript.entries if isinstance(_key(entry.frame), kind)]
        assert transcript.entries
        transcript.check()


def _key(frame):
    """The id a frame has or speaks of; 0 for what belongs to no request, which only the older era has."""
    params = frame.get("params", {})
    found = (frame.get("id"), tag_of(frame), params.get("progressToken"), params.get("requestId"))
    return next((key for key in found if key is not None), 0)


@over_both
@pytest.mark.requirement("COMPAT-001", "COMPAT-002", "COMPAT-003", "VERSION-008")
async def test_both_eras_are_served_side_by_side(carrier, revision):
    """Each in its own words, whatever stands before and behind."""
    async with server_under_test(carrier, revision, check=False) as peer:
        for method, params in (
            ("tools/list", {}),
            ("tools/call", {"name": "record", "arguments": {}}),
            ("resources/read", {"uri": "note://one"}),
            ("prompts/get", {"name": "greet", "arguments": {"name": "Ada"}}),
        ):
            old = await peer.result(method, params)
            assert not old.keys() & {"resultType", "ttlMs", "cacheScope", "_meta"}
            new = (await ask_modern(peer, method, params, id=f"new {method}"))["result"]
            assert new["resultType"] == "complete"
            assert "_meta" in new
        assert (await peer.error("resources/read", {"uri": "note://none"}))["code"] == -32002
        error = (await ask_modern(peer, "resources/read", {"uri": "note://none"}, id="none"))["error"]
        assert error["code"] == -32602
        judge_apart(peer)


@over_both
@pytest.mark.requirement("COMPAT-001", "COMPAT-002")
async def test_both_eras_are_in_flight_at_the_same_time(carrier, revision):
    """Two callers meet in one tool: each is known by what its own era says about it."""
    async with server_under_test(carrier, revision, server="changing", check=False) as peer:
        call = {"name": "meet", "arguments": {"party": "tea"}}
        peer.send(peer.frame("tools/call", call, id=900, meta={"progressToken": 900}))
        send_modern(peer, "tools/call", call, id="900", progressToken="900", **{CAPABILITIES_KEY: {"sampling": {}}})
        old = await hears(peer, lambda frame: same(frame.get("id"), 900))
        new = await hears(peer, lambda frame: same(frame.get("id"), "900"))
        assert '"raw"' in old["result"]["content"][0]["text"]
        assert new["result"]["structuredContent"] == {"name": "new", "sampling": True}
        tokens = [each["progressToken"] for each in peer.notices("notifications/progress")]
        assert sorted(tokens, key=repr) == ["900", 900]
        # The older client hears warnings unless it says otherwise, the newer one only if it asks for them.
        assert [each["data"] for each in peer.notices("notifications/message")] == ["raw"]
        judge_apart(peer)


@over_both
@pytest.mark.requirement("COMPAT-002", "COMPAT-003")
async def test_what_one_era_sets_does_not_reach_the_other(carrier, revision):
    async with server_under_test(carrier, revision, check=False) as peer:
        await peer.result("logging/setLevel", {"level": "error"})
        await ask_modern(peer, "tools/call", {"name": "shout"}, id="silent")
        assert peer.notices("notifications/message") == []
        await ask_modern(peer, "tools/call", {"name": "shout"}, id="loud", **{LEVEL_KEY: "debug"})
        assert [each["level"] for each in peer.notices("notifications/message")] == ["debug", "warning", "error"]
        peer.heard.clear()
        await peer.result("tools/call", {"name": "shout"})
        assert [each["level"] for each in peer.notices("notifications/message")] == ["error"]


@over_both
@pytest.mark.requirement("COMPAT-002", "COMPAT-003")
async def test_each_era_hears_of_changes_in_its_own_way(carrier, revision):
    """One change, two notices: unsolicited and bare for the older client, tagged for the newer."""
    async with server_under_test(carrier, revision, server="changing", check=False) as peer:
        wanted = {"toolsListChanged": True, "resourceSubscriptions": ["note://two"]}
        send_modern(peer, "subscriptions/listen", {"notifications": wanted}, id="sub")
        await peer.expect(ACKNOWLEDGED)
        await peer.result("resources/subscribe", {"uri": "note://one"})
        await peer.result("tools/call", {"name": "change", "arguments": {"kind": "tools"}})
        for uri in ("note://one", "note://two"):
            await peer.result("tools/call", {"name": "touch", "arguments": {"uri": uri}})
        await settled(peer)
        told = [(frame["method"], frame["params"].get("uri"), tag_of(frame)) for frame in peer.heard]
        assert sorted(told, key=repr) == sorted(
            [
                (NOTICE_OF["tools"], None, None),
                (NOTICE_OF["tools"], None, "sub"),
                (UPDATED, "note://one", None),
                (UPDATED, "note://two", "sub"),
            ],
            key=repr,
        )
        judge_apart(peer)


@over_both
@pytest.mark.requirement("COMPAT-002")
async def test_cancelling_finds_the_request_of_either_era(carrier, revision):
    async with server_under_test(carrier, revision, server="changing", check=False) as peer:
        for id, name in ((901, "old"), ("901", "new")):
            call = {"name": "wait", "arguments": {"name": name}}
            if id == 901:
                peer.send(peer.frame("tools/call", call, id=id, meta={"progressToken": id}))
            else:
                send_modern(peer, "tools/call", call, id=id, progressToken=id)
            await peer.expect("notifications/progress")
        for id, mine, other in (("901", "new", "old"), (901, "old", "new")):
            peer.notify("notifications/cancelled", {"requestId": id})
            assert await _was_stopped(peer, mine) is True
            if id == "901":
                assert await _was_stopped(peer, other) is False
        assert not [frame for frame in peer.heard if "id" in frame]


async def _was_stopped(peer, name):
    await settled(peer)
    result = await peer.result("tools/call", {"name": "was_stopped", "arguments": {"name": name}})
    return result["content"][0]["text"] == "True"


@over_both
@pytest.mark.requirement("COMPAT-004")
async def test_removed_methods_do_not_exist_in_an_envelope(carrier, revision):
    """Not even in the middle of a session that knows them, and they change nothing in it."""
    async with server_under_test(carrier, revision, server="changing", check=False) as peer:
        for method, params in REMOVED.items():
            answer = await ask_modern(peer, method, params, id=method, judged=False)
            assert answer["error"]["code"] == -32601, method
            empty = await ask_modern(peer, method, {}, id=f"{method} {{}}", judged=False)
            assert empty["error"]["code"] == -32601, method
        await peer.result("tools/call", {"name": "touch", "arguments": {"uri": "note://one"}})
        await settled(peer)
        assert peer.heard == []  # no subscription came of it
        assert await peer.result("ping") == {}  # and the session stands


@modern
@pytest.mark.requirement("COMPAT-004")
@pytest.mark.parametrize("server", ["basic", "lean"])
@pytest.mark.parametrize("method", REMOVED)
async def test_removed_methods_do_not_exist_without_a_session_either(carrier, revision, server, method):
    async with server_under_test(carrier, revision, server=server) as peer:
        for params in (REMOVED[method], {}):
            assert (await peer.error(method, params, judged=False))["code"] == -32601
        # An `initialize` of the newest revision opened nothing.
        peer.send({"jsonrpc": "2.0", "id": "bare", "method": "tools/list"}, judged=False)
        assert "error" in await peer.response("bare")


@over_both
@pytest.mark.requirement("COMPAT-003")
async def test_a_client_may_look_first_and_then_shake_hands(carrier, revision):
    """`server/discover` settles nothing (modern.md §11): an older client goes on as if nothing had been."""
    async with server_under_test(carrier, revision, opened=False, check=False) as peer:
        found = (await ask_modern(peer, "server/discover", id="look"))["result"]
        assert revision in found["supportedVersions"]
        refused = await ask_modern(peer, "tools/list", id="old version", **{VERSION_KEY: revision})
        assert refused["error"]["code"] == -32022
        assert revision in refused["error"]["data"]["supported"]
        assert (await peer.open())["protocolVersion"] == revision
        assert "resultType" not in await peer.result("tools/list", {})
        judge_apart(peer)


@over_both
@pytest.mark.requirement("COMPAT-003")
async def test_a_handshake_holds_for_the_whole_process(carrier, revision):
    """Modern requests in between neither end it nor open a second one."""
    async with server_under_test(carrier, revision, check=False) as peer:
        await ask_modern(peer, "server/discover", id="between")
        again = {"protocolVersion": HANDSHAKE[0], "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        assert "error" in await peer.request("initialize", again)
        await ask_modern(peer, "tools/list", id="between again")
        who = await peer.result("tools/call", {"name": "who", "arguments": {}})
        assert '"raw"' in who["content"][0]["text"]


@over_both
@pytest.mark.requirement("COMPAT-003")
async def test_the_methods_of_the_newer_era_need_its_envelope(carrier, revision):
    async with server_under_test(carrier, revision) as peer:
        for method, params in (("server/discover", {}), ("subscriptions/listen", {"notifications": {}})):
            assert (await peer.error(method, params))["code"] == -32601


@over_both
@pytest.mark.requirement("COMPAT-002", "META-004")
async def test_a_broken_envelope_is_not_served_by_the_session(carrier, revision):
    """It names a version, so it is of the newer era, where it is malformed; the session is not a second chance."""
    async with server_under_test(carrier, revision, check=False) as peer:
        for number, meta in enumerate(
            [{VERSION_KEY: MODERN[0]}, {VERSION_KEY: None}, {VERSION_KEY: 5, CAPABILITIES_KEY: {}}]
        ):
            frame = {"jsonrpc": "2.0", "id": f"b{number}", "method": "tools/list", "params": {"_meta": meta}}
            peer.send(frame, judged=False)
            assert (await peer.response(f"b{number}"))["error"]["code"] == -32602


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", MODERN)
@pytest.mark.requirement("COMPAT-005")
@pytest.mark.parametrize("offered", [*HANDSHAKE, *MODERN, "1900-01-01"])
async def test_a_server_of_the_newer_era_alone_names_its_versions_to_initialize(carrier, revision, offered):
    async with server_under_test(carrier, revision, server="lean", opened=False) as peer:
        params = REMOVED["initialize"] | {"protocolVersion": offered}
        peer.send({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": params}, judged=False)
        error = (await peer.response("hello"))["error"]
        assert revision in error["message"]
        assert revision in error["data"]["supported"]
        peer.notify("notifications/initialized", judged=False)
        peer.send({"jsonrpc": "2.0", "id": "list", "method": "tools/list"}, judged=False)
        assert "error" in await peer.response("list")
        await peer.result("tools/list", {})  # and the newer era is served on


@over_both
@pytest.mark.requirement("COMPAT-003", "VERSION-002", "VERSION-003")
async def test_a_server_of_the_older_era_alone_says_so_to_a_newer_client(carrier, revision):
    """-32022 with the list is what lets a client of both eras choose without guessing (modern.md §11)."""
    async with server_under_test(carrier, revision, server="handshake_only", check=False) as peer:
        for method in ("server/discover", "tools/list", "no/such/method"):
            error = (await ask_modern(peer, method, id=method))["error"]
            assert error["code"] == -32022
            assert sorted(error["data"]["supported"]) == sorted(HANDSHAKE)
            assert error["data"]["requested"] == MODERN[0]
        assert [tool["name"] for tool in (await peer.result("tools/list", {}))["tools"]] == ["first"]


# --- both at once, and neither for the other ---

SAMPLED = {"role": "assistant", "content": {"type": "text", "text": "Paris"}, "model": "small"}


@over_both
@pytest.mark.requirement("COMPAT-001", "COMPAT-002")
async def test_many_calls_of_both_eras_at_once(carrier, revision):
    """Sent without waiting, answered in any order, each exactly once and in the words of its era."""
    async with server_under_test(carrier, revision, check=False) as peer:
        for number in range(1000, 1030):
            call = {"name": ("add", "add_in_thread")[number % 2], "arguments": {"a": number, "b": 1}}
            peer.send(peer.frame("tools/call", call, id=number))
            send_modern(peer, "tools/call", call, id=str(number))
        answers = [await peer.receive() for _ in range(60)]
        assert len({repr(answer["id"]) for answer in answers}) == 60
        for answer in answers:
            assert answer["result"]["content"][0]["text"] == str(int(answer["id"]) + 1)
            assert ("resultType" in answer["result"]) is isinstance(answer["id"], str)
        judge_apart(peer)


@over_both
@pytest.mark.requirement("COMPAT-001", "COMPAT-003")
async def test_both_eras_are_asked_at_the_same_time(carrier, revision):
    """The older client by a request on its session, the newer by a result; each answer reaches its own call."""
    call = {"name": "sampled", "arguments": {}}
    able = {CAPABILITIES_KEY: {"sampling": {}}}
    async with server_under_test(
        carrier, revision, server="asking", capabilities={"sampling": {}}, check=False
    ) as peer:
        peer.send(peer.frame("tools/call", call, id=900))
        question = await peer.expect("sampling/createMessage")
        asked = (await ask_modern(peer, "tools/call", call, id="new", **able))["result"]
        [(key, told)] = asked["inputRequests"].items()
        assert told["params"]["messages"] == question["params"]["messages"]
        inputs = {"inputResponses": {key: {**SAMPLED, "content": {"type": "text", "text": "Rome"}}}}
        retry = {**call, **inputs, "requestState": asked["requestState"]}
        new = (await ask_modern(peer, "tools/call", retry, id="again", **able))["result"]
        peer.send({"jsonrpc": "2.0", "id": question["id"], "result": SAMPLED})
        old = (await peer.response(900))["result"]
        assert [each["content"][0]["text"] for each in (old, new)] == ["Paris", "Rome"]


@pytest.mark.parametrize("able", [{"sampling": {}}, {}])
@over_both
@pytest.mark.requirement("COMPAT-002", "COMPAT-003")
async def test_what_a_client_declares_in_one_era_does_not_count_in_the_other(carrier, revision, able):
    call = {"name": "sampled", "arguments": {}}
    async with server_under_test(carrier, revision, server="asking", capabilities=able, check=False) as peer:
        other = {CAPABILITIES_KEY: {} if able else {"sampling": {}}}
        new = await ask_modern(peer, "tools/call", call, id="new", **other)
        peer.send(peer.frame("tools/call", call, id=900))
        old = await peer.receive()
        if able:
            assert new["error"]["code"] == -32021
            assert old["method"] == "sampling/createMessage"
            peer.send({"jsonrpc": "2.0", "id": old["id"], "result": SAMPLED})
            assert (await peer.response(900))["result"]["content"][0]["text"] == "Paris"
        else:
            assert new["result"]["resultType"] == "input_required"
            assert (old["id"], old["error"]["code"]) == (900, -32601)


@over_both
@pytest.mark.requirement("COMPAT-003")
async def test_an_introduction_is_answered_in_the_words_of_its_own_era(carrier, revision):
    """Whatever the newer era did before; and a version that has no handshake is never agreed on."""
    async with server_under_test(carrier, revision, opened=False, check=False) as peer:
        await ask_modern(peer, "tools/list", id="before")
        early = await peer.error("tools/list", {}, judged=False)  # nobody has introduced himself yet
        assert early["code"] in (-32600, -32602)
        found = await peer.open()
        assert found.keys() <= {"protocolVersion", "capabilities", "serverInfo", "instructions"}
        assert (found["protocolVersion"], found["serverInfo"]["name"]) == (revision, "basic")
        judge_apart(peer)
    async with server_under_test(carrier, revision, opened=False, check=False) as peer:
        hello = {"protocolVersion": MODERN[0], "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        assert (await peer.result("initialize", hello))["protocolVersion"] == HANDSHAKE[-1]


@pytest.mark.parametrize("revision", HANDSHAKE)
@pytest.mark.requirement("COMPAT-001", "COMPAT-003")
async def test_a_handshake_holds_for_its_own_connection_alone(revision):
    """Two clients of one server: what the first one agreed on and set is not the second one's."""
    server = fresh("support.servers.basic").server
    apart = {"opened": False, "check": False}
    async with connected(server, revision) as first, connected(server, revision, **apart) as second:
        await first.result("logging/setLevel", {"level": "error"})
        assert "error" in await second.request("tools/list", {}, judged=False)
        assert "result" in await ask_modern(second, "tools/list", id="new")
        await second.open()
        for peer in (first, second):
            await peer.result("tools/call", {"name": "shout", "arguments": {}})
        assert [each["level"] for each in first.notices("notifications/message")] == ["error"]
        assert "warning" in [each["level"] for each in second.notices("notifications/message")]


@pytest.mark.parametrize("revision", HANDSHAKE)
@pytest.mark.requirement("COMPAT-001")
async def test_clients_of_both_eras_work_at_once_with_one_server(revision):
    server = fresh("support.servers.basic").server
    async with Client(server, revision=revision) as old, Client(server, revision=MODERN[0]) as new:
        assert (old.revision, new.revision) == (revision, MODERN[0])
        calls = [
            client.call_tool("add", {"a": number, "b": index})
            for number in range(20)
            for index, client in enumerate((old, new))
        ]
        found = [result.text for result in await asyncio.gather(*calls)]
        assert found == [str(number + index) for number in range(20) for index in range(2)]
