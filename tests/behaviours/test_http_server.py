"""The Streamable HTTP server of 2026-07-28: endpoint, headers, parameters in headers, streams, subscriptions.

Most tests speak to the ASGI application; what depends on a real server and a real connection does so over a socket.
Every exchange that follows the rules is judged by the official schema.
"""

import asyncio
import base64
import socket
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest

from interlock import Context, Server
from interlock.transport.http.runner import protocol
from interlock.transport.http.server.app import Timing
from interlock.web.asgi.message import HttpRefusal
from interlock.wire.errors import LocalError
from interlock.wire.exchange import Principal
from interlock.wire.sse import COMMENT
from support.asgi import CAPABILITIES_KEY, NEWEST, VERSION_KEY, call_tool, envelope, message, post
from support.http_socket import connection, http, served
from support.idle import until_idle
from support.transcripts import Transcript
from support.virtual_time import virtual_time

WAIT = 20.0
SERVER_KEY = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"
EVERYTHING = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}
CHANGED = {kind: f"notifications/{kind}/list_changed" for kind in ("tools", "prompts", "resources")}


def header(name: str) -> Any:
    return msgspec.Meta(extra_json_schema={"x-mcp-header": name})


class House:
    """One server of everything these tests need."""

    def __init__(self, **options):
        self.server = server = Server("house", version="1")
        self.running, self.stopped, self.go = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.steps = 0

        @server.tool
        async def hi() -> str:
            return "hi"

        @server.tool
        async def progress(ctx: Context, of: str = "") -> str:
            for step in range(3):
                await ctx.progress(step, 3, of)
                await asyncio.sleep(0.06)
            return of

        @server.tool
        async def work(ctx: Context) -> str:
            self.running.set()
            try:
                await ctx.progress(0)
                while not self.go.is_set():
                    await asyncio.sleep(0.01)
                    self.steps += 1
            finally:
                self.stopped.set()
            return "worked"

        @server.tool
        async def place(
            region: Annotated[str, header("Region")] = "",
            count: Annotated[int, header("Count")] = 0,
            exact: Annotated[bool, header("Exact")] = False,
        ) -> str:
            return f"{region} {count} {exact}"

        @server.resource("note://one")
        async def one() -> str:
            return "1"

        @server.prompt(name="grüßen")
        async def greet_in_german() -> str:
            return "Grüß Gott"

        @server.prompt
        async def greet(who: str = "you") -> str:
            return f"Hello {who}"

        self.app = server.asgi(**options)


async def ask(frame, changes=None, house=None, **options):
    """POST it and judge what was said by the schema."""
    answer = await post((house or House(**options)).app, frame, changes).answer()
    if answer.body and answer.headers["content-type"] == "application/json" and "id" in answer.json:
        told = Transcript(NEWEST).sent(frame, sender="client", judged="result" in answer.json)
        told.sent(answer.json, sender="server").check()
    return answer


async def refused(frame, changes=None, **options):
    answer = await ask(frame, changes, **options)
    return answer.status, answer.error["code"]


def listening(wanted: Any = EVERYTHING, id: Any = "L"):
    return message("subscriptions/listen", id, notifications=wanted)


# --- the endpoint ---


@pytest.mark.requirement("HTTP-001", "HTTP-015", "META-011")
async def test_one_path_takes_every_method_by_post():
    house = House()
    calls = [
        message("server/discover"),
        message("tools/list"),
        call_tool("hi"),
        message("resources/list"),
        message("resources/templates/list"),
        message("resources/read", uri="note://one"),
        message("prompts/list"),
        message("prompts/get", name="greet"),
    ]
    for frame in calls:
        answer = await ask(frame, house=house)
        assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
        assert answer.json["result"]["resultType"] == "complete"
        assert answer.json["result"]["_meta"][SERVER_KEY] == {"name": "house", "version": "1"}


@pytest.mark.requirement("HTTP-002", "HTTP-003", "HTTP-004")
@pytest.mark.parametrize("origin", ["http://evil.example.com", "null", "http://localhost.evil.example"])
async def test_a_foreign_origin_is_403_whatever_it_asks(origin):
    for frame in (call_tool("hi"), {"jsonrpc": "2.0", "method": "notifications/cancelled"}, b"no json"):
        answer = await post(House().app, frame, {"origin": origin}).answer()
        assert answer.status == 403
        assert "id" not in answer.json and answer.error["code"] == -32600


