"""transport/http/server/sessions.py: sessions at an endpoint, spoken to by a scripted ASGI server."""

import asyncio
import json

import pytest

from interlock import Context, Server
from interlock.protocol.server.subscription_quota import watched_bytes
from interlock.transport.http.server import app, sessions
from interlock.transport.http.server.app import HttpApp, SessionBounds, Timing
from interlock.transport.http.server.event_stream import Keeping
from interlock.wire.exchange import Principal
from interlock.wire.limits import Limits
from interlock.wire.messages import read_frame
from interlock.wire.sse import EventParser
from support.asgi import NEWEST, call_tool, message, post
from support.http_socket import connection, http, served
from support.idle import until_idle
from support.sessions import OverSession, events_of, said, send
from support.virtual_time import virtual_time

HANDSHAKE = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
CANCEL = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}'


class House:
    """A server with tools that speak, wait and ask, at an endpoint that is closed behind the test."""

    def __init__(self, *, limits=None, **options):
        self.server = server = Server("s")
        self.go, self.cancelled, self.done = asyncio.Event(), [], asyncio.Event()

        @server.tool
        async def hi() -> str:
            return "hi"

        @server.tool
        async def wait(ctx: Context, steps: int = 0) -> str:
            try:
                for step in range(steps):
                    await ctx.progress(step)
                await self.go.wait()
            except asyncio.CancelledError:
                self.cancelled.append("wait")
                raise
            finally:
                self.done.set()
            return "waited"

        @server.tool
        async def poll(ctx: Context) -> str:
            released = await ctx.release_stream(20)
            await self.go.wait()
            return f"released: {released}"

        @server.tool
        async def where(ctx: Context) -> str:
            return (await ctx.roots())[0].uri

        limits = {} if limits is None else {"limits": limits}
        self.app = HttpApp(server, **limits, **options)

    async def __aenter__(self):
        return self

    async def __aexit__(self, *error):
        self.app.stop()
        await self.app.settle(0)
        assert len(self.app._sessions or ()) == 0 and not self.app._calls

    def open(self, revision="2025-11-25", **more):
        return OverSession(self.app, revision, **more)


# --- how a session begins and ends ---


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_session_from_its_beginning_to_its_end(revision):
    async with House() as house:
        async with house.open(revision) as peer:
            answer = await peer.tool("hi").answer()
            assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
            assert answer.json["result"]["content"][0]["text"] == "hi"
            assert "mcp-session-id" not in answer.headers
            assert (await peer.call("ping").answer()).json["result"] == {}
            unnamed = await peer.call("tools/list", 5).answer()
            assert [tool["name"] for tool in unnamed.json["result"]["tools"]] == ["hi", "wait", "poll", "where"]
        assert (await peer.tool("hi").answer()).status == 404
        assert (await peer.get().answer()).status == 404
        assert (await peer.send("DELETE").answer()).status == 404


async def test_the_version_may_be_left_out_and_must_not_be_another():
    async with House() as house, house.open("2025-06-18") as peer:
        for said_version, status in ((None, 200), ("2025-06-18", 200), ("2025-11-25", 400), (NEWEST, 400), ("x", 400)):
            frame = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
            assert (await peer.post(frame, mcp_protocol_version=said_version).answer()).status == status
        assert (await peer.get(mcp_protocol_version="x").answer()).status == 400


async def test_there_is_no_session_before_initialize_has_succeeded():
    async with House() as house:
        hello = OverSession(house.app).hello
        hello["params"] = {"protocolVersion": 5}
        refused = await send(house.app, "POST", hello).answer()
        assert "mcp-session-id" not in refused.headers and refused.error["code"] == -32602
        assert len(house.app._sessions) == 0


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
async def test_without_its_id_it_is_400_and_with_another_404(method):
    async with House() as house, house.open() as peer:
        frame = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"} if method == "POST" else None
        assert (await peer.send(method, frame, mcp_session_id=None).answer()).status == 400
        assert (await peer.send(method, frame, mcp_session_id="other").answer()).status == 404


@pytest.mark.parametrize(
    "frame", [{"jsonrpc": "2.0", "method": "notifications/initialized"}, {"jsonrpc": "2.0", "id": 1, "result": {}}]
)
async def test_what_gets_no_answer_needs_a_session_too(frame):
    async with House() as house:
        assert (await send(house.app, "POST", frame).answer()).status == 400


async def test_a_second_initialize_is_an_error_of_the_session():
    async with House() as house, house.open() as peer:
        answer = await peer.post(peer.hello).answer()
        assert (answer.status, answer.error["code"]) == (200, -32600)


async def test_a_session_belongs_to_who_began_it():
    def check(headers):
        return Principal("test", headers.get("x-who", "nobody"))

    async with House(authenticate=check) as house, house.open(x_who="ann") as peer:
        assert (await peer.call("ping").answer()).status == 200
        for method in ("POST", "GET", "DELETE"):
            frame = {"jsonrpc": "2.0", "id": 1, "method": "ping"} if method == "POST" else None
            assert (await peer.send(method, frame, x_who="bob").answer()).status == 404


