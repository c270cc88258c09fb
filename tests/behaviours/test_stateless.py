"""A modern server remembers nothing between two requests: basic/index#statelessness."""

import json

import aiohttp
import pytest

from support.asgi import envelope, headers_of, message
from support.http_socket import served
from support.modern_peer import REQUESTS, connected, hears, modern, settled
from support.wire_peer import CAPABILITIES_KEY, CLIENT_KEY, MODERN, VERSION_KEY, fresh, server_under_test

pytestmark = pytest.mark.filterwarnings("ignore::interlock.revisions.deprecation.DeprecatedFeature")

LEVEL_KEY = "io.modelcontextprotocol/logLevel"
LISTS = ("tools/list", "resources/list", "resources/templates/list", "prompts/list")


@modern
@pytest.mark.requirement("STATELESS-001")
@pytest.mark.parametrize("missing", [VERSION_KEY, CAPABILITIES_KEY])
async def test_what_an_earlier_request_said_does_not_complete_a_later_one(carrier, revision, missing):
    async with server_under_test(carrier, revision) as peer:
        complete = peer.frame("tools/list", {}, id="complete")
        peer.send(complete)
        assert "result" in await peer.response("complete")
        lacking = {key: value for key, value in peer.envelope().items() if key != missing}
        peer.send(complete | {"id": "lacking", "params": {"_meta": lacking}}, judged=False)
        assert (await peer.response("lacking"))["error"]["code"] == -32602