@pytest.mark.requirement("HTTP-002")
async def test_a_page_of_its_own_may_call():
    assert (await ask(call_tool("hi"), {"host": "localhost:80", "origin": "http://localhost:80"})).status == 200


@pytest.mark.requirement("HTTP-005", "TRANS-HTTP-05", "TRANS-SSE-02")
async def test_it_listens_to_this_machine_only(monkeypatch):
    bound = []
    really = socket.create_server
    monkeypatch.setattr(
        socket, "create_server", lambda address, **more: bound.append(address) or really(address, **more)
    )
    monkeypatch.setattr("interlock.transport.http.runner.serve.run_main", lambda main, loop, watcher: main.close())
    House().server.run("http", port=0)
    assert bound == [("127.0.0.1", 0)]
    with pytest.raises(LocalError):
        House().server.run("http", host="0.0.0.0", port=0)


@pytest.mark.requirement("HTTP-006")
async def test_connections_can_be_authenticated():
    def check(headers):
        if headers.get("authorization") == "Bearer good":
            return Principal("issuer", "someone")
        return HttpRefusal(401, (("www-authenticate", "Bearer"),))

    house = House(authenticate=check)
    assert (await post(house.app, call_tool("hi")).answer()).status == 401
    assert (await ask(call_tool("hi"), {"authorization": "Bearer good"}, house)).status == 200


@pytest.mark.requirement("COMPAT-018")
@pytest.mark.parametrize("verb", ["GET", "DELETE"])
async def test_the_old_verbs_are_405(verb):
    answer = await post(House().app, b"", method=verb).answer()
    assert (answer.status, answer.headers["allow"]) == (405, "POST")


@pytest.mark.requirement("COMPAT-019", "COMPAT-020")
async def test_sessions_and_resumption_are_ignored():
    answer = await ask(call_tool("hi"), {"mcp-session-id": "x", "last-event-id": "7"})
    assert answer.status == 200
    assert "mcp-session-id" not in answer.headers


# --- notifications ---


@pytest.mark.requirement("HTTP-012")
async def test_an_accepted_notification_is_202_without_a_body():
    answer = await post(House().app, {"jsonrpc": "2.0", "method": "notifications/example"}).answer()
    assert (answer.status, answer.body) == (202, b"")


@pytest.mark.requirement("HTTP-013", "HTTP-014")
@pytest.mark.parametrize(
    "frame",
    [
        {"jsonrpc": "2.0", "method": "notifications/example", "params": 5},
        {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "hi"}},
        {"jsonrpc": "2.0", "method": 7},
    ],
)
async def test_a_notification_that_cannot_be_accepted_is_an_error(frame):
    answer = await post(House().app, frame).answer()
    assert answer.status == 400
    assert "id" not in answer.json and "error" in answer.json


# --- streams ---


@pytest.mark.requirement("HTTP-015", "HTTP-017", "HTTP-019", "HTTP-020", "HTTP-022", "HTTP-025")
async def test_progress_precedes_the_answer_on_a_stream():
    frame = call_tool("progress", id="x", progressToken="p")
    answer = await post(House().app, frame).answer()
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.headers["x-accel-buffering"] == "no"
    *told, result = answer.events
    assert [each["method"] for each in told] == ["notifications/progress"] * 3
    assert not any("id" in each for each in told), "no request of the server's own"
    assert result["id"] == "x"
    assert answer.sent[-1]["body"].startswith(b"data: ") and not answer.sent[-1]["more_body"]
    assert not [line for line in answer.body.split(b"\n") if line.startswith((b"id:", b"retry:"))]
    transcript = Transcript(NEWEST).sent(frame, sender="client")
    for each in answer.events:
        transcript.sent(each, sender="server")
    transcript.check()


@pytest.mark.requirement("HTTP-018")
async def test_streams_do_not_mix():
    house = House()
    talks = {name: post(house.app, call_tool("progress", {"of": name}, id=name, progressToken=name)) for name in "abc"}
    for name, talk in talks.items():
        *told, result = (await talk.answer()).events
        assert {(each["params"]["progressToken"], each["params"]["message"]) for each in told} == {(name, name)}
        assert result["id"] == name