async def test_one_session_too_many_is_refused_until_another_ends():
    async with House(sessions=SessionBounds(most=1)) as house:
        async with house.open() as peer:
            full = await send(house.app, "POST", peer.hello).answer()
            assert (full.status, full.headers["retry-after"]) == (503, "10")
        async with house.open():
            pass


async def test_one_caller_has_a_quarter_of_the_sessions_and_of_what_is_said_in_them(monkeypatch):
    """Else the first who wants to shuts everybody else out."""
    one, other = ("192.0.2.1", 1), ("192.0.2.2", 1)
    async with House(sessions=SessionBounds(most=8)) as house:
        hello = OverSession(house.app).hello
        opened = [await send(house.app, "POST", hello, client=one).answer() for _ in range(3)]
        assert [talk.status for talk in opened] == [200, 200, 503]
        assert opened[-1].headers["retry-after"] == "10"
        assert (await send(house.app, "POST", hello, client=other).answer()).status == 200
        await send(house.app, "DELETE", mcp_session_id=opened[0].headers["mcp-session-id"]).answer()
        assert (await send(house.app, "POST", hello, client=one).answer()).status == 200
    monkeypatch.setattr(sessions, "_SAID_BYTES", 4 * len(json.dumps(hello)) + 4)
    async with House(sessions=SessionBounds(each=10)) as house:
        for client, status in ((one, 200), (one, 503), (other, 200)):
            assert (await send(house.app, "POST", hello, client=client).answer()).status == status


async def test_a_failed_beginning_takes_no_place():
    async with House(sessions=SessionBounds(most=1)) as house:
        hello = OverSession(house.app).hello
        assert (await send(house.app, "POST", {**hello, "params": {}}).answer()).status == 200
        assert (await send(house.app, "POST", hello).answer()).status == 200


async def test_what_all_sessions_watch_is_bounded(monkeypatch):
    monkeypatch.setattr(app, "ALL_WATCHED_BYTES", 1000)
    async with House() as house:
        house.server.resource("note://{id}")(lambda id: id)
        async with house.open() as watcher, house.open() as other:
            told = [await watcher.call("resources/subscribe", uri="note://" + "x" * 400).answer() for _ in range(2)]
            assert [talk.json.get("result") for talk in told] == [{}, {}], "the same again is nothing more"
            refused = await other.call("resources/subscribe", uri="note://" + "x" * 500).answer()
            assert refused.json["error"]["code"] == -32603
            await watcher.call("resources/unsubscribe", uri="note://" + "x" * 400).answer()
            assert (await other.call("resources/subscribe", uri="note://" + "x" * 500).answer()).json["result"] == {}
        async with house.open() as later:  # what ended sessions have watched was given back
            assert (await later.call("resources/subscribe", uri="note://" + "x" * 700).answer()).json["result"] == {}


async def test_what_clients_say_of_themselves_is_bounded_over_all_sessions(monkeypatch):
    """One of them may send megabytes of it, and may begin thousands of sessions."""
    monkeypatch.setattr(sessions, "_SAID_BYTES", 3000)
    async with House() as house:
        long = {**OverSession(house.app).hello}
        long["params"] = {**long["params"], "clientInfo": {"name": "c" * 2000, "version": "1"}}
        first = await send(house.app, "POST", long).answer()
        second = await send(house.app, "POST", long).answer()
        assert (first.status, second.status) == (200, 503)
        await send(house.app, "DELETE", mcp_session_id=first.headers["mcp-session-id"]).answer()
        assert (await send(house.app, "POST", long).answer()).status == 200


@virtual_time
async def test_a_session_that_nobody_uses_ends():
    async with House(sessions=SessionBounds(idle=100, unready=20)) as house:
        async with house.open() as peer:
            await asyncio.sleep(90)
            assert (await peer.call("ping").answer()).status == 200
            await asyncio.sleep(90)
            assert (await peer.call("ping").answer()).status == 200
            stream = peer.get()
            await asyncio.sleep(500)  # somebody listens
            stream.disconnect()
            await stream.task
            assert (await peer.call("ping").answer()).status == 200
            await asyncio.sleep(130)
            assert (await peer.call("ping").answer()).status == 404
        opened = await send(house.app, "POST", peer.hello).answer()
        await asyncio.sleep(30)  # its client never said `initialized`
        peer.id = opened.headers["mcp-session-id"]
        assert (await peer.call("ping").answer()).status == 404


@virtual_time
async def test_the_time_without_use_begins_with_the_end_of_what_was_served():
    async with House(sessions=SessionBounds(idle=100, unready=20)) as house, house.open() as peer:
        stream = peer.get()
        await asyncio.sleep(500)
        stream.disconnect()
        await stream.task
        await asyncio.sleep(90)
        assert (await peer.call("ping").answer()).status == 200


@virtual_time
async def test_where_no_session_is_left_nobody_looks_for_them():
    async with House(sessions=SessionBounds(idle=100, unready=20)) as house:
        async with house.open():
            assert house.app._sessions._sweeper is not None
        await asyncio.sleep(6)
        assert house.app._sessions._sweeper is None
        async with house.open() as peer:
            await asyncio.sleep(130)
            assert (await peer.call("ping").answer()).status == 404


