"""transport/http/server/app.py: the ASGI application, spoken to by a scripted server."""

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import Context, RateLimits, Server
from interlock.transport.http.server.app import HttpApp, Timing
from interlock.web.asgi.message import HttpRefusal
from interlock.wire.errors import LocalError
from interlock.wire.exchange import ANONYMOUS, Principal
from interlock.wire.limits import Limits
from interlock.wire.meta import SERVER_INFO
from support.asgi import begin, call_tool, envelope, headers_of, message, post
from support.doubles import turns
from support.properties import JSON, TEXT, many
from support.virtual_time import virtual_time

LISTEN = message("subscriptions/listen", "L", notifications={"toolsListChanged": True})


class House:
    """A server with a tool that waits, and what became of it."""

    def __init__(self, **options):
        self.server = server = Server("s")
        self.started, self.cancelled = [], []
        self.go = asyncio.Event()
        self.principals = []

        @server.tool
        async def hi() -> str:
            return "hi"

        @server.tool
        async def wait(ctx: Context, steps: int = 0) -> str:
            self.started.append(ctx.exchange)
            try:
                for step in range(steps):
                    await ctx.progress(step)
                await self.go.wait()
            except asyncio.CancelledError:
                self.cancelled.append(ctx.cancelled)
                raise
            return "waited"

        @server.tool
        async def who(ctx: Context) -> str:
            self.principals.append(ctx.client.principal)
            return "you"

        @server.tool
        async def broken() -> str:
            raise ValueError("secret inside")

        @server.method("example/broken")
        async def own() -> dict:
            raise ValueError("secret inside")

        self.app = server.asgi(**options)

    async def until_started(self, count=1):
        while len(self.started) < count:
            await asyncio.sleep(0.001)


# --- whatever comes ---

VALUES = st.text(st.characters(max_codepoint=255), max_size=30)
NAMES = [
    *("host", "origin", "accept", "content-type", "content-length", "content-encoding", "authorization"),
    *("mcp-protocol-version", "mcp-method", "mcp-name", "mcp-param-x", "mcp-session-id"),
]
HEADERS = st.dictionaries(
    st.sampled_from(
        [
            "host",
            "origin",
            "accept",
            "content-type",
            "content-length",
            "content-encoding",
            "authorization",
            "mcp-session-id",
            "mcp-protocol-version",
            "mcp-method",
            "mcp-name",
            "mcp-param-x",
        ]
    ),
    VALUES | st.sampled_from(["localhost", "application/json", "*/*", "2026-07-28", "2025-11-25", "tools/call", "hi"]),
    max_size=4,
)
MESSAGES = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0")},
    optional={
        "id": JSON,
        "method": TEXT
        | st.sampled_from(["tools/call", "tools/list", "initialize", "notifications/x", "server/discover"]),
        "params": JSON
        | st.fixed_dictionaries({"name": JSON, "_meta": JSON | st.just(envelope())})
        | st.fixed_dictionaries({"name": st.sampled_from(["hi", "broken"]), "_meta": st.just(envelope())}),
        "result": JSON,
    },
)
BODIES = st.binary(max_size=50) | (MESSAGES | JSON).map(lambda value: json.dumps(value).encode())


@many(300)
@given(frame=MESSAGES, body=st.none() | BODIES, changes=HEADERS, repeated=st.booleans(), parts=st.integers(1, 4))
def test_whatever_comes_gets_one_whole_answer(frame, body, changes, repeated, parts):
    async def talk():
        lines = headers_of(frame, changes)
        data = json.dumps(frame).encode() if body is None else body
        size = len(data) // parts + 1
        pieces = [data[at : at + size] for at in range(0, len(data) + 1, size)]
        answer = await begin(House().app, pieces, headers=lines + lines[-1:] * repeated).answer()
        assert [event["type"] for event in answer.sent] == ["http.response.start", "http.response.body"]
        assert answer.status in (200, 202, 400, 403, 404, 406, 413, 415)
        assert answer.headers["content-length"] == str(len(answer.body))
        assert b"Traceback" not in answer.body and b"secret" not in answer.body

    asyncio.run(talk())