@pytest.mark.requirement("HTTP-023")
@virtual_time
async def test_a_quiet_stream_says_that_it_lives():
    house = House()
    talk = post(house.app, listening())
    await talk.heard(2)
    await asyncio.sleep(50)
    assert talk.body.count(COMMENT) == 3
    house.app.stop()
    assert len((await talk.answer()).events) == 2, "a comment is no event"


@pytest.mark.requirement("HTTP-025")
async def test_a_stream_cannot_be_resumed():
    house = House()
    await post(house.app, call_tool("progress", progressToken=1)).answer()
    answer = await ask(call_tool("hi", id=2), {"last-event-id": "1"}, house)
    assert answer.json["result"]["content"][0]["text"] == "hi", "nothing of before"


@pytest.mark.requirement("HTTP-026", "HTTP-027", "HTTP-028", "CANCEL-012")
@pytest.mark.parametrize("token", [{}, {"progressToken": 1}])
async def test_closing_the_stream_cancels_the_request(token):
    house = House()
    async with served(house.app) as port:
        async with connection(port) as raw, asyncio.timeout(WAIT):
            raw.write(http(call_tool("work", **token)))
            await house.running.wait()
            if token:
                await raw.head()  # a stream, and not only a request that waits
        async with asyncio.timeout(WAIT):
            await house.stopped.wait()
        steps = house.steps
        await until_idle()
        assert house.steps == steps, "its work has stopped"
        assert house.app.in_flight == 0


@pytest.mark.requirement("HTTP-028")
async def test_nothing_is_said_for_a_request_that_was_cancelled():
    house = House(timing=Timing(watch=0.0))
    talk = post(house.app, call_tool("work", progressToken=1))
    await talk.heard(2)
    talk.disconnect()
    await talk.task
    house.go.set()
    assert len(talk.sent) == 2 and not talk.complete


# --- questions ---

ELICITING = {CAPABILITIES_KEY: {"elicitation": {}}}
BOOK = {"flight": "OS 1"}
ROW = {"seat": {"action": "accept", "content": {"value": 7}}}


def booking(**options):
    """A server that asks one thing after it has said something."""
    server = Server("booking", **options)

    @server.tool
    async def book(flight: str, ctx: Context) -> str:
        await ctx.progress(1, 2)
        return f"{flight}, row {await ctx.elicit('Which row?', int, key='seat')}"

    return server


def again(frame, state, **changes):
    """The same call with an answer and its state."""
    params = {**frame["params"], "inputResponses": ROW, "requestState": state, **changes}
    return {**frame, "id": 2, "params": params}


@pytest.mark.requirement("HTTP-021", "MRTR-001")
async def test_a_question_ends_its_stream():
    app = booking().asgi()
    frame = call_tool("book", BOOK, progressToken="p", **ELICITING)
    first = await post(app, frame).answer()
    *told, asked = first.events
    assert [each["method"] for each in told] == ["notifications/progress"]
    assert asked["result"]["resultType"] == "input_required"
    assert not first.sent[-1]["more_body"]
    second = await post(app, again(frame, asked["result"]["requestState"])).answer()
    assert second.events[-1]["result"]["content"][0]["text"] == "OS 1, row 7"


@pytest.mark.requirement("META-010")
async def test_a_question_that_the_client_cannot_answer_is_400():
    answer = await post(booking().asgi(), call_tool("book", BOOK)).answer()
    assert (answer.status, answer.error["code"]) == (400, -32021)
    assert answer.error["data"]["requiredCapabilities"] == {"elicitation": {}}


def by_token(headers):
    token = headers.get("authorization", "").removeprefix("Bearer ")
    return Principal("issuer", token) if token in ("ada", "bob") else HttpRefusal(401)


@pytest.mark.requirement(
    *("MRTR-013", "MRTR-017", "ELICIT-020", "ELICIT-021", "ELICIT-028", "ELICIT-040", "STATELESS-009"),
    *("SEC-009", "SEC-011"),
)
async def test_what_one_user_was_asked_is_no_other_users():
    """Who somebody is comes from the credentials of each request, not from anything the body says."""
    app = booking().asgi(authenticate=by_token)
    ada, bob = {"authorization": "Bearer ada"}, {"authorization": "Bearer bob"}
    frame = call_tool("book", BOOK, **ELICITING)
    state = (await post(app, frame, ada).answer()).json["result"]["requestState"]
    for said in ({}, {"user": "ada"}):
        answer = await post(app, again(frame, state, **said), bob).answer()
        assert (answer.status, answer.error["code"]) == (400, -32602)
    assert (await post(app, again(frame, state)).answer()).status == 401
    assert (await post(app, again(frame, state), ada).answer()).json["result"]["resultType"] == "complete"