@modern
@pytest.mark.requirement("STATELESS-001", "META-022")
async def test_no_context_is_taken_from_an_earlier_request(carrier, revision):
    """Name, capabilities, log level, progress token: each request has its own or none."""
    async with server_under_test(carrier, revision) as peer:
        full = {
            CLIENT_KEY: {"name": "ada", "version": "1"},
            CAPABILITIES_KEY: {"sampling": {}, "roots": {}},
            LEVEL_KEY: "debug",
            "progressToken": "p",
            "traceparent": "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01",
        }
        who = await peer.result("tools/call", {"name": "who"}, meta=full)
        assert (who["structuredContent"]["name"], who["structuredContent"]["sampling"]) == ("ada", True)

        bare = {VERSION_KEY: revision, CAPABILITIES_KEY: {}}
        for id, name, arguments in (("1", "who", {}), ("2", "shout", {}), ("3", "steps", {"count": 2})):
            params = {"name": name, "arguments": arguments, "_meta": bare}
            peer.send({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
            answer = await peer.response(id)
            if name == "who":
                expected = {"name": "unknown", "sampling": False, "elicitation": False, "roots": False, "trace": {}}
                assert answer["result"]["structuredContent"] == expected
        assert peer.heard == []


@modern
@pytest.mark.requirement("STATELESS-002")
async def test_two_conversations_may_share_a_connection(carrier, revision):
    """Both are in flight at the same time, and neither sees anything of the other."""
    people = {
        "ada": {CAPABILITIES_KEY: {"sampling": {}}, LEVEL_KEY: "debug", "progressToken": "of-ada"},
        "bob": {CAPABILITIES_KEY: {}, "progressToken": "of-bob"},
    }
    async with server_under_test(carrier, revision, server="changing") as peer:
        call = {"name": "meet", "arguments": {"party": "tea"}}
        for name, meta in people.items():
            meta = {CLIENT_KEY: {"name": name, "version": "1"}, **meta}
            peer.send(peer.frame("tools/call", call, id=name, meta=meta))
        for name in people:
            answer = await hears(peer, lambda frame, name=name: frame.get("id") == name)
            assert answer["result"]["structuredContent"] == {"name": name, "sampling": name == "ada"}
        told = {each["progressToken"]: each["message"] for each in peer.notices("notifications/progress")}
        assert told == {"of-ada": "ada", "of-bob": "bob"}
        assert [each["data"] for each in peer.notices("notifications/message")] == ["ada"]


@modern
@pytest.mark.requirement("STATELESS-003", "STATELESS-005", "STATELESS-008")
async def test_a_cursor_is_good_on_any_connection_and_in_any_process(carrier, revision):
    """The one handle that the library itself gives out: it holds its place, no connection has to."""
    seen, cursor = [], None
    while True:
        async with server_under_test(carrier, revision, server="lean") as peer:
            page = await peer.result("tools/list", {"cursor": cursor} if cursor is not None else {})
        seen += [tool["name"] for tool in page["tools"]]
        cursor = page.get("nextCursor")
        if cursor is None:
            break
        assert len(seen) < 100
    assert seen == ["first", "second", "third", "grow", "touch"]


def answered(requests):
    """An answer that fits each question, by the types of its fields."""
    fitting, found = {"string": "soup", "integer": 2, "boolean": True}, {}
    for key, question in requests.items():
        fields = question["params"]["requestedSchema"]["properties"]
        content = {name: fitting[field["type"]] for name, field in fields.items()}
        found[key] = {"action": "accept", "content": content}
    return found


async def round_by_round(send):
    """Book a flight, whose questions take several requests; `send` makes each, and says how it went."""
    call, inputs, rounds = {"name": "book", "arguments": {"flight": "LH1"}}, {}, 0
    while True:
        result = await send({**call, **inputs})
        if result["resultType"] != "input_required":
            return rounds, result["content"][0]["text"]
        rounds += 1
        inputs = {"requestState": result["requestState"], "inputResponses": answered(result["inputRequests"])}
        assert rounds < 10


BOOKED = "LH1, row 2, soup, 2 bags, 2 pets, receipt 1, True"


@modern
@pytest.mark.requirement("STATELESS-003", "STATELESS-005")
async def test_a_call_of_several_rounds_goes_on_at_any_connection_and_in_any_process(carrier, revision):
    """The other handle: what was asked and done so far travels with the client, each round to a fresh server."""

    async def send(params):
        async with server_under_test(carrier, revision, server="asking") as peer:
            peer.capabilities = {"elicitation": {}}
            return await peer.result("tools/call", params)

    rounds, told = await round_by_round(send)
    assert rounds >= 4 and told == BOOKED, "what was done in one process counts in the next"


@pytest.mark.requirement("STATELESS-003", "STATELESS-005")
async def test_each_request_may_come_to_another_replica_over_http():
    """Replicas with the same keys and nothing else in common, and a new connection for each request."""

    async def send(params):
        app = fresh("support.servers.asking").server.asgi()
        async with served(app) as port, aiohttp.ClientSession() as session:
            frame = message("tools/call", meta=envelope(**{CAPABILITIES_KEY: {"elicitation": {}}}), **params)
            headers = {
                name.decode(): value.decode() for name, value in headers_of(frame, {"host": f"127.0.0.1:{port}"})
            }
            async with session.post(f"http://127.0.0.1:{port}/mcp", json=frame, headers=headers) as answer:
                text = await answer.text()
        events = [line.removeprefix("data:") for line in text.splitlines() if line.startswith("data:")] or [text]
        return json.loads(events[-1])["result"]

    rounds, told = await round_by_round(send)
    assert rounds >= 4 and told == BOOKED


@modern
@pytest.mark.requirement("STATELESS-006")
async def test_lists_do_not_depend_on_what_was_asked_before(carrier, revision):
    async with server_under_test(carrier, revision) as one, server_under_test(carrier, revision) as other:
        before = [await one.result(method, {}) for method in LISTS]
        for method, params in REQUESTS:
            await one.result(method, params)
        await one.error("tools/call", {"name": "no-such-tool"})
        assert [await one.result(method, {}) for method in LISTS] == before
        assert [await other.result(method, {}) for method in LISTS] == before


@pytest.mark.requirement("STATELESS-006")
async def test_a_change_is_seen_on_every_connection():
    """A list may change; it is the server's then, not that of the connection that changed it."""
    server = fresh("support.servers.changing").server
    async with connected(server) as one, connected(server) as other:
        for kind in ("tools", "prompts", "resources"):
            before = await other.result(f"{kind}/list", {})
            await one.result("tools/call", {"name": "change", "arguments": {"kind": kind}})
            after = await other.result(f"{kind}/list", {})
            assert len(after[kind]) == len(before[kind]) + 1
            assert await one.result(f"{kind}/list", {}) == after


@pytest.mark.requirement("STATELESS-010")
async def test_what_a_lost_connection_left_behind_is_stopped_and_not_resumed():
    """There is no resumption: whoever needs work to outlive a connection uses tasks."""
    server = fresh("support.servers.changing").server
    async with connected(server) as lost:
        call = {"name": "wait", "arguments": {"name": "it"}}
        lost.send(lost.frame("tools/call", call, id="long", meta={"progressToken": "p"}))
        await lost.expect("notifications/progress")
    async with connected(server, MODERN[0]) as peer:
        stopped = await peer.result("tools/call", {"name": "was_stopped", "arguments": {"name": "it"}})
        assert stopped["content"][0]["text"] == "True"
        await peer.result("tools/call", {"name": "fancy"}, id="long")  # the id is as free as any other
        await settled(peer)
        assert peer.heard == []