# --- where and how ---


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "OPTIONS", "HEAD", "PATCH"])
async def test_only_post_is_served(method):
    answer = await post(House().app, call_tool("hi"), method=method).answer()
    assert answer.status == 405
    assert answer.headers["allow"] == "POST"


@pytest.mark.parametrize(
    ("path", "root", "options", "found"),
    [
        ("/mcp", "", {}, True),
        ("/", "", {}, False),
        ("/mcp/", "", {}, True),
        ("/mcp//", "", {}, False),
        ("/x/mcp/", "/x", {}, True),
        ("/mcp", "", {"path": "/mcp/"}, True),
        ("/mcp/", "", {"path": "/mcp/"}, True),
        ("/mcp/x", "", {}, False),
        ("/x/mcp", "", {}, False),
        ("/x/mcp", "/x", {}, True),
        ("/x/mcp", "/x/", {}, True),
        ("/xmcp", "/x", {}, False),
        ("/mcp", "/x", {}, True),  # a server that leaves the mount point out of the path
        ("/x", "/x", {"path": "/"}, True),
        ("/x/", "/x", {"path": "/"}, True),
        ("/", "", {"path": "/"}, True),
        ("/other", "", {"path": "/other"}, True),
        ("/mcp", "", {"path": "/other"}, False),
    ],
)
async def test_only_its_path_is_served(path, root, options, found):
    answer = await post(House(**options).app, call_tool("hi"), path=path, root_path=root).answer()
    assert answer.status == (200 if found else 404)
    assert found or answer.headers["content-type"].startswith("text/plain"), "no JSON-RPC: not a method's 404"


def test_a_path_begins_with_a_slash():
    with pytest.raises(LocalError):
        Server("s").asgi(path="mcp")


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"host": "evil.example.com"}, 403),
        ({"origin": "http://evil.example.com"}, 403),
        ({"origin": "http://localhost:1"}, 200),
        ({"content-type": "text/plain"}, 415),
        ({"accept": "text/html"}, 406),
        ({"accept": None}, 200),
        ({"content-length": "5000000"}, 413),
        ({"mcp-session-id": "x", "last-event-id": "7"}, 200),
    ],
)
async def test_headers_decide_before_the_body_is_read(changes, status):
    talk = post(House().app, call_tool("hi"), changes)
    answer = await talk.answer()
    assert answer.status == status
    assert talk.received == (1 if status == 200 else 0)
    assert "mcp-session-id" not in answer.headers


@pytest.mark.parametrize("method", ["GET", "OPTIONS", "POST"])
async def test_who_may_not_ask_is_told_so_whatever_he_asks(method):
    answer = await post(House().app, call_tool("hi"), {"origin": "http://evil.example.com"}, method=method).answer()
    assert answer.status == 403


@pytest.mark.parametrize("limits", [RateLimits(), None])
async def test_every_result_says_who_answered_whatever_stands_before_the_server(limits):
    server = Server("s", version="7", rate_limits=limits)
    server.tool(name="hi")(lambda: "hi")
    for frame in (call_tool("hi"), message("tools/list"), message("server/discover")):
        result = (await post(server.asgi(), frame).answer()).json["result"]
        assert result["_meta"][SERVER_INFO] == {"name": "s", "version": "7"}


async def test_names_and_origins_can_be_allowed():
    app = House(allowed_hosts=["mcp.example"], allowed_origins=["https://app.example"]).app
    said = {"host": "mcp.example", "origin": "https://app.example"}
    assert (await post(app, call_tool("hi"), said).answer()).status == 200


async def test_no_other_protocol_is_spoken():
    app, sent = House().app, []

    async def receive():
        return {"type": "websocket.connect"}

    async def send(event):
        sent.append(event["type"])

    await app({"type": "websocket"}, receive, send)
    assert sent == ["websocket.close"]
    with pytest.raises(LocalError):
        await app({"type": "carrier pigeon"}, receive, send)


# --- messages ---