@pytest.mark.requirement("MRTR-014", "SEC-011")
async def test_a_state_is_good_for_some_minutes():
    frame = call_tool("book", BOOK, **ELICITING)
    for seconds, code in ((600.0, None), (0.0, -32602)):
        app = booking(state_seconds=seconds).asgi()
        state = (await post(app, frame).answer()).json["result"]["requestState"]
        told = (await post(app, again(frame, state)).answer()).json
        assert told.get("error", {}).get("code") == code
    assert booking().asker.rules.seconds == 600.0


# --- methods and eras ---


@pytest.mark.requirement("HTTP-029")
async def test_an_unknown_method_is_404_with_its_error():
    assert await refused(message("unknown/method")) == (404, -32601)


@pytest.mark.requirement("COMPAT-004", "HTTP-029")
@pytest.mark.parametrize(
    "method", ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"]
)
async def test_a_removed_method_is_404(method):
    assert await refused(message(method)) == (404, -32601)
    full = {"uri": "note://one", "level": "info", "protocolVersion": NEWEST, "capabilities": {}}
    full["clientInfo"] = {"name": "c", "version": "1"}
    assert await refused(message(method, **full)) == (404, -32601)


@pytest.mark.requirement("COMPAT-005")
async def test_initialize_is_told_the_versions_where_there_are_no_sessions():
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    frame = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    app = House(sessions=None).app
    answer = await post(app, frame, {"mcp-protocol-version": None, "mcp-method": None}).answer()
    assert answer.status == 400
    assert NEWEST in answer.error["message"] and NEWEST in answer.error["data"]["supported"]


# --- headers that say it again ---


@pytest.mark.requirement("HDR-003", "HDR-009", "VERSION-004")
async def test_the_version_header_is_compared_before_the_version_is_judged():
    frame = message("server/discover", meta={**envelope(), VERSION_KEY: "v999.0.0"})
    assert await refused(frame) == (400, -32020)
    assert await refused(frame, {"mcp-protocol-version": "v999.0.0"}) == (400, -32022)


@pytest.mark.requirement("HDR-007", "HDR-009", "COMPAT-022")
@pytest.mark.parametrize("name", ["mcp-protocol-version", "mcp-method", "mcp-name"])
@pytest.mark.parametrize(
    "frame",
    [call_tool("hi"), message("prompts/get", name="greet"), message("resources/read", uri="note://one")],
    ids=["tools/call", "prompts/get", "resources/read"],
)
async def test_a_missing_header_is_refused(frame, name):
    assert await refused(frame, {name: None}) == (400, -32020)


@pytest.mark.requirement("HDR-008", "HDR-009")
@pytest.mark.parametrize(
    ("frame", "changes"),
    [
        (call_tool("hi"), {"mcp-name": "progress"}),
        (message("tools/list"), {"mcp-method": "prompts/list"}),
        (message("prompts/get", name="greet"), {"mcp-name": "hi"}),
        (message("resources/read", uri="note://one"), {"mcp-name": "note://two"}),
    ],
)
async def test_a_header_that_differs_from_the_body_is_refused(frame, changes):
    assert await refused(frame, changes) == (400, -32020)


@pytest.mark.requirement("HDR-010")
@pytest.mark.parametrize("value", ["h\x01i", "hi\x7f", "h\xefi", "h\ti"])
async def test_characters_that_headers_must_not_have_are_refused(value):
    """Also where the body says the same: it is no other name, it is none that a header can have."""
    for name in ("hi", value):
        assert await refused(call_tool(name), {"mcp-name": value}) == (400, -32020)


@pytest.mark.requirement("HDR-013")
@pytest.mark.parametrize("header", ["mcp-protocol-version", "mcp-method", "mcp-name"])
async def test_white_space_around_values_counts_for_nothing_where_the_http_server_leaves_it(header):
    said = {"mcp-protocol-version": NEWEST, "mcp-method": "tools/call", "mcp-name": "hi"}[header]
    answer = await post(House().app, call_tool("hi"), {header: f" \t{said}\t "}).answer()
    assert answer.status == 200


