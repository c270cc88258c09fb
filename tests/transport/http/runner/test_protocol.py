"""transport/http/runner/protocol.py: what a stranger may do with a connection, tried on real sockets."""

import asyncio
import json
import logging
import socket
from contextvars import ContextVar
from random import Random
from types import SimpleNamespace

import pytest
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from interlock import Context, Server
from interlock.transport.http.runner import protocol as http_protocol
from interlock.transport.http.server.app import Timing
from interlock.wire.sse import EventParser
from support.asgi import call_tool, message
from support.http_socket import connection, http, served
from support.idle import until_idle
from support.virtual_time import virtual_time

HI = call_tool("hi")
LISTEN = message("subscriptions/listen", "L", notifications={"toolsListChanged": True})
UPGRADE = {"connection": "Upgrade, HTTP2-Settings", "upgrade": "h2c", "http2-settings": "AAMAAABkAARAAAAAAAIAAAAA"}


class House:
    """A server with a tool that waits and one that talks on and on, and how many of them run."""

    def __init__(self, **options):
        self.server = server = Server("s")
        self.running = 0
        self.told = asyncio.Event()

        @server.tool
        async def hi() -> str:
            return "hi"

        @server.tool
        async def wait(ctx: Context) -> str:
            return await self.count(asyncio.Event().wait())

        @server.tool
        async def talk(ctx: Context) -> str:
            return await self.count(self.talk(ctx))

        self.app = server.asgi(**options)

    async def talk(self, ctx):
        while True:
            await ctx.log("info", "x" * 100_000)

    async def count(self, work):
        self.running += 1
        try:
            await work
        finally:
            self.running -= 1
        return "done"

    async def runs(self, number):
        async with asyncio.timeout(20):
            while self.app.in_flight != number:
                await asyncio.sleep(0.01)


def in_chunks(frame, *trailers, without=()):
    """A request whose body comes as one chunk, with what stands behind it."""
    body = json.dumps(frame).encode()
    changes = {"content-length": None, "transfer-encoding": "chunked", **dict.fromkeys(without)}
    head, _, _ = http(frame, changes).partition(b"\r\n\r\n")
    return b"%s\r\n\r\n%x\r\n%s\r\n0\r\n%s" % (head, len(body), body, b"".join(b"%s\r\n" % line for line in trailers))


# --- trailers ---


@pytest.mark.parametrize(("name", "status"), [("host", 403), ("mcp-name", 400), ("mcp-protocol-version", 400)])
async def test_a_trailer_is_no_header(name, status):
    said = {"host": b"localhost", "mcp-name": b"hi", "mcp-protocol-version": b"2026-07-28"}[name]
    async with served(House().app) as port, connection(port) as raw:
        raw.write(in_chunks(HI, name.encode() + b": " + said, b"", without=[name]))
        assert (await raw.response()).status == status


async def test_a_trailer_does_no_harm():
    async with served(House().app) as port, connection(port) as raw:
        for _ in range(2):
            raw.write(in_chunks(HI, b"mcp-name: other", b"digest: x", b""))
            assert (await raw.response()).status == 200