async def test_the_end_of_a_session_cancels_its_runs_and_ends_its_streams():
    async with House() as house, house.open() as peer:
        quiet, loud, listening = peer.tool("wait"), peer.tool("wait", steps=1), peer.get()
        await loud.heard(2)
        await listening.heard(2)
        assert (await peer.send("DELETE").answer()).status == 204
        assert (await quiet.answer()).status == 404
        assert [message["method"] for message in said(await loud.answer())] == ["notifications/progress"]
        assert said(await listening.answer()) == []
        assert house.cancelled == ["wait", "wait"]


async def test_a_server_without_sessions_serves_none():
    async with House(sessions=None) as house:
        refused = await send(house.app, "POST", OverSession(house.app).hello).answer()
        assert (refused.status, refused.error["code"]) == (400, -32022)
        assert (await send(house.app, "GET").answer()).headers["allow"] == "POST"


async def test_other_methods_are_405_with_those_that_are_served():
    async with House() as house:
        answer = await send(house.app, "PUT").answer()
        assert (answer.status, answer.headers["allow"]) == (405, "POST, GET, DELETE")


def test_sessions_end_with_their_loop():
    house, ids = House(), []
    house.server.resource("note://{id}")(lambda id: id)

    async def live(close):
        peer = await house.open().__aenter__()
        for id, status in [(id, 404) for id in ids] + [(peer.id, 200)]:
            assert (await peer.post(request(1), mcp_session_id=id).answer()).status == status
        ids.append(peer.id)
        assert (len(house.app._sessions), house.app._sessions.running) == (1, 0)
        await peer.call("resources/subscribe", uri="note://1").answer()
        assert house.app._sessions._around.watching.held == watched_bytes(["note://1"])
        if close:
            await house.app.settle(0)
        else:
            house.app._sessions._around.running = 1  # one that its loop took with it, unfinished

    for close in (False, True):
        asyncio.run(live(close))
    assert len(house.app._sessions) == 0


# --- both eras at one endpoint ---


async def test_an_envelope_is_stateless_whatever_the_headers_say():
    async with House() as house, house.open() as peer:
        for name in (peer.id, "other"):
            answer = await post(house.app, call_tool("hi"), {"mcp-session-id": name}).answer()
            assert answer.json["result"]["resultType"] == "complete"
        escaped = json.dumps(call_tool("hi")).replace("/", "\\/").encode()
        changes = {"mcp-session-id": peer.id, "mcp-method": "tools/call", "mcp-name": "hi"}
        assert (await post(house.app, escaped, changes).answer()).json["result"]["resultType"] == "complete"


async def test_words_of_an_envelope_in_an_argument_are_no_envelope():
    async with House() as house, house.open() as peer:
        text = "io.modelcontextprotocol/protocolVersion \\ "
        answer = await peer.call("tools/call", name="hi", arguments={}, _meta={"x/y": text}).answer()
        assert answer.json["result"] == {"content": [{"type": "text", "text": "hi"}]}


async def test_discovery_lists_all_that_is_served():
    async with House() as house:
        answer = await post(house.app, message("server/discover")).answer()
        assert set(answer.json["result"]["supportedVersions"]) == {NEWEST, *HANDSHAKE}


# --- messages that are none ---


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b'{"jsonrpc":"2.0"}', 400),
        (b'{"jsonrpc":"2.0","method":"tools/call","params":{"name":"hi"}}', 400),
        (b'{"jsonrpc":"2.0","method":"notifications/whatever"}', 202),
        (b'{"jsonrpc":"2.0","id":99,"result":{}}', 202),
        (b'{"jsonrpc":"2.0","id":99,"result":5,"error":{"code":1,"message":"\\n"}}', 202),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', 400),
        (b'{"jsonrpc":"2.0","id":1,"method":"no/such"}', 200),
    ],
)
async def test_what_a_post_may_hold(body, status):
    async with House() as house, house.open() as peer:
        answer = await peer.post(body).answer()
        assert answer.status == status
        assert (answer.body == b"") is (status == 202)


async def test_at_the_bound_of_requests_a_further_one_is_refused():
    async with House(limits=Limits(in_flight=2)) as house, house.open() as peer:
        for _ in range(2):  # their clients go, they run on
            talk = peer.tool("wait", steps=1)
            await talk.heard(2)
            talk.disconnect()
            await talk.task
        assert (await peer.tool("hi").answer()).status == 503
        assert (await send(house.app, "POST", peer.hello).answer()).status == 503
        house.go.set()
        await house.done.wait()
        await asyncio.sleep(0)
        assert (await peer.tool("hi").answer()).status == 200