@pytest.mark.requirement("HDR-011", "HDR-013")
async def test_names_of_headers_in_any_case_and_white_space_around_values():
    data = http(call_tool("hi"))
    async with served(House().app) as port, connection(port) as raw:
        for name in (b"mcp-method", b"MCP-METHOD", b"Mcp-Method", b"mCP-mETHOD"):
            told = data.replace(b"mcp-method: ", name + b":\t ").replace(b"mcp-name: hi", b"Mcp-Name:   hi  ")
            raw.write(told)
            assert (await raw.response()).status == 200


@pytest.mark.requirement("HDR-012")
@pytest.mark.parametrize("changes", [{"mcp-method": "TOOLS/CALL"}, {"mcp-name": "Hi"}])
async def test_values_are_compared_in_their_case(changes):
    assert await refused(call_tool("hi"), changes) == (400, -32020)


@pytest.mark.requirement("HDR-014")
@pytest.mark.parametrize(
    "frame",
    [
        call_tool("hi"),
        message("resources/read", uri="note://one"),
        message("prompts/get", name="grüßen"),
    ],
)
async def test_an_encoded_name_is_decoded(frame):
    name = frame["params"].get("name") or frame["params"]["uri"]
    said = f"=?base64?{base64.b64encode(name.encode()).decode()}?="
    assert (await ask(frame, {"mcp-name": said})).status == 200


@pytest.mark.requirement("HDR-015", "HDR-017")
@pytest.mark.parametrize("literal", ["=?BASE64?SGVsbG8=?=", "=?base64?SGVsbG8=", "SGVsbG8=?=", "SGVsbG8="])
async def test_what_is_not_exactly_marked_is_taken_as_it_is(literal):
    said = {"mcp-param-region": literal}
    assert (await ask(call_tool("place", {"region": literal}), said)).status == 200
    assert await refused(call_tool("place", {"region": "Hello"}), said) == (400, -32020)


@pytest.mark.requirement("HDR-016")
@pytest.mark.parametrize("value", ["=?base64?SGVsbG8?=", "=?base64?SGVs!!!bG8=?=", "=?base64?//8=?="])
async def test_broken_base64_is_refused(value):
    assert await refused(call_tool("place", {"region": "Hello"}), {"mcp-param-region": value}) == (400, -32020)
    assert await refused(call_tool("hi"), {"mcp-name": value}) == (400, -32020)


@pytest.mark.requirement("HDR-020")
def test_the_bounds_of_headers_are_documented():
    page = (Path(__file__).resolve().parents[2] / "docs" / "http_server.md").read_text(encoding="utf-8")
    [row] = [line for line in page.splitlines() if line.startswith("| head of a request")]
    assert f"{protocol._HEAD_BYTES // 1024} KiB" in row and f"{protocol._HEAD_SECONDS:.0f} s" in row and "431" in row


# --- parameters in headers ---


@pytest.mark.requirement("XHDR-001")
async def test_a_parameter_can_be_marked():
    answer = await ask(message("tools/list"))
    [schema] = [tool["inputSchema"] for tool in answer.json["result"]["tools"] if tool["name"] == "place"]
    marks = {name: part["x-mcp-header"] for name, part in schema["properties"].items()}
    assert marks == {"region": "Region", "count": "Count", "exact": "Exact"}
    said = {"mcp-param-region": "eu", "mcp-param-count": "42", "mcp-param-exact": "true"}
    answer = await ask(call_tool("place", {"region": "eu", "count": 42, "exact": True}), said)
    assert answer.json["result"]["content"][0]["text"] == "eu 42 True"


@pytest.mark.requirement("XHDR-003", "XHDR-004", "XHDR-005")
@pytest.mark.parametrize("name", ["", "My Region", "a:b", "Région", "Region\t1", "Region\n", "(x)"])
def test_a_mark_is_a_header_name(name):
    with pytest.raises(LocalError, match="f: x-mcp-header"):

        @Server("s").tool
        async def f(region: Annotated[str, header(name)]) -> None: ...


@pytest.mark.requirement("XHDR-006")
def test_two_marks_are_not_the_same_in_any_case():
    with pytest.raises(LocalError, match="same header name"):

        @Server("s").tool
        async def f(a: Annotated[str, header("Region")], b: Annotated[str, header("REGION")]) -> None: ...