async def test_a_call_is_one_json_answer():
    answer = await post(House().app, call_tool("hi", id="x")).answer()
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.json["id"] == "x"
    assert answer.json["result"]["content"] == [{"type": "text", "text": "hi"}]
    assert len(answer.sent) == 2


async def test_a_body_may_come_in_pieces():
    frame = call_tool("hi")
    data = json.dumps(frame).encode()
    talk = begin(House().app, [data[:10], b"", data[10:]], headers=headers_of(frame))
    assert (await talk.answer()).json["result"]["content"][0]["text"] == "hi"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", -32700),
        (b"{", -32700),
        (b"\xff", -32700),
        (b"[]", -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600),
        (b"5", -32600),
        (b"{}", -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"tools/list"}', -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"tools/list"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"result":{}}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}', -32600),
        (b'{"jsonrpc":"2.0","method":5}', -32600),
        (b'{"jsonrpc":"2.0","result":{}}', -32600),
        (b"[" * 100_000, -32700),
    ],
)
async def test_what_is_no_request_is_400(body, code):
    answer = await post(House().app, body).answer()
    assert (answer.status, answer.error["code"]) == (400, code)


TWICE = (
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"broken","name":"hi","_meta":'
    + json.dumps(envelope()).encode()
    + b"}}"
)


async def test_a_body_with_a_name_twice_is_refused_where_headers_repeat_it():
    answer = await post(House().app, TWICE, headers=headers_of(call_tool("hi"))).answer()
    assert (answer.status, answer.error["code"], answer.json["id"]) == (400, -32600, 1)
    assert "'name' occurs twice" in answer.error["message"]


async def test_the_last_of_two_counts_where_that_is_wanted():
    app = House(strict_json=False).app
    answer = await post(app, TWICE, headers=headers_of(call_tool("hi"))).answer()
    assert answer.json["result"]["content"][0]["text"] == "hi"
    assert (await post(app, TWICE, headers=headers_of(call_tool("broken"))).answer()).error["code"] == -32020


async def test_a_broken_request_is_answered_under_its_id():
    answer = await post(House().app, b'{"jsonrpc":"2.0","id":"x","method":5}').answer()
    assert (answer.status, answer.json["id"]) == (400, "x")


async def test_a_body_over_the_limit_is_refused_while_it_comes():
    talk = begin(House(body_bytes=100).app, [b"x" * 60, b"x" * 60, b"x" * 60], headers=headers_of(None))
    answer = await talk.answer()
    assert (answer.status, talk.received) == (413, 2)


@virtual_time
async def test_a_body_that_does_not_come_is_dropped():
    talk = begin(House(timing=Timing(body=5)).app, None, headers=headers_of(None))
    talk.say(b"{", more=True)
    assert (await talk.answer()).status == 408


async def test_a_notification_is_202_and_empty():
    answer = await post(House().app, {"jsonrpc": "2.0", "method": "notifications/cancelled"}).answer()
    assert (answer.status, answer.body, answer.headers["content-length"]) == (202, b"", "0")


async def test_a_notification_is_accepted_before_it_is_worked_on():
    house, heard = House(), []

    @house.server.notification("notifications/example")
    async def hear() -> None:
        await house.go.wait()
        heard.append(1)

    talk = post(house.app, {"jsonrpc": "2.0", "method": "notifications/example"})
    await talk.heard(2)
    assert (talk.status, heard, house.app.in_flight) == (202, [], 1)
    house.go.set()
    await talk.answer()
    assert (heard, house.app.in_flight) == ([1], 0)