class Every(House):
    """With a tool for each way a call can go."""

    def __init__(self, **options):
        super().__init__(**options)
        server = self.server
        self.on_first_step = []

        @server.tool
        async def speak(ctx: Context) -> str:
            await ctx.progress(1)
            return "said"

        @server.tool
        async def speak_later(ctx: Context) -> str:
            await asyncio.sleep(0)
            await ctx.progress(1)
            return "said"

        @server.tool
        async def leave(ctx: Context) -> str:
            self.left = asyncio.create_task(ctx.progress(1))
            return "left"

        @server.tool
        async def fail() -> str:
            raise ValueError("inside")

        @server.tool
        async def long() -> str:
            return "x" * 200_000

        @server.tool
        async def do(wait: bool) -> str:
            self.on_first_step.pop()()
            if wait:
                await asyncio.sleep(0)
            return "done"

    @property
    def session(self):
        return next(iter(self.app._sessions._by_id.values()))

    @property
    def running(self):
        return self.app._sessions.running

    async def at_rest(self):
        async with asyncio.timeout(20):
            while self.running or any(session.in_flight for session in self.app._sessions._by_id.values()):
                await asyncio.sleep(0.001)


@pytest.fixture(params=["here", "shared"])
def every(request, tmp_path):
    state = {} if request.param == "here" else {"state": tmp_path / "state.db"}
    return Every(limits=Limits(message_bytes=100_000), **state)


ACCEPTS = ["application/json, text/event-stream", "application/json", "text/event-stream"]


@pytest.mark.parametrize("accept", ACCEPTS)
async def test_whatever_becomes_of_calls_none_counts_as_running_behind_its_end(every, accept):
    async with every as house, house.open(accept=accept) as peer:
        for name in ("hi", "speak", "speak_later", "leave", "fail", "long", "where", "no_such_tool"):
            assert (await peer.tool(name).answer()).status == 200
        for wait in (False, True):
            house.on_first_step.append(lambda: house.session.notified(read_frame(CANCEL)))
            assert (await peer.tool("do", 77, wait=wait).answer()).status in (200, 202)
        await house.at_rest()
        first, second = peer.tool("wait", 5), peer.tool("wait", 5)
        assert (await second.answer()).status == 200
        assert house.running == 1
        house.go.set()
        assert (await first.answer()).status == 200
        await house.at_rest()
        assert house.running == 0


@pytest.mark.parametrize("how", ["goes", "deletes", "ends inside", "cancels"])
@pytest.mark.parametrize("accept", ACCEPTS)
async def test_whoever_ends_a_call_none_counts_as_running_behind_its_end(how, accept):
    async with Every() as house, house.open(accept=accept) as peer:
        waiting = [peer.tool("wait", steps=steps) for steps in (0, 2)]
        async with asyncio.timeout(20):
            while house.running < 2:
                await asyncio.sleep(0.001)
        if how == "goes":
            for talk in waiting:
                talk.disconnect()
            house.go.set()
        elif how == "deletes":
            assert (await peer.send("DELETE").answer()).status == 204
        elif how == "cancels":
            for id in (1, 2):
                await peer.tell("notifications/cancelled", requestId=id).answer()
        else:
            house.on_first_step.append(house.session.finish)
            await peer.tool("do", wait=True).answer()
        for talk in waiting:
            await talk.task
        await house.at_rest()
        assert house.running == 0


async def test_batches_and_beginnings_do_not_count_as_running_behind_their_end():
    async with Every() as house, house.open("2025-03-26") as peer:
        frames = [request(1), request(1), {"id": 3}, request(4, "no/such")]
        frames += [request(id, "tools/call", name=name, arguments={}) for id, name in ((5, "hi"), (6, "speak_later"))]
        assert (await peer.post(frames).answer()).status == 200
        house.on_first_step.append(house.session.finish)
        ends = request(1, "tools/call", name="do", arguments={"wait": False})
        assert (await peer.post([ends, request(2), request(3, "tools/call", name="wait")]).answer()).status == 404
        for params in ({}, {**peer.hello["params"], "capabilities": 5}):
            await send(house.app, "POST", {**peer.hello, "params": params}).answer()
        await house.at_rest()
        assert house.running == 0 and not house.app._sessions._by_id


# --- batches ---


def request(id, method="ping", **params):
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


async def test_a_batch_is_answered_with_one_array():
    async with House() as house, house.open("2025-03-26") as peer:
        frames = [request(1), {"jsonrpc": "2.0", "method": "notifications/x"}, request(2, "tools/list"), {"id": 3}]
        answer = await peer.post([*frames, request(1), peer.hello]).answer()
        assert answer.status == 200
        found = [(part.get("id"), part.get("error", {}).get("code")) for part in answer.json]
        assert found == [(1, None), (2, None), (3, -32600), (1, -32600), (0, -32600)]


async def test_a_batch_that_says_more_is_a_stream_with_every_answer():
    async with House() as house, house.open("2025-03-26") as peer:
        house.go.set()
        call = request(2, "tools/call", name="wait", arguments={"steps": 1}, _meta={"progressToken": 1})
        found = said(await peer.post([request(1), call]).answer())
        assert sorted(part["id"] for part in found if "id" in part) == [1, 2]
        assert [part["method"] for part in found if "method" in part] == ["notifications/progress"]


@pytest.mark.parametrize(
    ("frames", "status"),
    [
        ([{"jsonrpc": "2.0", "method": "notifications/x"}], 202),
        ([{"jsonrpc": "2.0", "id": 1, "result": {}}], 202),
        ([{"jsonrpc": "2.0", "id": 1, "result": {}}, request(1)], 400),
        ([{"jsonrpc": "2.0", "id": 1, "result": {}}, {"jsonrpc": "2.0", "method": "notifications/x"}], 400),
        ([{"jsonrpc": "2.0", "method": "ping"}], 400),
        ([], 400),
        ([request(number) for number in range(101)], 400),
    ],
)
async def test_which_batches_there_are(frames, status):
    async with House() as house, house.open("2025-03-26") as peer:
        assert (await peer.post(frames).answer()).status == status