@pytest.mark.requirement("XHDR-007")
@pytest.mark.parametrize("kind", [float, list[str], dict[str, str], None, Any, str | None])
def test_only_plain_values_can_be_marked(kind):
    async def f(a: Any) -> None: ...

    f.__annotations__["a"] = Annotated[kind, header("A")]
    with pytest.raises(LocalError, match="a string, an integer or a boolean"):
        Server("s").tool(f)


class Address(msgspec.Struct):
    region: Annotated[str, header("Region")] = ""


@pytest.mark.requirement("XHDR-009", "XHDR-010")
@pytest.mark.parametrize("kind", [list[Address], list[Annotated[str, header("A")]], dict[str, Address]])
def test_a_mark_is_reached_by_properties_alone(kind):
    async def f(a: Any) -> None: ...

    f.__annotations__["a"] = kind
    with pytest.raises(LocalError, match="x-mcp-header"):
        Server("s").tool(f)


@pytest.mark.requirement("XHDR-009")
@pytest.mark.parametrize("kind", [Address, Address | None])
def test_a_mark_inside_of_an_object_is_reached(kind):
    async def f(a: Any) -> None: ...

    f.__annotations__["a"] = kind
    server = Server("s")
    server.tool(f)
    assert [param.path for param in server.param_headers("f")] == [("a", "region")]


@pytest.mark.requirement("XHDR-016")
@pytest.mark.parametrize("arguments", [None, {}, {"region": None}])
async def test_no_header_is_expected_for_what_is_not_there(arguments):
    assert (await ask(call_tool("place", arguments))).status == 200


@pytest.mark.requirement("XHDR-018")
@pytest.mark.parametrize("arguments", [{"region": "eu"}, {"count": 0}, {"exact": False}, {"region": ""}])
async def test_a_value_without_its_header_is_refused(arguments):
    assert await refused(call_tool("place", arguments)) == (400, -32020)


@pytest.mark.requirement("XHDR-019")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"region": "eu"}, {"mcp-param-region": "us"}),
        ({"region": "eu"}, {"mcp-param-region": "EU"}),
        ({"region": "eu"}, {"mcp-param-region": "=?base64?dXM=?="}),
        ({"count": 42}, {"mcp-param-count": "43"}),
        ({"exact": True}, {"mcp-param-exact": "True"}),
        ({}, {"mcp-param-region": "eu"}),
    ],
)
async def test_a_header_that_differs_from_its_argument_is_refused(arguments, said):
    assert await refused(call_tool("place", arguments), said) == (400, -32020)


@pytest.mark.requirement("XHDR-019")
async def test_an_encoded_argument_is_decoded():
    said = {"mcp-param-region": "=?base64?SGVsbG8=?="}
    assert (await ask(call_tool("place", {"region": "Hello"}), said)).status == 200


@pytest.mark.requirement("XHDR-020")
@pytest.mark.parametrize("value", ["\x01", "e\x00u", "\xe9"])
async def test_characters_that_a_parameter_must_not_have_are_refused(value):
    assert await refused(call_tool("place", {"region": value}), {"mcp-param-region": value}) == (400, -32020)


@pytest.mark.requirement("XHDR-021")
@pytest.mark.parametrize("said", ["42", "42.0", "042"])
async def test_integers_are_compared_as_numbers(said):
    assert (await ask(call_tool("place", {"count": 42}), {"mcp-param-count": said})).status == 200


# --- subscriptions ---


@pytest.mark.requirement("SUBS-003", "SUBS-008", "SUBS-015")
@pytest.mark.parametrize("id", [1, "1", 0, "", 2**53])
async def test_listening_is_a_stream_that_begins_with_its_acknowledgement(id):
    house = House()
    talk = post(house.app, listening(id=id))
    await talk.heard(2)
    assert (talk.status, talk.headers["content-type"]) == (200, "text/event-stream")
    [first] = talk.events
    assert first["method"] == "notifications/subscriptions/acknowledged"
    tag = first["params"]["_meta"][SUBSCRIPTION_KEY]
    assert (tag, type(tag)) == (id, type(id))
    assert not talk.complete, "it stays open"
    house.app.stop()
    await talk.answer()


@pytest.mark.requirement("SUBS-004")
async def test_nothing_precedes_the_acknowledgement():
    house = House()
    talk = post(house.app, listening())
    for _ in range(5):
        house.server.resource_changed("note://one")
        house.server.remove_tool("hi")

        @house.server.tool
        async def hi() -> str:
            return "hi"

        await asyncio.sleep(0)
    await talk.heard(3)
    assert talk.events[0]["method"] == "notifications/subscriptions/acknowledged"
    house.app.stop()
    await talk.answer()