@pytest.mark.parametrize(
    ("frame", "changes"),
    [
        ({"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "hi"}}, {}),
        ({"jsonrpc": "2.0", "method": "notifications/x", "params": {"_meta": 5}}, {}),
        ({"jsonrpc": "2.0", "method": "notifications/x"}, {"mcp-method": "tools/call"}),
        ({"jsonrpc": "2.0", "method": "notifications/initialized"}, {"mcp-protocol-version": "2025-11-25"}),
    ],
)
async def test_a_notification_that_is_not_accepted_is_an_error_without_an_id(frame, changes):
    answer = await post(House().app, frame, changes).answer()
    assert answer.status == 400
    assert "id" not in answer.json


@pytest.mark.parametrize("frame", [call_tool("broken"), message("example/broken")])
async def test_nothing_of_the_inside_is_told(frame, caplog):
    answer = await post(House().app, frame).answer()
    assert answer.status == 200
    assert b"secret" not in answer.body and b"Traceback" not in answer.body
    assert b"reference" in answer.body and "secret inside" in caplog.text


# --- who asks ---


async def test_without_a_hook_everybody_is_anonymous():
    house = House()
    await post(house.app, call_tool("who")).answer()
    assert house.principals == [ANONYMOUS]


@pytest.mark.parametrize("later", [False, True])
async def test_a_hook_says_who_asks_before_the_body_is_read(later):
    seen = []
    talks = []

    def now(headers):
        seen.append((headers.get("authorization"), talks[0].received if talks else 0))
        return Principal("i", headers["authorization"])

    async def soon(headers):
        await asyncio.sleep(0)
        return now(headers)

    house = House(authenticate=soon if later else now)
    talks.append(post(house.app, call_tool("who"), {"authorization": "Bearer x"}))
    await talks[0].answer()
    assert house.principals == [Principal("i", "Bearer x")]
    assert seen == [("Bearer x", 0)]


@pytest.mark.parametrize("later", [False, True])
async def test_a_hook_may_refuse(later):
    no = HttpRefusal(401, (("www-authenticate", "Bearer"),), b"who are you?")

    async def soon(headers):
        return no

    house = House(authenticate=soon if later else lambda headers: no)
    talk = post(house.app, call_tool("who"))
    answer = await talk.answer()
    assert (answer.status, answer.headers["www-authenticate"], answer.body) == (401, "Bearer", b"who are you?")
    assert (talk.received, house.principals) == (0, [])


async def test_a_hook_that_fails_lets_nobody_in(caplog):
    def fail(headers):
        raise ValueError("secret inside")

    house = House(authenticate=fail)
    answer = await post(house.app, call_tool("who")).answer()
    assert (answer.status, house.principals) == (500, [])
    assert b"secret" not in answer.body and "secret inside" in caplog.text


@virtual_time
async def test_a_hook_that_never_ends_is_503():
    async def never(headers):
        await asyncio.sleep(10_000)

    answer = await post(House(authenticate=never, timing=Timing(body=5)).app, call_tool("who")).answer()
    assert answer.status == 503


# --- streams ---


async def test_progress_makes_it_a_stream():
    house = House()
    house.go.set()
    answer = await post(house.app, call_tool("wait", {"steps": 1}, progressToken="p")).answer()
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.headers["x-accel-buffering"] == "no"
    assert [event.get("method", "answer") for event in answer.events] == ["notifications/progress", "answer"]
    assert answer.events[0]["params"]["progressToken"] == "p"


async def test_a_handler_in_a_thread_streams_too():
    house = House()

    @house.server.tool
    def slow(ctx: Context) -> str:
        ctx.progress(1, 2)
        return "slow"

    answer = await post(house.app, call_tool("slow", progressToken=1)).answer()
    assert [event.get("method", "answer") for event in answer.events] == ["notifications/progress", "answer"]


async def test_progress_that_nobody_can_read_is_left_out():
    house = House()
    house.go.set()
    frame = call_tool("wait", {"steps": 1}, progressToken="p")
    answer = await post(house.app, frame, {"accept": "application/json"}).answer()
    assert answer.json["result"]["content"][0]["text"] == "waited"


async def test_where_everything_is_a_stream_every_answer_is_one_for_who_reads_it():
    app = House(always_stream=True).app
    answer = await post(app, call_tool("hi")).answer()
    assert (answer.status, answer.headers["content-type"]) == (200, "text/event-stream")
    assert [event["result"]["content"][0]["text"] for event in answer.events] == ["hi"]
    for changes in ({"accept": "application/json"}, {"mcp-method": "tools/list"}):  # a status that says no is no stream
        assert (await post(app, call_tool("hi"), changes).answer()).headers["content-type"] == "application/json"


@pytest.mark.requirement("HDR-009", "HTTP-013", "HTTP-029")
@pytest.mark.parametrize(
    ("frame", "changes", "status"),
    [
        (call_tool("hi"), {"mcp-method": "tools/list"}, 400),
        (call_tool("nobody"), {}, 400),
        ({**call_tool("hi"), "method": "nobody/knows"}, {}, 404),
        ({"jsonrpc": "2.0", "method": "notifications/x", "params": {"_meta": 5}}, {}, 400),
    ],
    ids=["header", "tool", "method", "notification"],
)
async def test_a_status_says_no_to_who_reads_nothing_but_events_too(frame, changes, status):
    answer = await post(House().app, frame, {"accept": "text/event-stream", **changes}).answer()
    assert (answer.status, answer.headers["content-type"]) == (status, "application/json")
    assert "error" in answer.json


async def test_a_listen_stream_begins_with_its_acknowledgement_and_ends_with_its_result():
    house = House()
    talk = post(house.app, LISTEN)
    await talk.heard(2)

    @house.server.tool
    async def another() -> str:
        return ""

    await talk.heard(3)
    house.app.stop()
    await talk.answer()
    acknowledged, changed, result = talk.events
    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    assert changed["method"] == "notifications/tools/list_changed"
    for told in (acknowledged["params"], changed["params"], result["result"]):
        assert told["_meta"]["io.modelcontextprotocol/subscriptionId"] == "L"
    assert (result["id"], result["result"]["resultType"]) == ("L", "complete")
    await turns(10)
    assert len(talk.events) == 3, "no cancellation behind the result"


async def test_who_reads_no_streams_cannot_listen():
    answer = await post(House().app, LISTEN, {"accept": "application/json"}).answer()
    assert answer.status == 406


async def test_a_listen_request_is_judged_like_others():
    answer = await post(House().app, LISTEN, {"mcp-method": "x"}).answer()
    assert (answer.status, answer.error["code"]) == (400, -32020)


# --- ends ---


@pytest.mark.parametrize("steps", [0, 1])
async def test_a_client_that_goes_cancels_its_call(steps):
    house = House(timing=Timing(watch=0.0))
    talk = post(house.app, call_tool("wait", {"steps": steps}, progressToken=1))
    await house.until_started()
    said = len(talk.sent)
    talk.disconnect()
    await talk.task
    assert house.cancelled == [True]
    assert len(talk.sent) in (said, 2 * steps), "nothing more was said for it"
    assert not talk.complete
    assert house.app.in_flight == 0


async def test_a_client_that_goes_ends_its_listening():
    house = House(timing=Timing(watch=0.0))
    talk = post(house.app, LISTEN)
    await talk.heard(2)
    talk.disconnect()
    await talk.task
    house.server.remove_tool("hi")
    await turns(5)
    assert len(talk.events) == 1


@pytest.mark.parametrize("steps", [0, 1])
async def test_an_answer_that_is_too_large_is_an_error_of_its_own_request(steps):
    """As JSON and as the last event of a stream: its client waits for this id."""
    server = Server("s")

    @server.tool
    async def large(ctx: Context) -> str:
        for step in range(steps):
            await ctx.progress(step)
        return "x" * 5000

    frame = call_tool("large", id=77, progressToken=1)
    answer = await post(HttpApp(server, limits=Limits(message_bytes=3000)), frame).answer()
    told = answer.events[-1] if steps else answer.json
    assert (told["id"], told["error"]["code"]) == (77, -32603)


async def test_a_server_that_stops_takes_no_request_for_the_sake_of_a_session_it_names():
    house = House()
    house.app.stop()
    answer = await post(house.app, call_tool("hi"), {"mcp-session-id": "made-up"}).answer()
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")


async def test_whoever_names_a_session_and_cannot_be_read_is_told_of_the_session():
    """Whatever is in the body: where a client begins again is not decided by a key in it."""
    said = {"mcp-session-id": "made-up", "mcp-method": None, "mcp-name": None, "mcp-protocol-version": None}
    for body in (b"{", b'{"a":"\\u0041"', b'{"io.modelcontextprotocol/protocolVersion":'):
        lines = headers_of(call_tool("hi"), said)
        assert (await post(House().app, body, headers=lines).answer()).status == 404


async def test_calls_over_the_bound_are_503():
    house = House(limits=Limits(in_flight=2))
    busy = [post(house.app, call_tool("wait")) for _ in range(2)]
    await house.until_started(2)
    answer = await post(house.app, call_tool("hi")).answer()
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    house.go.set()
    for talk in busy:
        assert (await talk.answer()).status == 200
    assert (await post(house.app, call_tool("hi")).answer()).status == 200


async def test_listeners_have_a_bound_of_their_own():
    house = House(limits=Limits(in_flight=2))
    listening = [post(house.app, LISTEN) for _ in range(2)]
    for talk in listening:
        await talk.heard(2)
    assert (await post(house.app, LISTEN).answer()).status == 503
    assert (await post(house.app, call_tool("hi")).answer()).status == 200
    house.server.stop_listening()
    for talk in listening:
        await talk.answer()
    again = post(house.app, LISTEN)
    await again.heard(2)
    house.server.stop_listening()
    await again.answer()


async def test_one_caller_has_a_sixteenth_of_the_streams():
    house = House(limits=Limits(in_flight=32))
    one, other = {"client": ("192.0.2.1", 1)}, {"client": ("192.0.2.2", 1)}
    old = [(b"host", b"127.0.0.1"), (b"accept", b"text/event-stream")]
    listening = [post(house.app, LISTEN, **one), begin(house.app, [b""], method="GET", path="/sse", headers=old, **one)]
    for talk in listening:
        assert (await talk.heard(2)).status == 200
    refused = [post(house.app, LISTEN, **one), begin(house.app, [b""], method="GET", path="/sse", headers=old, **one)]
    for talk in refused:
        assert ((await talk.answer()).status, talk.headers["retry-after"]) == (503, "1")
    assert (await post(house.app, call_tool("hi"), **one).answer()).status == 200
    listening.append(post(house.app, LISTEN, **other))
    await listening[-1].heard(2)
    house.app.stop()
    for talk in listening:
        await talk.answer()
    assert house.app._streams.held == 0


async def test_one_caller_has_a_quarter_of_the_bytes_of_unfinished_bodies():
    """By default 32 of 128 MiB, where it was 1,024 requests of 4 MiB each."""
    house = House(authenticate=lambda headers: Principal("issuer", headers["authorization"]))
    frame, part = call_tool("hi"), b" " * 4_000_000

    def begun(name, count=1):
        headers = headers_of(frame, {"authorization": name})
        return [begin(house.app, None, headers=headers, client=("192.0.2.1", 1)) for _ in range(count)]

    async def said(talk):
        talk.say(part, more=True)
        await turns(5)
        return talk

    held = [await said(talk) for talk in begun("ada", 8)]
    refused = await (await said(*begun("ada"))).answer()
    assert (refused.status, refused.headers["retry-after"]) == (503, "1")
    assert "incomplete" in refused.error["message"]
    [other] = [await said(talk) for talk in begun("bob")]
    other.say(json.dumps(frame).encode())
    assert (await other.answer()).status == 200
    held.pop().disconnect()
    await turns(5)
    [again] = [await said(talk) for talk in begun("ada")]
    for talk in (*held, again):
        talk.say(json.dumps(frame).encode())
        assert (await talk.answer()).status == 200
    assert house.app._unfinished.held == 0


async def test_bodies_that_are_allowed_to_be_longer_have_more_room():
    assert House(body_bytes=1 << 30).app._unfinished.has_room("anybody", 2 << 30)


async def test_a_stopping_app_refuses_new_requests_and_lets_the_others_end():
    house = House()
    talk = post(house.app, call_tool("wait"))
    await house.until_started()
    house.app.stop()
    assert (await post(house.app, call_tool("hi")).answer()).status == 503
    settling = asyncio.ensure_future(house.app.settle(60))
    await turns()
    house.go.set()
    await settling
    assert (await talk.answer()).json["result"]["content"][0]["text"] == "waited"


async def test_the_sign_of_life_asks_nobody_who_he_is_and_changes_when_it_stops():
    def nobody(headers):
        raise AssertionError("nobody is asked here")

    house = House(authenticate=nobody, limits=Limits(in_flight=0))
    asked = {"method": "GET", "path": "/health", "headers": [(b"host", b"10.0.0.7"), (b"origin", b"http://x.example")]}
    alive = await begin(house.app, [b""], **asked).answer()
    house.app.stop()
    stopping = await begin(house.app, [b""], **asked).answer()
    assert (alive.status, alive.json) == (200, {"status": "serving"})
    assert (stopping.status, stopping.json, stopping.headers["retry-after"]) == (503, {"status": "stopping"}, "1")
    without = await begin(House(health=None).app, [b""], **asked).answer()
    assert without.status == 404


async def test_what_does_not_end_in_time_is_cancelled_and_told_so():
    house = House()
    talk = post(house.app, call_tool("wait"))
    await house.until_started()
    house.app.stop()
    await house.app.settle(0)
    answer = await talk.answer()
    assert (answer.status, answer.error["code"], house.cancelled) == (503, -32603, [True])


async def test_a_cancellation_of_the_server_goes_through():
    house = House()
    talk = post(house.app, call_tool("wait"))
    await house.until_started()
    talk.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await talk.task
    assert house.app.in_flight == 0


# --- lifespan ---


async def test_its_life_is_begun_and_ended():
    house, inbox, sent = House(), asyncio.Queue(), []

    async def send(event):
        sent.append(event["type"])

    life = asyncio.ensure_future(house.app({"type": "lifespan"}, inbox.get, send))
    inbox.put_nowait({"type": "lifespan.startup"})
    await turns()
    assert sent == ["lifespan.startup.complete"]
    assert (await post(house.app, call_tool("hi")).answer()).status == 200
    inbox.put_nowait({"type": "lifespan.shutdown"})
    await life
    assert sent[1:] == ["lifespan.shutdown.complete"]
    assert (await post(house.app, call_tool("hi")).answer()).status == 503


async def test_a_second_life_serves_again():
    house, inbox = House(), asyncio.Queue()

    async def send(event): ...

    for _ in range(2):
        life = asyncio.ensure_future(house.app({"type": "lifespan"}, inbox.get, send))
        inbox.put_nowait({"type": "lifespan.startup"})
        await turns()
        assert (await post(house.app, call_tool("hi")).answer()).status == 200
        inbox.put_nowait({"type": "lifespan.shutdown"})
        await life


async def test_any_handler_can_be_served():
    async def echo(exchange):
        return {"method": exchange.method}

    answer = await post(HttpApp(echo), message("example/x", meta=envelope())).answer()
    assert answer.json["result"] == {"resultType": "complete", "method": "example/x"}
    app = HttpApp(echo)
    app.stop()  # nothing to stop listening to


# --- hooks that misbehave ---


@pytest.mark.parametrize("found", [None, True, "ada", {}, Principal, ("issuer", "ada")], ids=repr)
@pytest.mark.parametrize("later", [False, True])
async def test_a_hook_that_says_nothing_of_use_lets_nobody_in(caplog, found, later):
    async def soon(headers):
        return found

    house = House(authenticate=soon if later else lambda headers: found)
    answer = await post(house.app, call_tool("who")).answer()
    assert (answer.status, answer.error["code"], house.principals) == (500, -32603, [])
    assert "return a Principal or an HttpRefusal" in caplog.text


@pytest.mark.parametrize("error", [SystemExit, asyncio.CancelledError, KeyboardInterrupt])
async def test_a_hook_that_wants_to_end_everything_ends_its_request(caplog, error):
    def fail(headers):
        raise error

    answer = await post(House(authenticate=fail).app, call_tool("who")).answer()
    assert (answer.status, answer.error["code"]) == (500, -32603)
    assert "reference" in caplog.text


@pytest.mark.parametrize(
    "refusal",
    [
        HttpRefusal(401, (("www-authenticate", "Bearer\r\nset-cookie: a=b"),)),
        HttpRefusal(401, (("www-authenticate", "Bearer \u20ac"),)),
        HttpRefusal(401, (("content-length", "7"),)),
        HttpRefusal(401, (("no name", "x"),)),
        HttpRefusal(99),
        HttpRefusal(1000),
        HttpRefusal(401, (), "text"),  # type: ignore[arg-type]
    ],
)
async def test_a_refusal_that_would_break_the_response_is_not_sent(caplog, refusal):
    answer = await post(House(authenticate=lambda headers: refusal).app, call_tool("who")).answer()
    assert (answer.status, set(answer.headers)) == (500, {"content-type", "content-length"})
    assert "a refusal" in caplog.text


async def test_a_hook_sees_every_value_of_a_header_that_came_twice():
    heard = []

    def keys(headers):
        heard.append(headers["x-api-key"])
        return ANONYMOUS

    lines = [*headers_of(call_tool("who")), (b"x-api-key", b"good"), (b"x-api-key", b"bad")]
    assert (await post(House(authenticate=keys).app, call_tool("who"), headers=lines).answer()).status == 200
    assert heard == ["good, bad"]


class Lived:
    """A handler that records what its carriers tell it about their lives."""

    def __init__(self, fails=False):
        self.fails, self.told = fails, []
        self.lives = self

    async def __call__(self, exchange):
        return {"tools": []}

    def enter(self, carrier):
        self.told.append("enter")

    def leave(self, carrier):
        self.told.append("leave")

    async def start(self):
        self.told.append("start")
        if self.fails:
            raise LocalError("no database")

    async def settle(self):
        self.told.append("settle")


async def life_of(app, *events):
    inbox, sent = asyncio.Queue(), []
    for event in events:
        inbox.put_nowait({"type": f"lifespan.{event}"})

    async def send(event):
        sent.append(event)

    await app({"type": "lifespan"}, inbox.get, send)
    return sent


async def test_what_lives_with_the_handler_begins_and_ends_with_the_app():
    handler = Lived()
    await life_of(HttpApp(handler), "startup", "shutdown")
    assert handler.told == ["enter", "start", "leave", "settle"]


async def test_what_cannot_begin_fails_the_start():
    handler = Lived(fails=True)
    app = HttpApp(handler)
    assert await life_of(app, "startup") == [{"type": "lifespan.startup.failed", "message": "no database"}]
    assert str(app.failure) == "no database" and handler.told == ["enter", "start", "leave", "settle"]


async def test_without_events_it_begins_with_the_first_request_only():
    handler = Lived()
    app = HttpApp(handler)
    for _ in range(2):
        assert (await post(app, message("tools/list")).answer()).status == 200
    assert handler.told == ["enter"]


@pytest.mark.parametrize(("client", "address"), [(("10.0.0.1", 5000), "10.0.0.1"), (None, "")])
async def test_a_caller_has_the_address_of_its_connection(client, address):
    seen = []

    async def handler(exchange):
        seen.append(exchange.outlet.address)
        return {}

    await post(HttpApp(handler), message("example/x", meta=envelope()), client=client).answer()
    assert seen == [address]


async def test_pages_of_other_sites_open_no_stream_and_change_nothing():
    """An image or a link sends no Origin with its GET; what a browser says in its place is enough (Fetch Metadata)."""
    app = House().app
    lines = [(b"host", b"127.0.0.1"), (b"accept", b"*/*"), (b"content-type", b"application/json")]
    for method, path in (("POST", "/mcp"), ("GET", "/mcp"), ("DELETE", "/mcp"), ("GET", "/sse"), ("POST", "/messages")):
        for site, refused in ((b"cross-site", True), (b"same-origin", False)):
            if (method, path, refused) == ("GET", "/sse", False):
                continue  # it would open a stream
            headers = [*lines, (b"sec-fetch-site", site)]
            talk = await begin(app, [b""], method=method, path=path, headers=headers).answer()
            assert (talk.status == 403) is refused, (method, path, site, talk.status)
    talk = await begin(
        app, [b""], method="GET", path="/health", headers=[*lines, (b"sec-fetch-site", b"cross-site")]
    ).answer()
    assert talk.status == 200