async def test_what_is_no_json_is_no_batch_either():
    async with House() as house, house.open() as peer:
        refused = await peer.post(b"[1,").answer()
        assert (refused.status, refused.error["code"]) == (400, -32700)


@pytest.mark.parametrize("batched", [False, True])
async def test_a_broken_answer_ends_the_question_when_it_comes(batched):
    async with House() as house, house.open("2025-03-26", can={"roots": {}}) as peer:
        talk = peer.tool("where", 7)
        await talk.heard(2)
        (asked,) = said(talk)
        broken = {"jsonrpc": "1.0", "id": asked["id"], "result": {}}
        whole = {"jsonrpc": "2.0", "id": 999, "result": {}}
        answer = await peer.post([broken, whole] if batched else broken).answer()
        assert answer.status == (202 if batched else 400)
        assert said(await talk.answer())[-1]["result"]["isError"] is True


# --- streams ---


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_the_answer_becomes_a_stream_with_the_first_notification(revision):
    async with House() as house, house.open(revision) as peer:
        house.go.set()
        answer = await peer.tool("wait", 7, steps=2).answer()
        assert answer.headers["content-type"] == "text/event-stream"
        first, *rest = events_of(answer)
        if revision == "2025-11-25":
            assert first.data == b"" and first.id is not None and first.id.endswith("-0")
        else:
            rest = [first, *rest]  # older clients may take an empty event for JSON
        assert [event.id.partition("-")[2] for event in rest] == ["1", "2", "3"]
        assert [part.get("id") for part in said(answer)] == [None, None, 7]


async def test_who_reads_no_events_gets_the_answer_alone():
    async with House() as house, house.open(accept="application/json") as peer:
        house.go.set()
        assert (await peer.tool("wait", steps=2).answer()).json["result"]["content"][0]["text"] == "waited"
        assert (await peer.get().answer()).status == 406


async def test_who_reads_nothing_but_events_gets_events():
    async with House() as house, house.open() as peer:
        answer = await peer.post(request(1), accept="text/event-stream").answer()
        assert [part["id"] for part in said(answer)] == [1]


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_where_everything_is_a_stream_every_answer_is_one_for_who_reads_it(revision):
    async with House(always_stream=True) as house:
        opened = await send(house.app, "POST", OverSession(house.app, revision).hello).answer()
        assert opened.headers["content-type"] == "text/event-stream" and opened.headers["mcp-session-id"]
        async with house.open(revision) as peer:
            for answer in (await peer.call("tools/list", 1).answer(), await peer.tool("nobody", 1).answer()):
                assert (answer.status, answer.headers["content-type"]) == (200, "text/event-stream")
                assert [part["id"] for part in said(answer)] == [1]
            whole = await peer.post(request(2), accept="application/json").answer()
            assert whole.json["id"] == 2


async def test_where_everything_is_a_stream_it_begins_with_its_request_and_can_be_resumed():
    async with House(always_stream=True) as house, house.open() as peer:
        talk = peer.tool("wait", 7)
        await talk.heard(2)  # its head and the event that says nothing, while the tool still waits
        (first,) = events_of(talk)
        talk.disconnect()
        await talk.task
        house.go.set()
        await house.done.wait()
        assert [part["id"] for part in said(await peer.get(first.id).answer())] == [7]
        plain = await peer.tool("hi", 8).answer()  # answered before anybody could have waited
        assert [part["id"] for part in said(await peer.get(events_of(plain)[0].id).answer())] == [8]


async def test_where_everything_is_a_stream_what_was_lost_outlasts_what_was_handed_over():
    bounds = SessionBounds(keeping=Keeping(ended_streams=3))
    async with House(always_stream=True, sessions=bounds) as house, house.open() as peer, house.open() as other:
        lost = peer.tool("wait", 7)
        await lost.heard(2)
        lost.disconnect()
        await lost.task
        house.go.set()
        await house.done.wait()
        handed_over = await peer.tool("hi", 8).answer()
        for _ in range(5):
            await other.call("ping").answer()
        assert (await peer.get(events_of(handed_over)[0].id).answer()).status == 400
        assert [part["id"] for part in said(await peer.get(events_of(lost)[0].id).answer())] == [7]


async def test_who_leaves_many_answers_behind_pushes_out_those_of_no_other_caller():
    bounds = SessionBounds(keeping=Keeping(ended_streams=8))
    near, far = [{"client": (f"198.51.100.{number}", 1)} for number in (1, 2)]
    async with (
        House(always_stream=True, sessions=bounds) as house,
        house.open(**near) as peer,
        house.open(**far) as one,
        house.open(**far) as other,
    ):
        askers = [peer, *[one, other] * 4]
        lost = [asker.tool("wait", number) for number, asker in enumerate(askers, 1)]
        for talk in lost:
            await talk.heard(2)
            talk.disconnect()
            await talk.task
        house.go.set()
        while house.app._sessions.running:
            await asyncio.sleep(0)
        back = [asker.get(events_of(talk)[0].id) for asker, talk in zip(askers, lost, strict=True)]
        assert [(await talk.answer()).status for talk in back] == [200] + [400] * 6 + [200] * 2
        assert [part["id"] for part in said(back[0])] == [1]