@pytest.mark.parametrize("endless", [b"x", b"a: b\r\n"])
async def test_trailers_without_end_are_cut_off(monkeypatch, endless):
    monkeypatch.setattr(http_protocol, "_MARGIN", 100_000)
    async with served(House(body_bytes=1000).app) as port, connection(port) as raw:
        raw.write(in_chunks(HI) + b"t: ")
        raw.write(endless * (3_000_000 // len(endless)))
        assert (await raw.head())[0] == 413


async def test_a_body_of_many_chunks_may_be_as_long_as_any_other(monkeypatch):
    monkeypatch.setattr(http_protocol, "_MARGIN", 300_000)
    head, _, rest = in_chunks(HI, b"").partition(b"\r\n\r\n")
    spaces = (b"%x\r\n%s\r\n" % (50_000, b" " * 50_000)) * 19
    async with served(House(body_bytes=1_000_000).app) as port, connection(port) as raw:
        raw.write(head + b"\r\n\r\n" + spaces + rest)
        assert (await raw.response()).status == 200


# --- bodies ---


def padded(size, id=1):
    """A call whose body is so long, most of it a space."""
    frame = call_tool("hi", id=id)
    return http(frame, {"content-length": str(size)}) + b" " * (size - len(json.dumps(frame)))


@pytest.mark.parametrize(("size", "piece"), [(65_536, 70_000), (65_537, 1000), (300_000, 300_000), (300_000, 40_000)])
async def test_a_body_for_which_reading_pauses_comes_whole(size, piece):
    data = padded(size) + http(HI)
    async with served(House().app) as port, connection(port) as raw:
        for start in range(0, len(data), piece):
            raw.write(data[start : start + piece])
            await raw.writer.drain()
        assert [(await raw.response()).status for _ in range(2)] == [200, 200]


async def test_long_bodies_may_wait_for_each_other():
    async with served(House().app) as port, connection(port) as raw:
        raw.write(b"".join(padded(200_000, id) for id in range(5)))
        assert [(await raw.response()).json["id"] for _ in range(5)] == [*range(5)]


@pytest.mark.parametrize("waits", [True, False])
async def test_who_asks_whether_to_send_a_body_is_told_to(waits):
    head, _, body = http(HI, {"expect": "100-continue"}).partition(b"\r\n\r\n")
    async with served(House().app) as port, connection(port) as raw:
        for _ in range(2):
            raw.write(head + b"\r\n\r\n" + (b"" if waits else body))
            assert (await raw.head())[0] == 100
            raw.write(body if waits else b"")
            assert (await raw.response()).status == 200


async def test_who_asks_whether_to_send_a_body_may_be_told_not_to():
    head, _, _ = http(HI, {"expect": "100-continue", "host": "evil.example"}).partition(b"\r\n\r\n")
    async with served(House().app) as port, connection(port) as raw:
        raw.write(head + b"\r\n\r\n")
        assert (await raw.response()).status == 403


@pytest.mark.parametrize("more", [{}, {"connection": "keep-alive"}])
async def test_a_connection_of_an_older_http_ends_with_its_answer(more):
    async with served(House().app) as port, connection(port) as raw:
        raw.write(http(HI, more).replace(b"HTTP/1.1", b"HTTP/1.0", 1))
        answer = await raw.response()
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        assert await raw.ended() == b""


# --- its tasks ---


def bare(**members):
    """A connection of which only these are there."""
    found = http_protocol.Bounded.__new__(http_protocol.Bounded)
    vars(found).update(members)
    return found


def test_what_an_application_is_told_of_a_request_is_what_uvicorn_tells():
    told = {"asgi_version": "3.0", "server": ("h", 1), "client": ("c", 2), "scheme": "http", "root_path": "/r"}
    told["app_state"] = {"a": 1}
    ours, theirs = bare(**told), bare(**told)
    ours.on_message_begin()
    HttpToolsProtocol.on_message_begin(theirs)
    assert ours.scope == theirs.scope and ours.scope["headers"] is ours.headers
    assert ours.scope["state"] is not told["app_state"]
    assert (ours.url, ours.expect_100_continue) == (theirs.url, theirs.expect_100_continue)


async def test_a_task_that_is_over_as_it_begins_is_not_kept():
    """Where the loop makes eager ones (Python 3.12)."""
    over = asyncio.get_running_loop().create_future()
    over.set_result(None)
    eager = SimpleNamespace(create_task=lambda _: over)
    cycle = SimpleNamespace(run_asgi=lambda app: None, task=None)
    protocol = bare(loop=eager, tasks=set())
    protocol._start_asgi_task(cycle, None)
    assert protocol.tasks == set() and cycle.task is None


async def test_no_request_leaves_a_task_behind(monkeypatch):
    made = []
    monkeypatch.setattr(http_protocol.Bounded, "expect_head", lambda self: made.append(self))
    house = House()
    async with served(house.app) as port:
        async with connection(port) as raw:
            raw.write(http(HI) + padded(100_000) + http(HI, UPGRADE) + in_chunks(HI, b"") + http(HI, verb="PUT"))
            assert [(await raw.response()).status for _ in range(5)] == [200, 200, 200, 200, 405]
            raw.write(http(call_tool("wait")) + http(HI))
            await house.runs(1)
        await house.runs(0)
        async with asyncio.timeout(20):
            while made[0].tasks:
                await asyncio.sleep(0.01)


async def test_a_task_cancelled_before_its_first_step_goes_with_its_connection(monkeypatch, caplog):
    begin, began = http_protocol.Bounded._start_asgi_task, []

    def cancel_at_once(self, cycle, app):
        begin(self, cycle, app)
        cycle.task.cancel()
        began.append(self)

    monkeypatch.setattr(http_protocol.Bounded, "_start_asgi_task", cancel_at_once)
    async with served(House().app) as port:
        async with connection(port) as raw, asyncio.timeout(20):
            raw.write(http(HI))
            while not began:
                await asyncio.sleep(0.01)
        async with asyncio.timeout(20):
            while began[0].tasks:
                await asyncio.sleep(0.01)
    assert caplog.records == []


# --- several requests at once ---


@pytest.mark.parametrize("first", [LISTEN, call_tool("wait")])
async def test_a_client_that_goes_ends_what_waits_before_its_last_request(first):
    house = House()
    async with served(house.app) as port:
        async with connection(port) as raw:
            raw.write(http(first) + http(HI) + http(HI))
            await house.runs(1)
        await house.runs(0)
        assert house.running == 0


async def test_some_requests_may_wait_for_the_one_before():
    async with served(House().app) as port, connection(port) as raw:
        raw.write(b"".join(http(call_tool("hi", id=number)) for number in range(40)))
        assert [(await raw.response()).json["id"] for _ in range(40)] == [*range(40)]


async def test_a_request_that_waited_finds_nothing_of_the_one_before():
    house, seen, found = House(), ContextVar("seen", default=0), []

    @house.server.tool
    async def see(ctx: Context) -> str:
        found.append(seen.get())
        seen.set(len(found))
        return "seen"

    outside = seen.set(7)  # what is there as the server begins is there for all
    async with served(house.app) as port, connection(port) as raw:
        raw.write(http(call_tool("see")) * 3)
        assert [(await raw.response()).status for _ in range(3)] == [200, 200, 200]
    seen.reset(outside)
    assert found == [7, 7, 7]


async def test_a_connection_with_too_many_waiting_requests_is_closed():
    house = House()
    async with served(house.app) as port, connection(port) as raw:
        raw.write(http(call_tool("wait")) + b"GET / HTTP/1.1\r\n\r\n" * (http_protocol._PIPELINED + 10))
        assert await raw.ended() == b""
        await house.runs(0)


BROKEN = b"no request at all\r\n\r\n"


@pytest.mark.parametrize("count", [1, 3])
async def test_what_is_no_request_takes_no_answer_from_those_before_it(count):
    async with served(House().app) as port, connection(port) as raw:
        raw.write(b"".join(http(call_tool("hi", id=number)) for number in range(count)) + BROKEN)
        answers = [await raw.response() for _ in range(count)]
        assert [answer.json["id"] for answer in answers] == [*range(count)]
        assert answers[-1].headers["connection"] == "close"
        assert await raw.ended() == b""


async def test_nothing_is_written_into_a_stream_that_is_under_way():
    house = House()
    async with served(house.app) as port, connection(port) as raw:
        raw.write(http(LISTEN))
        assert (await raw.head())[0] == 200
        raw.write(BROKEN)
        raw.write(BROKEN)
        house.app.stop()  # which ends such a stream
        rest = await raw.ended()
        assert b"HTTP/1.1" not in rest and rest.endswith(b"0\r\n\r\n")


async def test_a_head_without_end_behind_a_request_that_runs_is_no_answer_to_it():
    house = House()
    async with served(house.app) as port, connection(port) as raw:
        raw.write(http(call_tool("wait")))
        await house.runs(1)
        raw.write(b"GET / HTTP/1.1\r\nx: " + b"y" * http_protocol._HEAD_BYTES)
        assert await answer_or_end(raw) == b""
        await house.runs(0)


# --- what begins no request ---


async def drip(raw, data):
    """Until the server has closed the connection."""
    try:
        async with asyncio.timeout(20):
            while True:
                raw.write(data)
                await raw.writer.drain()
                await asyncio.sleep(0.01)
    except ConnectionError:
        return


async def test_empty_lines_do_not_keep_a_connection(monkeypatch):
    async with served(House().app) as port, connection(port) as raw:
        raw.write(http(HI))
        assert (await raw.response()).status == 200
        monkeypatch.setattr(http_protocol, "_HEAD_SECONDS", 0.1)
        await drip(raw, b"\r\n")


@pytest.mark.parametrize("kind", ["length", "chunks"])
async def test_the_rest_of_a_refused_body_does_not_keep_a_connection(monkeypatch, kind):
    changes = {"length": {"content-length": "4000000"}, "chunks": {"content-length": None}}[kind]
    changes |= {"transfer-encoding": "chunked"} if kind == "chunks" else {}
    async with served(House().app) as port, connection(port) as raw:
        raw.write(http(b"", {"host": "evil.example", **changes}))
        assert (await raw.response()).status == 403
        monkeypatch.setattr(http_protocol, "_HEAD_SECONDS", 0.1)
        await drip(raw, b"x" if kind == "length" else b"1\r\nx\r\n")


async def test_the_rest_of_a_refused_body_is_skipped():
    async with served(House().app) as port, connection(port) as raw:
        raw.write(http(b"x" * 1000, {"host": "evil.example"})[:-500])
        assert (await raw.response()).status == 403
        raw.write(b"x" * 500 + http(HI))
        assert (await raw.response()).status == 200


@pytest.mark.parametrize("length", ["20000000", None])
async def test_who_writes_too_much_still_reads_why_not(length):
    """A connection closed under a client that writes would be reset, and the answer lost with it."""
    body = b" " * 20_000_000
    async with served(House().app) as port:
        with socket.create_connection(("127.0.0.1", port)) as client:
            head, rest = http(b"", {"content-length": length}), body
            if length is None:
                head = http(b"", {"content-length": None, "transfer-encoding": "chunked"})
                rest = b"".join(b"%x\r\n%s\r\n" % (100_000, b" " * 100_000) for _ in range(200)) + b"0\r\n\r\n"
            await asyncio.to_thread(client.sendall, head + rest)
            assert (await asyncio.to_thread(client.recv, 1000)).startswith(b"HTTP/1.1 413")
            client.sendall(http(HI))
            assert (await asyncio.to_thread(client.recv, 1000)).startswith(b"HTTP/1.1 200")


# --- offers of other protocols ---


@pytest.mark.parametrize("cut", [1000, 7])
async def test_an_offer_of_another_protocol_is_ignored(cut):
    """The HTTP client of Java offers HTTP/2 with every request."""
    data = http(HI, UPGRADE) + http(HI)
    async with served(House().app) as port, connection(port) as raw:
        for start in range(0, len(data), cut):
            raw.write(data[start : start + cut])
            await raw.writer.drain()
        for _ in range(2):
            assert (await raw.response()).json["result"]["content"][0]["text"] == "hi"


async def test_an_offer_behind_a_request_that_runs_waits_for_it():
    house = House()
    async with served(house.app) as port:
        async with connection(port) as raw:
            raw.write(http(call_tool("wait")) + http(HI, {"connection": "upgrade", "upgrade": "websocket"}))
            await house.runs(1)
        await house.runs(0)


async def test_an_offer_may_want_the_connection_closed():
    changes = {"connection": "close, upgrade", "upgrade": "h2c"}
    async with served(House().app) as port, connection(port) as raw:
        raw.write(http(HI, changes))
        assert (await raw.response()).status == 200
        assert await raw.ended() == b""


async def test_an_offer_of_an_older_http_makes_it_no_newer():
    async with served(House().app) as port, connection(port) as raw:
        offer = http(HI, {**UPGRADE, "connection": "keep-alive, Upgrade"}).replace(b"HTTP/1.1", b"HTTP/1.0", 1)
        raw.write(offer)
        assert (await raw.response()).status == 200
        await raw.ended()


async def test_this_is_no_proxy():
    async with served(House().app) as port, connection(port) as raw:
        raw.write(b"CONNECT localhost:80 HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert (await raw.head())[0] == 400


# --- who does not read ---


async def talk_to_the_deaf(house):
    """A call that talks on and on to somebody who reads nothing, until it is over."""
    async with served(house.app) as port:
        with socket.create_connection(("127.0.0.1", port)) as deaf:
            deaf.sendall(http(call_tool("talk", **{"io.modelcontextprotocol/logLevel": "debug"})))
            await house.runs(1)
            await house.runs(0)
        assert house.running == 0


async def test_a_client_that_does_not_read_in_time_is_cut_off_and_that_is_told(caplog):
    with caplog.at_level(logging.INFO, "interlock.http"):
        await talk_to_the_deaf(House(timing=Timing(stalled=0.2)))
    told = [record for record in caplog.records if record.name.startswith("interlock.http")]
    assert [(record.levelname, record.getMessage()) for record in told] == [
        ("INFO", "= a request of 127.0.0.1 was ended: the client does not read")
    ]


async def test_a_connection_whose_peer_takes_nothing_is_cut(monkeypatch):
    monkeypatch.setattr(http_protocol, "_TAKES_NOTHING", 0.2)
    await talk_to_the_deaf(House())


class Buffer:
    """A transport that holds what its peer did not take yet."""

    def __init__(self, size):
        self.size, self.aborted = size, False

    def get_write_buffer_size(self):
        return self.size

    def abort(self):
        self.aborted = True


@virtual_time
async def test_a_peer_that_takes_a_little_at_a_time_is_waited_for():
    connection = http_protocol.Bounded.__new__(http_protocol.Bounded)
    connection.loop, connection.transport = asyncio.get_running_loop(), Buffer(1000)
    connection.watch_writing()
    connection.watch_writing()
    for _ in range(100):
        await asyncio.sleep(59)
        connection.transport.size -= 1
    assert not connection.transport.aborted
    await asyncio.sleep(121)
    assert connection.transport.aborted


# --- what is not used ---


async def test_a_connection_is_closed_once_it_was_quiet_for_long_enough(monkeypatch):
    monkeypatch.setattr("interlock.transport.http.runner.serve._IDLE", 0.2)
    async with served(House().app) as port, connection(port) as raw:
        raw.write(http(HI))
        assert (await raw.response()).status == 200
        assert await raw.ended() == b""


def looks(monkeypatch):
    """Set once a connection was looked at for how long it is quiet."""
    check, looked = http_protocol.Bounded.check_idle, asyncio.Event()

    def check_and_tell(self):
        check(self)
        looked.set()

    monkeypatch.setattr(http_protocol.Bounded, "check_idle", check_and_tell)
    return looked


async def test_a_call_that_takes_longer_than_that_is_answered(monkeypatch):
    monkeypatch.setattr("interlock.transport.http.runner.serve._IDLE", 0.2)
    house, released, looked = House(), asyncio.Event(), looks(monkeypatch)

    @house.server.tool
    async def long() -> str:
        await released.wait()
        return "there"

    async with served(house.app) as port, connection(port) as raw:
        raw.write(http(HI))
        assert (await raw.response()).status == 200
        raw.write(http(call_tool("long")))
        await looked.wait()
        released.set()
        assert (await raw.response()).status == 200
        assert await raw.ended() == b""


async def test_a_request_that_comes_in_pieces_is_not_cut_off_as_quiet(monkeypatch):
    monkeypatch.setattr("interlock.transport.http.runner.serve._IDLE", 0.2)
    looked = looks(monkeypatch)
    async with served(House().app) as port, connection(port) as raw:
        raw.write(http(HI))
        assert (await raw.response()).status == 200
        raw.write(http(HI)[:30])
        await looked.wait()
        raw.write(http(HI)[30:])
        assert (await raw.response()).status == 200
        assert await raw.ended() == b""


async def test_who_still_writes_a_refused_body_is_not_cut_off_as_quiet(monkeypatch):
    monkeypatch.setattr("interlock.transport.http.runner.serve._IDLE", 0.2)
    looked = looks(monkeypatch)
    async with served(House().app) as port, connection(port) as raw:
        raw.write(http(b"x" * 1000, {"host": "evil.example"})[:-500])
        assert (await raw.response()).status == 403
        raw.write(b"x" * 100)
        await looked.wait()
        raw.write(b"x" * 400 + http(HI))
        assert (await raw.response()).status == 200


# --- what is no request ---


@pytest.mark.parametrize("verb", ["HEAD", "PUT", "OPTIONS", "TRACE", "PATCH"])
async def test_other_verbs_are_refused_and_the_connection_goes_on(verb):
    async with served(House().app) as port, connection(port) as raw:
        for version, allowed in (("2026-07-28", "POST"), ("2025-06-18", "POST, GET, DELETE")):
            raw.write(http(b"", {"mcp-protocol-version": version}, verb=verb))
            status, headers = await raw.head()
            assert (status, headers["allow"]) == (405, allowed)
            assert not [name for name in headers if name.startswith("access-control")], "nobody asked for CORS"
            if verb != "HEAD":
                await raw.reader.readexactly(int(headers["content-length"]))
        raw.write(http(HI))
        assert (await raw.response()).status == 200


BODY = json.dumps(HI).encode()
ODD_CHUNKS = [
    (b"%x;ext=1\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY), 200),  # extensions are ignored (RFC 9112 §7.1.1)
    (b"000%X\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY), 200),
    (b"-1\r\n", 400),
    (b"0x10\r\n", 400),
    (b"ffffffffffffffffff\r\n", 400),
    (b"\r\n", 400),
    (b"3\r\nabcdef\r\n", 400),
    (b"0\r\n\r\n", 400),  # nothing is no message
]


@pytest.mark.parametrize(("chunks", "status"), ODD_CHUNKS)
async def test_odd_chunks(chunks, status):
    async with served(House().app) as port, connection(port) as raw:
        head = http(HI, {"content-length": None, "transfer-encoding": "chunked"}).partition(b"\r\n\r\n")[0]
        raw.write(head + b"\r\n\r\n" + chunks)
        assert (await raw.head())[0] == status


@pytest.mark.parametrize(
    "changes",
    [
        {"transfer-encoding": "chunked"},  # beside a Content-Length: what one proxy reads is not what the next one does
        {"content-length": "1, 2"},
        {"content-length": "+5"},
        {"content-length": "-5"},
        {"content-length": "99999999999999999999999"},
        {"content-length": None, "transfer-encoding": "chunked, identity"},
    ],
)
async def test_a_body_whose_end_is_in_doubt_is_refused_and_the_connection_closed(changes):
    async with served(House().app) as port, connection(port) as raw:
        raw.write(http(HI, changes))
        status, headers = await raw.head()
        assert (status, headers["connection"]) in ((400, "close"), (501, "close"))
        await raw.ended()


async def test_broken_and_cut_requests_have_defined_answers_and_leave_nothing(caplog):
    """A thousand of them here; tools/faults.py sends a hundred thousand."""
    house, random = House(), Random(5)
    async with served(house.app) as port:
        for _ in range(250):
            tries = [connection(port) for _ in range(4)]
            async with tries[0] as a, tries[1] as b, tries[2] as c, tries[3] as d:
                for raw in (a, b, c, d):
                    raw.write(spoilt(http(HI), random))
                    raw.writer.write_eof()
                for raw in (a, b, c, d):
                    told = await answer_or_end(raw)
                    assert told == b"" or int(told[9:12]) in (200, 202, 400, 403, 404, 405, 406, 408, 413, 415, 501), (
                        told
                    )
        await house.runs(0)
        async with connection(port) as raw:
            raw.write(http(HI))
            assert (await raw.response()).status == 200
    assert caplog.records == []


def spoilt(data, random):
    """Cut somewhere, or with a few bytes changed, doubled or taken out."""
    if random.random() < 0.3:
        return data[: random.randrange(len(data))]
    changed = bytearray(data)
    for _ in range(random.randint(1, 4)):
        place = random.randrange(len(changed))
        changed[place : place + random.randint(0, 2)] = random.randbytes(random.randint(0, 3))
    return bytes(changed)


async def answer_or_end(raw):
    try:
        return await raw.ended()
    except ConnectionError:
        return b""


@pytest.mark.parametrize("version", [b"2.0", b"0.9"])
async def test_what_is_no_version_of_ours_is_refused(version):
    async with served(House().app) as port, connection(port) as raw:
        raw.write(http(HI).replace(b"HTTP/1.1", b"HTTP/" + version, 1))
        assert (await raw.head())[0] == 400


async def test_a_client_of_an_older_http_is_told_nothing_before_its_answer():
    async with served(House().app) as port, connection(port) as raw:
        raw.write(http(HI, {"expect": "100-continue"}).replace(b"HTTP/1.1", b"HTTP/1.0", 1)[:-1])
        await until_idle()
        raw.write(b"}")
        assert (await raw.head())[0] == 200


async def test_a_stream_for_a_client_of_an_older_http_is_as_long_as_its_connection():
    house = House()
    async with served(house.app) as port, connection(port) as raw:
        raw.write(http(LISTEN).replace(b"HTTP/1.1", b"HTTP/1.0", 1))
        status, headers = await raw.head()
        assert (status, headers["connection"], "transfer-encoding" in headers) == (200, "close", False)
        house.app.stop()
        said = EventParser(10_000).feed(await raw.ended())
        assert json.loads(said[-1].data)["id"] == "L"


@pytest.mark.parametrize(
    ("target", "host", "status"),
    [
        ("http://localhost/mcp", "evil.example", 200),
        ("http://LOCALHOST:8000/mcp", "localhost", 200),
        ("http://[::1]:80/mcp", "localhost", 200),
        ("http://evil.example/mcp", "localhost", 403),
        ("http://evil.example:80/mcp", "localhost", 403),
        ("http://localhost/mcp", "localhost\r\nhost: localhost", 400),
        ("http://localhost/mcp", None, 403),
    ],
)
async def test_a_host_in_the_target_is_the_one_that_counts(target, host, status):
    async with served(House().app) as port, connection(port) as raw:
        raw.write(http(HI, {"host": host}, target=target))
        assert (await raw.response()).status == status


async def test_far_beyond_the_cap_connections_are_closed_without_a_word(monkeypatch):
    monkeypatch.setattr(http_protocol, "_TURNED_AWAY", 1)
    async with served(House().app, connections=1) as port, connection(port) as served_one:
        served_one.write(http(HI))
        assert (await served_one.response()).status == 200
        async with connection(port) as told, connection(port) as cut:
            assert await answer_or_end(cut) == b""
            told.write(http(HI))
            assert (await told.head())[0] == 503


async def test_one_address_has_its_share_of_the_connections(monkeypatch):
    """On this machine callers have no share of their own: here they are told apart by address all the same."""
    monkeypatch.setattr(http_protocol, "caller_of", lambda principal, address: address)
    async with served(House().app, connections=8, connections_per_address=2) as port:
        async with connection(port) as one, connection(port) as two, connection(port) as three:
            for raw, status in ((one, 200), (two, 200), (three, 503)):
                raw.write(http(HI))
                assert (await raw.head())[0] == status
            async with connection(port, source="127.0.0.2") as elsewhere:
                elsewhere.write(http(HI))
                assert (await elsewhere.response()).status == 200
        status = 503
        async with asyncio.timeout(20):
            while status == 503:  # until the server has seen that they were closed, which makes room
                async with connection(port) as raw:
                    raw.write(http(HI))
                    status, *_ = await raw.head()
        assert status == 200


async def test_a_proxy_on_this_machine_may_have_all_connections():
    serving = served(House().app, connections=2, connections_per_address=1)
    async with serving as port, connection(port) as one, connection(port) as two:
        for raw in (one, two):
            raw.write(http(HI))
            assert (await raw.response()).status == 200


def test_a_quarter_of_the_connections_is_for_one_address():
    shares = http_protocol.bounded_by(1, 4096).shares
    assert shares.has_room("192.0.2.1", 1024) and not shares.has_room("192.0.2.1", 1025)


# --- what is logged ---


async def test_what_strangers_send_does_not_fill_the_log(caplog):
    async with served(House().app) as port:
        with caplog.at_level(logging.WARNING):
            for garbage in (b"\x16\x03\x01", http(HI, UPGRADE), b"GET / HTTP/9.9\r\n\r\n", b"NO / HTTP/1.1\r\n"):
                async with connection(port) as raw:
                    raw.write(garbage)
                    await raw.head()
    assert [record for record in caplog.records if record.name != "asyncio"] == []


async def test_what_fails_inside_is_still_logged(caplog):
    async def broken(call, headers):
        raise RuntimeError("inside")

    house = House()
    house.app._serve = broken
    async with served(house.app) as port, connection(port) as raw:
        raw.write(http(HI))
        assert (await raw.response()).body == b"Internal Server Error"
    assert [record.name for record in caplog.records] == ["interlock.http.errors"]


@pytest.mark.parametrize(
    ("place", "requests", "data"),
    [
        ("on_message_begin", 0, http(HI)),
        ("on_headers_complete", 0, http(HI)),
        ("on_body", 0, http(HI)),
        ("count", 1, b"POST"),
        ("begin_again", 3, http(HI)),  # from the second request on heads are remembered
    ],
)
async def test_a_defect_in_reading_is_logged_and_answered_500(monkeypatch, caplog, place, requests, data):
    """A 400 says that the client is at fault: a method that a version of uvicorn lacks is not its fault."""

    def fail(*given):
        raise AttributeError("not there in this version")

    if not requests:
        monkeypatch.setattr(http_protocol.Bounded, place, fail)
    async with served(House().app) as port, connection(port) as raw:
        for _ in range(requests):
            raw.write(http(HI))
            assert (await raw.response()).status == 200
        monkeypatch.setattr(http_protocol.Bounded, place, fail)
        raw.write(data)
        status, headers = await raw.head()
        assert (status, headers["connection"]) == (500, "close")
        assert await raw.ended() == b""
    [record] = [record for record in caplog.records if record.name == "interlock.http.errors"]
    assert record.levelname == "ERROR" and record.exc_info[0] is AttributeError


@pytest.mark.parametrize("again", [False, True])
async def test_a_request_that_cannot_be_started_ends_its_connection(monkeypatch, caplog, again):
    def fail(*given):
        raise RuntimeError("no task")

    async with served(House().app) as port, connection(port) as raw:
        for _ in range(3 * again):
            raw.write(http(HI))
            assert (await raw.response()).status == 200
        monkeypatch.setattr(http_protocol.Bounded, "_start_asgi_task", fail)
        raw.write(http(HI))
        said = await raw.ended()
        assert said == b"" or said.startswith(b"HTTP/1.1 500 ")
    assert [record.name for record in caplog.records] == ["interlock.http.errors"]


async def test_a_target_that_is_not_ascii_is_the_clients_mistake(caplog):
    async with served(House().app) as port, connection(port) as raw:
        raw.write(http(HI).replace(b"/mcp", "/müp".encode(), 1))
        assert (await raw.head())[0] == 400
    assert caplog.records == []


async def test_a_head_that_stays_away_behind_others_says_nothing_into_their_answers(monkeypatch):
    monkeypatch.setattr(http_protocol, "_HEAD_SECONDS", 0.5)
    async with served(House().app) as port, connection(port) as raw:
        raw.write(http(LISTEN) + http(HI) + b"POST /mcp HTTP/1.1\r\nhost:")
        said = await raw.ended()
        assert said.startswith(b"HTTP/1.1 200 ") and b"subscriptions/acknowledged" in said
        assert said.count(b"HTTP/1.1 ") == 1