@pytest.mark.requirement("SUBS-002", "SUBS-016", "SUBS-017", "SUBS-018")
@pytest.mark.parametrize("kind", CHANGED)
async def test_changes_are_told_to_who_asked_for_them(kind):
    house = House()
    talks = {each: post(house.app, listening({f"{each}ListChanged": True}, each)) for each in CHANGED}
    for talk in talks.values():
        await talk.heard(2)
    {
        "tools": lambda: house.server.remove_tool("hi"),
        "prompts": lambda: house.server.remove_prompt("greet"),
        "resources": lambda: house.server.remove_resource("note://one"),
    }[kind]()
    await talks[kind].heard(3)
    house.app.stop()
    for each, talk in talks.items():
        told = [event["method"] for event in (await talk.answer()).events[1:] if "method" in event]
        assert told == ([CHANGED[kind]] if each == kind else [])
        assert all(event["params"]["_meta"][SUBSCRIPTION_KEY] == each for event in talk.events[:-1])


@pytest.mark.requirement("SUBS-006")
async def test_only_what_is_honoured_is_acknowledged():
    server = Server("s")

    @server.tool
    async def hi() -> str:
        return "hi"

    app = server.asgi()
    talk = post(app, listening({**EVERYTHING, "resourceSubscriptions": ["note://one"]}))
    await talk.heard(2)
    assert talk.events[0]["params"]["notifications"] == {"toolsListChanged": True}
    app.stop()
    await talk.answer()


@pytest.mark.requirement("SUBS-010", "SUBS-011")
async def test_a_server_that_goes_ends_the_subscription_with_its_result():
    house, frame = House(), listening()
    stopping = served(house.app)
    port = await stopping.__aenter__()
    async with connection(port) as raw:
        raw.write(http(frame))
        await raw.head()
        acknowledged = await raw.event()
        await stopping.__aexit__(None, None, None)
        result = await raw.event()
        assert result["result"] == {
            "resultType": "complete",
            "_meta": {**result["result"]["_meta"], SUBSCRIPTION_KEY: "L"},
        }
        assert await raw.chunk() == b"" and await raw.ended() == b""
    told = Transcript(NEWEST).sent(frame, sender="client").sent(acknowledged, sender="server")
    told.sent(result, sender="server").check()


@pytest.mark.requirement("SUBS-019")
async def test_an_update_is_told_to_who_watches_that_resource():
    house = House()
    talk = post(house.app, listening({"resourceSubscriptions": ["note://one"]}))
    await talk.heard(2)
    house.server.resource_changed("note://other")
    house.server.resource_changed("note://one")
    await talk.heard(3)
    house.app.stop()
    _, told, _ = (await talk.answer()).events
    assert (told["method"], told["params"]["uri"]) == ("notifications/resources/updated", "note://one")


@pytest.mark.requirement("SUBS-020", "HTTP-018")
async def test_nothing_of_other_requests_is_told_on_a_subscription():
    house = House()
    talk = post(house.app, listening())
    await talk.heard(2)
    *told, _ = (await post(house.app, call_tool("progress", progressToken="p")).answer()).events
    assert len(told) == 3
    house.app.stop()
    assert len((await talk.answer()).events) == 2, "the acknowledgement and the result"


# --- what the envelope must hold ---


@pytest.mark.requirement("COMPAT-002")
async def test_requests_of_both_eras_side_by_side():
    """The modern one is served by its own rules, whatever else comes to the endpoint."""
    house = House()
    old = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    for _ in range(2):
        assert (await post(house.app, old, {"mcp-protocol-version": "2025-11-25"}).answer()).status == 400
        assert (await ask(message("tools/list"), house=house)).json["result"]["resultType"] == "complete"


@pytest.mark.requirement("META-005")
@pytest.mark.parametrize("meta", [None, {CAPABILITIES_KEY: {}}, {VERSION_KEY: NEWEST}])
async def test_an_envelope_that_lacks_something_is_400(meta):
    frame = {"jsonrpc": "2.0", "id": 1, "method": "server/discover"} | (
        {} if meta is None else {"params": {"_meta": meta}}
    )
    answer = await post(House().app, frame).answer()
    assert (answer.status, answer.error["code"], answer.json["id"]) == (400, -32602, 1)