async def test_an_answer_over_what_is_kept_of_a_stream_is_kept_all_the_same():
    bounds = SessionBounds(keeping=Keeping(bytes=10))
    async with House(always_stream=True, sessions=bounds) as house, house.open() as peer:
        answer = await peer.tool("hi", 8).answer()
        assert [part["id"] for part in said(await peer.get(events_of(answer)[0].id).answer())] == [8]


async def test_where_everything_is_a_stream_requests_still_end_in_every_other_way():
    async with House(always_stream=True) as house, house.open() as peer:
        cancelled, polled = peer.tool("wait", 7), peer.tool("poll", 8)
        await cancelled.heard(2)
        assert (await peer.tell("notifications/cancelled", requestId=7).answer()).status == 202
        assert said(await cancelled.answer()) == [] and house.cancelled == ["wait"]
        nothing = await peer.get(events_of(cancelled)[0].id).answer()
        assert nothing.status == 400  # who waits for its answer would come back again and again
        assert b"retry: 20" in (await polled.answer()).body and said(polled) == []
        house.go.set()
        assert [part["id"] for part in said(await peer.get(events_of(polled)[0].id).answer())] == [8]
        house.go.clear()
        left = peer.tool("wait", 9)
        await left.heard(2)
        await peer.send("DELETE").answer()
        assert said(await left.answer()) == [] and house.app._sessions.running == 0


async def test_where_everything_is_a_stream_a_batch_is_one_too():
    async with House(always_stream=True) as house, house.open("2025-03-26") as peer:
        answer = await peer.post([request(1), request(2)]).answer()
        assert answer.headers["content-type"] == "text/event-stream"
        assert sorted(part["id"] for part in said(answer)) == [1, 2]


async def test_a_client_that_goes_cancels_nothing_and_finds_its_answer_again():
    async with House() as house, house.open() as peer:
        talk = peer.tool("wait", 7, steps=2)
        while len(said(talk)) < 2:
            await asyncio.sleep(0)
        talk.disconnect()
        await talk.task
        house.go.set()
        await house.done.wait()
        ids = [event.id for event in events_of(talk)]
        for number, id in enumerate(ids):
            again = await peer.get(id).answer()
            assert [part.get("id") for part in said(again)] == [None, None, 7][number:]
            assert all(event.data for event in events_of(again))  # none that would lead back to the beginning
        assert house.cancelled == []


async def test_a_stream_is_resumed_while_it_goes_on():
    async with House() as house, house.open() as peer:
        talk = peer.tool("wait", 7, steps=1)
        await talk.heard(2)
        again = peer.get(events_of(talk)[-1].id)  # the old connection may be dead without anybody knowing
        await again.heard(2)
        assert (await talk.answer()).complete
        house.go.set()
        assert [part["id"] for part in said(await again.answer())] == [7]


async def test_one_stream_is_never_taken_for_another():
    async with House() as house, house.open() as peer:
        house.go.set()
        first, second = [await peer.tool("wait", id, steps=1).answer() for id in (7, 8)]
        ids = [event.id for event in events_of(first) + events_of(second)]
        assert len(set(ids)) == len(ids)
        assert [part.get("id") for part in said(await peer.get(events_of(second)[0].id).answer())] == [None, 8]
        async with house.open() as other:
            assert (await other.get(ids[0]).answer()).status == 400


@pytest.mark.parametrize("last", ["9-1", "2-9", "x", "1-0"])
async def test_what_is_not_kept_is_not_resumed(last):
    async with House() as house, house.open() as peer:
        house.go.set()
        await peer.tool("wait", steps=1).answer()
        assert (await peer.get(last).answer()).status == 400


async def test_an_ended_stream_is_forgotten_at_the_bound():
    bounds = SessionBounds(keeping=Keeping(ended_streams=1))
    async with House(sessions=bounds) as house, house.open() as peer:
        house.go.set()
        first, second = [await peer.tool("wait", id, steps=1).answer() for id in (7, 8)]
        assert (await peer.get(events_of(first)[0].id).answer()).status == 400
        assert len(said(await peer.get(events_of(second)[0].id).answer())) == 2


async def test_a_client_is_sent_away_and_comes_back_for_the_answer():
    async with House() as house, house.open() as peer:
        sent_away = await peer.tool("poll", 7).answer()
        primed, told = events_of(sent_away)
        assert (primed.data, told.data, told.retry) == (b"", b"", 20)
        again = peer.get(primed.id)
        await again.heard(2)
        house.go.set()
        (found,) = said(await again.answer())
        assert (found["id"], found["result"]["content"][0]["text"]) == (7, "released: True")


