"""transport/http/server/legacy_sse.py: the two endpoints of 2024-11-05, spoken to by a scripted ASGI server."""

import asyncio
import json
from urllib.parse import urljoin

import pytest

from interlock import Context, Server
from interlock.transport.http.server import legacy_sse
from interlock.transport.http.server.app import HttpApp, SessionBounds
from interlock.wire.exchange import Principal
from interlock.wire.limits import Limits
from support.asgi import begin
from support.sessions import BOTH, OverSession, events_of


class House:
    def __init__(self, **options):
        self.server = server = Server("s")
        self.go, self.cancelled = asyncio.Event(), []

        @server.tool
        async def wait(ctx: Context) -> str:
            try:
                await ctx.progress(1)
                await self.go.wait()
            except asyncio.CancelledError:
                self.cancelled.append("wait")
                raise
            return "waited"

        @server.tool
        async def where(ctx: Context) -> str:
            return (await ctx.roots())[0].uri

        self.app = HttpApp(server, **options)

    async def __aenter__(self):
        return self

    async def __aexit__(self, *error):
        self.app.stop()
        await self.app.settle(0)
        while self.app.in_flight:
            await asyncio.sleep(0)
        assert len(self.app._old) == 0

    def ask(self, method, path, frame=None, root="", **changes):
        lines = {"host": "127.0.0.1:8000", "accept": BOTH, "content-type": "application/json"}
        lines |= {name.replace("_", "-"): value for name, value in changes.items()}
        body = b"" if frame is None else frame if isinstance(frame, bytes) else json.dumps(frame).encode()
        path, _, query = path.partition("?")
        headers = [(name.encode(), value.encode()) for name, value in lines.items()]
        return begin(
            self.app, [body], method=method, path=path, query_string=query.encode(), root_path=root, headers=headers
        )


class Old:
    """A client of that transport, from its GET on."""

    def __init__(self, house, *, can=None, root="", at="/sse", **headers):
        self.house, self.root, self.at, self.headers = house, root, at, headers
        self.hello = OverSession(None, "2024-11-05", can=can).hello

    async def __aenter__(self):
        self.stream = self.house.ask("GET", f"{self.root}{self.at}", root=self.root, **self.headers)
        await self.stream.heard(2)
        (told,) = events_of(self.stream)
        assert told.name == "endpoint"
        self.told = told.data.decode()
        self.where = urljoin(f"{self.root}{self.at}", self.told)
        assert (await self.post(self.hello)).status == 202
        assert (await self.heard(1))["result"]["protocolVersion"] == "2024-11-05"
        await self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    async def __aexit__(self, *error):
        self.stream.disconnect()
        await self.stream.task

    async def post(self, frame, **headers):
        talk = self.house.ask("POST", self.where, frame, root=self.root, **{**self.headers, **headers})
        return await talk.answer()

    async def tool(self, name, id=1):
        params = {"name": name, "arguments": {}, "_meta": {"progressToken": 1}}
        return await self.post({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})

    async def heard(self, place):
        while len(events_of(self.stream)) <= place:
            await self.stream.heard(len(self.stream.sent) + 1)
        event = events_of(self.stream)[place]
        assert event.name == "message"
        return json.loads(event.data)


async def test_everything_is_said_on_the_one_stream():
    async with House() as house, Old(house) as old:
        answer = await old.tool("wait", 7)
        assert (answer.status, answer.body) == (202, b"")
        assert (await old.heard(2))["method"] == "notifications/progress"
        house.go.set()
        assert (await old.heard(3))["id"] == 7