@pytest.mark.parametrize(
    ("revision", "accept"), [("2025-06-18", "application/json, text/event-stream"), ("2025-11-25", "application/json")]
)
async def test_who_could_not_come_back_is_not_sent_away(revision, accept):
    async with House() as house, house.open(revision, accept=accept) as peer:
        house.go.set()
        answer = await peer.tool("poll").answer()
        assert answer.json["result"]["content"][0]["text"] == "released: False"


async def test_a_cancelled_request_ends_its_response_without_an_answer():
    async with House() as house, house.open() as peer:
        for accept, kind in (("application/json, text/event-stream", "text/event-stream"), ("application/json", None)):
            talk = peer.post(request(9, "tools/call", name="wait", arguments={}), accept=accept)
            await asyncio.sleep(0)
            assert (await peer.tell("notifications/cancelled", requestId=9).answer()).status == 202
            answer = await talk.answer()
            assert answer.headers.get("content-type") == kind and events_of(answer) == []
        assert house.cancelled == ["wait", "wait"]


# --- what belongs to no request ---


async def test_changes_are_told_on_exactly_one_standing_stream():
    async with House() as house, house.open() as peer:
        streams = [peer.get(), peer.get()]
        for stream in streams:
            await stream.heard(2)
        house.server.tool(lambda: "x", name="more")
        await streams[1].heard(3)
        await peer.send("DELETE").answer()
        found = [said(await stream.answer()) for stream in streams]
        assert [[part["method"] for part in parts] for parts in found] == [[], ["notifications/tools/list_changed"]]


async def test_what_was_said_before_anybody_listens_is_heard_by_the_first():
    async with House() as house, house.open() as peer:
        house.server.tool(lambda: "x", name="more")
        await until_idle()
        stream = peer.get()
        await stream.heard(2)
        assert [part["method"] for part in said(stream)] == ["notifications/tools/list_changed"]
        stream.disconnect()
        await stream.task
        again = peer.get(events_of(stream)[0].id)
        await again.heard(2)
        assert [part["method"] for part in said(again)] == ["notifications/tools/list_changed"]
        house.app.stop()
        await again.answer()


async def test_a_question_is_put_on_the_stream_of_its_request_and_answered_by_post():
    async with House() as house, house.open(can={"roots": {}}) as peer:
        standing, talk = peer.get(), peer.tool("where", 7)
        await talk.heard(2)
        (asked,) = said(talk)
        assert asked["method"] == "roots/list"
        assert (await peer.reply(asked["id"], roots=[{"uri": "file:///here"}]).answer()).status == 202
        answered = said(await talk.answer())[-1]
        assert (answered["id"], answered["result"]["content"][0]["text"]) == (7, "file:///here")
        await standing.heard(2)
        assert said(standing) == []


async def test_while_it_stops_a_question_can_still_be_answered():
    async with House() as house, house.open(can={"roots": {}}) as peer:
        talk = peer.tool("where", 7)
        await talk.heard(2)
        (asked,) = said(talk)
        house.app.stop()
        assert (await peer.tool("hi").answer()).status == 503
        assert (await peer.post(b"{").answer()).status == 503
        settling = asyncio.ensure_future(house.app.settle(60))
        assert (await peer.reply(asked["id"], roots=[{"uri": "file:///here"}]).answer()).status == 202
        await settling
        assert said(await talk.answer())[-1]["result"]["content"][0]["text"] == "file:///here"


async def lost(talk):
    """A call whose client goes behind its first event."""
    await talk.heard(2)
    talk.disconnect()
    await talk.task
    return talk


async def test_while_it_stops_who_lost_a_stream_can_still_come_back_for_the_answer():
    async with House() as house, house.open() as peer:
        talk = await lost(peer.tool("wait", 7, steps=1))
        house.app.stop()
        settling = asyncio.ensure_future(house.app.settle(60))
        assert (await peer.get().answer()).status == 503
        again = peer.get(events_of(talk)[0].id)
        await again.heard(2)
        house.go.set()
        assert said(await again.answer())[-1]["id"] == 7
        await settling


async def test_a_call_whose_client_has_gone_gets_its_time_when_it_stops():
    async with House() as house, house.open() as peer:
        await lost(peer.tool("wait", 7, steps=1))
        house.app.stop()
        settling = asyncio.ensure_future(house.app.settle(60))
        await until_idle()
        assert not settling.done()
        house.go.set()
        await settling
        assert house.cancelled == []


async def test_once_it_has_stopped_nothing_gets_through():
    async with House() as house, house.open() as peer:
        house.app.stop()
        await house.app.settle(0)
        told = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
        late = [peer.post(told), peer.send("DELETE"), peer.get("1-1")]
        assert [(await talk.answer()).status for talk in late] == [503, 503, 503]


async def test_a_batch_that_asks_is_refused_while_it_stops():
    async with House() as house, house.open("2025-03-26") as peer:
        talk = peer.tool("wait", 7, steps=1)
        await talk.heard(2)
        house.app.stop()
        assert (await peer.post([request(8)]).answer()).status == 503
        told = [{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}]
        assert (await peer.post(told).answer()).status == 202
        await talk.answer()
        assert house.cancelled == ["wait"]