async def test_a_question_is_answered_by_post():
    async with House() as house, Old(house, can={"roots": {}}) as old:
        await old.tool("where", 7)
        asked = await old.heard(2)
        await old.post({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": [{"uri": "file:///here"}]}})
        assert (await old.heard(3))["result"]["content"][0]["text"] == "file:///here"


async def test_what_is_wrong_is_told_on_the_stream():
    async with House() as house, Old(house) as old:
        assert (await old.post(b"{")).status == 202
        assert (await old.heard(2))["error"]["code"] == -32700


async def test_two_clients_do_not_hear_each_other():
    async with House() as house, Old(house) as one, Old(house) as two:
        assert one.where != two.where
        for old, id in ((one, 1), (two, 2)):
            await old.post({"jsonrpc": "2.0", "id": id, "method": "ping"})
            assert (await old.heard(2))["id"] == id
        assert len(events_of(one.stream)) == len(events_of(two.stream)) == 3


async def test_the_session_ends_with_its_stream():
    async with House() as house:
        async with Old(house) as old:
            await old.tool("wait")
            await old.heard(2)
        assert house.cancelled == ["wait"]
        assert (await old.post({"jsonrpc": "2.0", "id": 1, "method": "ping"})).status == 404


async def test_a_server_that_stops_answers_before_the_stream_ends():
    async with House() as house, Old(house) as old:
        await old.tool("wait", 7)
        await old.heard(2)
        house.app.stop()
        refused = await old.post({"jsonrpc": "2.0", "id": 1, "method": "ping"})
        house.go.set()
        assert (await old.heard(3))["id"] == 7 and refused.status == 503
        assert (await old.stream.answer()).complete


async def test_while_it_stops_a_question_can_still_be_answered():
    async with House() as house, Old(house, can={"roots": {}}) as old:
        await old.tool("where", 7)
        asked = await old.heard(2)
        house.app.stop()
        reply = {"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": [{"uri": "file:///here"}]}}
        assert (await old.post(reply)).status == 202
        assert (await old.heard(3))["result"]["content"][0]["text"] == "file:///here"
        assert (await old.stream.answer()).complete


async def test_a_server_that_cannot_wait_ends_the_stream_all_the_same():
    async with House() as house, Old(house) as old:
        await old.tool("wait")
        await old.heard(2)
        house.app.stop()
        await house.app.settle(0)
        assert (await old.stream.answer()).complete and house.cancelled == ["wait"]


async def test_below_a_mount_the_address_is_below_it_too():
    async with House() as house, Old(house, root="/api") as old:
        assert old.where.startswith("/api/messages?session_id=")


@pytest.mark.parametrize(
    ("path", "at"), [("/mcp", "/sse"), ("/api/mcp", "/api/sse"), ("/a/b/", "/a/sse"), ("/", "/sse")]
)
async def test_it_is_beside_the_endpoint(path, at):
    async with House(path=path) as house:
        for slash in ("", "/"):
            async with Old(house, at=at + slash) as old:
                assert old.where.startswith(at.replace("/sse", "/messages?session_id="))
        if at != "/sse":
            assert (await house.ask("GET", "/sse").answer()).status == 404


async def test_the_address_to_post_to_is_relative():
    """Where a proxy removes a prefix, the server does not know it; the client does (RFC 3986 §5.2)."""
    async with House() as house, Old(house) as old:
        assert urljoin("https://example.com/some/where/sse", old.told) == f"https://example.com/some/where{old.where}"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/sse", 405),
        ("GET", "/messages", 405),
        ("POST", "/messages", 400),
        ("POST", "/messages?session_id=a&session_id=b", 400),
        ("POST", "/messages?" + "&".join("abcdefghijkl"), 400),
        ("POST", "/messages?session_id=other", 404),
        ("POST", "/other", 404),
    ],
)
async def test_where_nothing_is(method, path, status):
    async with House() as house:
        assert (await house.ask(method, path, b"{}").answer()).status == status


async def test_who_may_not_call_may_not_call_here():
    async with House() as house:
        for method, path in (("GET", "/sse"), ("POST", "/messages?session_id=x")):
            assert (await house.ask(method, path, origin="http://evil.example").answer()).status == 403
        assert (
            await house.ask("POST", "/messages?session_id=x", b"{}", content_type="text/plain").answer()
        ).status == 415
        assert (await house.ask("GET", "/sse", accept="application/json").answer()).status == 406


async def test_a_connection_belongs_to_who_opened_it():
    def check(headers):
        return Principal("test", headers.get("x-who", "nobody"))

    async with House(authenticate=check) as house, Old(house, x_who="ann") as old:
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        assert (await old.post(ping)).status == 202
        assert (await old.post(ping, x_who="bob")).status == 404


async def test_at_their_bounds_connections_and_requests_are_refused():
    async with House(sessions=SessionBounds(most=1)) as house, Old(house):
        assert (await house.ask("GET", "/sse").answer()).status == 503
    async with House(limits=Limits(in_flight=1)) as house, Old(house) as old:
        await old.tool("wait")
        assert (await old.tool("wait", 2)).status == 503
        assert (await house.ask("GET", "/sse").answer()).status == 503


PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


async def test_who_does_not_read_is_asked_nothing_more(monkeypatch):
    monkeypatch.setattr(legacy_sse, "_UNREAD_BYTES", 100)
    async with House() as house, Old(house) as old:
        old.stream.open.clear()
        async with asyncio.timeout(30):
            while (refused := await old.post(PING)).status == 202:
                pass
        assert (refused.status, refused.headers["retry-after"]) == (503, "1")
        assert (await old.post({"jsonrpc": "2.0", "method": "notifications/cancelled"})).status == 202
        old.stream.open.set()
        async with asyncio.timeout(30):
            while (await old.post(PING)).status == 503:
                await asyncio.sleep(0)


async def test_what_nobody_reads_is_bounded_over_all_connections(monkeypatch):
    monkeypatch.setattr(legacy_sse, "_ALL_UNREAD_BYTES", 1000)
    async with House() as house:
        async with Old(house) as old, Old(house) as other:
            old.stream.open.clear()
            (connection,) = (each for id, each in house.app._old._by_id.items() if id in old.where)
            async with asyncio.timeout(30):
                while connection.end is None:
                    await old.post(PING)
            await other.post(PING)
            assert (await other.heard(2))["id"] == 1, "the others go on"
            old.stream.open.set()
            assert (await old.stream.answer()).complete
            assert (await old.post(PING)).status == 404
        assert house.app._old._unread.held == house.app._old._seats.held == 0


async def test_without_sessions_there_are_no_old_endpoints():
    app = HttpApp(Server("s"), sessions=None)
    headers = [(b"host", b"127.0.0.1"), (b"accept", b"text/event-stream")]
    assert (await begin(app, [b""], method="GET", path="/sse", headers=headers).answer()).status == 404