async def test_an_endpoint_that_stops_ends_its_streams_and_answers_what_is_left():
    async with House() as house, house.open() as peer:
        standing, talk = peer.get(), peer.tool("wait", 7, steps=1)
        await standing.heard(2)
        await talk.heard(2)
        house.app.stop()
        await standing.answer()
        assert (await peer.tool("hi").answer()).status == 503
        await house.app.settle(0)
        assert said(await talk.answer())[-1]["error"]["code"] == -32603
        assert house.cancelled == ["wait"]


async def test_a_resumed_stream_ends_cleanly_with_the_server():
    async with House() as house, house.open() as peer:
        talk = peer.tool("wait", 7, steps=1)
        await talk.heard(2)
        again = peer.get(events_of(talk)[0].id)
        await again.heard(2)
        house.app.stop()
        await house.app.settle(0)
        assert [part["type"] for part in (await again.answer()).sent].count("http.response.start") == 1


async def test_a_batch_that_streams_ends_cleanly_with_the_server():
    async with House() as house, house.open("2025-03-26") as peer:
        call = request(2, "tools/call", name="wait", arguments={"steps": 1}, _meta={"progressToken": 1})
        talk = peer.post([call])
        await talk.heard(2)
        house.app.stop()
        await house.app.settle(0)
        assert [part["type"] for part in (await talk.answer()).sent].count("http.response.start") == 1


# --- over real sockets ---


class Socketed:
    """A session over connections of its own."""

    def __init__(self, port):
        self.port, self.headers = port, {"mcp-protocol-version": None, "mcp-method": None, "mcp-name": None}

    async def open(self):
        opened = await self.whole(OverSession(None).hello)
        self.headers["mcp-session-id"] = opened.headers["mcp-session-id"]
        await self.whole({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    async def whole(self, frame, verb="POST", **more):
        async with connection(self.port) as raw:
            raw.write(http(frame, {**self.headers, **more}, verb=verb))
            return await raw.response()

    async def begun(self, raw, name, id, **arguments):
        """A call whose stream has begun; its first events."""
        raw.write(
            http(request(id, "tools/call", name=name, arguments=arguments, _meta={"progressToken": id}), self.headers)
        )
        assert (await raw.head())[0] == 200
        return EventParser(10**6).feed(await raw.chunk())


async def test_a_connection_that_breaks_is_noticed_and_its_stream_resumed():
    house = House(timing=Timing(watch=0.01))
    async with served(house.app, drain=0.5) as port:
        peer = await Socketed(port).open()
        async with connection(port) as raw:
            events = await peer.begun(raw, "wait", 7, steps=1)
        while house.app.in_flight:  # the connection is gone, the call is not
            await asyncio.sleep(0.01)
        house.go.set()
        again = await peer.whole(b"", "GET", **{"last-event-id": events[-1].id})
        found = [json.loads(event.data) for event in EventParser(10**6).feed(again.body) if event.data]
        assert found[-1]["id"] == 7 and house.cancelled == []


async def test_a_client_that_does_not_read_holds_up_its_own_call_alone():
    house = House(timing=Timing(stalled=0.3))

    @house.server.tool
    async def flood(ctx: Context) -> str:
        for step in range(20_000):
            await ctx.exchange.notify("notifications/x", {"step": step, "text": "x" * 1000})
        house.done.set()
        return "done"

    async with served(house.app, drain=0.5) as port:
        peer = await Socketed(port).open()
        async with connection(port) as raw:
            await peer.begun(raw, "flood", 7)
            assert (await peer.whole(request(8))).json["id"] == 8
            async with asyncio.timeout(20):
                await house.done.wait()  # nobody reads any more: it is no longer waited for


async def test_a_server_that_is_stopped_leaves_nothing_of_its_sessions():
    house = House()
    async with served(house.app, drain=0.1) as port:
        peers = [await Socketed(port).open() for _ in range(5)]
        async with connection(port) as standing, connection(port) as calling:
            standing.write(http(b"", peers[0].headers, verb="GET"))
            await standing.head()
            await peers[1].begun(calling, "wait", 7, steps=1)
            house.app.stop()
            while await standing.chunk():
                pass  # its end comes by itself
    assert len(house.app._sessions) == 0 and house.cancelled == ["wait"]


# --- a name twice in one object ---


@pytest.mark.parametrize(
    ("options", "refused"),
    [
        ({}, False),
        ({"strict_json": True}, True),
        ({"limits": Limits(strict_json=True)}, True),
        ({"authenticate": lambda headers: Principal("issuer", "ada")}, True),
        ({"authenticate": lambda headers: Principal("issuer", "ada"), "strict_json": False}, False),
    ],
)
async def test_it_is_refused_where_it_matters_who_asks(options, refused):
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    twice = b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wait","name":"hi"}}'
    async with House(**options) as house:
        opened = await post(house.app, hello, {"mcp-protocol-version": None, "mcp-method": None}).answer()
        session = {"mcp-session-id": opened.headers["mcp-session-id"], "mcp-protocol-version": "2025-06-18"}
        answer = await post(house.app, twice, session).answer()
    assert answer.status == (400 if refused else 200)
    assert refused or answer.json["result"]["content"][0]["text"] == "hi"
    assert not refused or (answer.json["id"], answer.error["code"]) == (2, -32600)
