"""transport/http/runner/serve.py: a real server on a real port, spoken to in bytes."""

import asyncio
import re
import resource
import signal
import socket
import subprocess
import sys

import pytest

from interlock import Context, Server
from interlock.state.memory import MemoryStore
from interlock.state.sqlite.store import SQLiteStore
from interlock.transport.http.runner import protocol, serve
from interlock.transport.http.runner.serve import bind, check_binding, is_loopback, room_for, run_http
from interlock.transport.http.server.app import Timing
from interlock.wire.errors import LocalError
from support.asgi import call_tool, message
from support.http_socket import connection, http, served

LISTEN = message("subscriptions/listen", "L", notifications={"toolsListChanged": True})


class House:
    def __init__(self, **options):
        self.server = server = Server("s")
        self.started, self.cancelled, self.go = asyncio.Event(), asyncio.Event(), asyncio.Event()

        @server.tool
        async def hi() -> str:
            return "hi"

        @server.tool
        async def wait(ctx: Context, steps: int = 0) -> str:
            try:
                for step in range(steps):
                    await ctx.progress(step)
                    await asyncio.sleep(0.06)  # the meter lets twenty in a second through
                self.started.set()
                await self.go.wait()
            except asyncio.CancelledError:
                self.cancelled.set()
                raise
            return "waited"

        self.app = server.asgi(**options)


# --- before it runs ---


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "localhost", "::1"])
def test_a_loopback_address_needs_no_names(host):
    assert is_loopback(host)
    check_binding(host, ())


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.168.1.5", "mcp.example.com", "127.evil.example"])
def test_an_open_address_needs_names(host):
    with pytest.raises(LocalError) as caught:
        check_binding(host, ())
    assert "allowed_hosts" in str(caught.value) and "127.0.0.1" in str(caught.value)
    assert "--allow" in str(caught.value)
    check_binding(host, ("mcp.example.com",))


def test_an_open_address_is_refused_before_anything_listens():
    with pytest.raises(LocalError):
        run_http(Server("s").asgi(), host="0.0.0.0", port=0)


@pytest.mark.parametrize(
    ("workers", "told"), [(2, "state='state.db', or --state state.db"), (0, "from 1 to 1024"), (1025, "from 1 to 1024")]
)
def test_workers_that_cannot_be_are_refused_before_anything_listens(workers, told):
    with pytest.raises(LocalError) as caught:
        Server("s").run("http", port=0, workers=workers)
    assert told in str(caught.value)


def test_workers_share_what_is_named_or_the_store_of_their_server(tmp_path, monkeypatch):
    begun = []
    monkeypatch.setattr(serve, "supervise", lambda work, count, **facts: begun.append(count))
    Server("s").run("http", port=0, workers=2, state=tmp_path / "state.db")
    Server("s", store=SQLiteStore(tmp_path / "state.db")).run("http", port=0, workers=3)
    assert begun == [2, 3]
    with pytest.raises(LocalError, match="other processes do not see this store"):
        Server("s", store=MemoryStore()).run("http", port=0, workers=2)


@pytest.mark.parametrize(("host", "known"), [("", False), ("0.0.0.0", False), ("127.0.0.2", True), ("::", False)])
def test_every_address_is_no_name(monkeypatch, host, known):
    monkeypatch.setattr(serve, "bind", lambda *where: socket.socket())
    monkeypatch.setattr(serve, "run_main", lambda main, *rest: main.close())
    app = Server("s").asgi(allowed_hosts=["mcp.example.com"])
    run_http(app, host=host, port=0)
    name = f"[{host}]" if ":" in host else host
    assert app._guard.knows_host(name.encode()) is known
    assert app._guard.knows_host(name.encode() + b":80") is known


def test_a_port_that_is_taken_is_said():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(LocalError, match=f"port {port}: another process") as caught:
            bind("127.0.0.1", port)
    assert "another port" in (caught.value.hint or "")


@pytest.mark.parametrize("host", ["no such host", "999.1.1.1"])
def test_an_address_that_is_none_is_said(host):
    with pytest.raises(LocalError, match="cannot listen"):
        bind(host, 0)


@pytest.mark.parametrize(
    ("limits", "wanted", "found", "raised"),
    [
        ((1024, 4096), 100, 100, None),  # there is room
        ((1024, 100_000), 4096, 4096, (4096 + 320, 100_000)),
        ((1024, -1), 4096, 4096, (4096 + 320, -1)),
        ((1024, 2048), 4096, 2048 - 320, (2048, 2048)),
        ((100, 100), 4096, 1, (100, 100)),
        ((-1, -1), 4096, 4096, None),
    ],
)
def test_there_are_no_more_connections_than_the_system_lets_a_process_have(monkeypatch, limits, wanted, found, raised):
    said = []
    monkeypatch.setattr(resource, "getrlimit", lambda which: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda which, given: said.append(given))
    assert room_for(wanted) == found
    assert said == ([] if raised is None else [raised])


def test_a_limit_that_may_not_be_raised_is_kept(monkeypatch):
    def refused(which, given):
        raise ValueError("not allowed")

    monkeypatch.setattr(resource, "getrlimit", lambda which: (1024, 4096))
    monkeypatch.setattr(resource, "setrlimit", refused)
    assert room_for(4096) == 1024 - 320


async def test_peers_that_vanish_are_noticed():
    """The system ends such a connection, and with it the stream on it; they inherit that from the listener."""
    with bind("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 60_000
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 30


# --- requests ---


async def test_many_requests_on_one_connection():
    async with served(House().app) as port, connection(port) as raw:
        for number in range(50):
            raw.write(http(call_tool("hi", id=number)))
            answer = await raw.response()
            assert (answer.status, answer.json["id"]) == (200, number)
            assert answer.headers.keys() == {"content-type", "content-length"}


async def test_pipelined_requests_are_answered_in_their_order():
    async with served(House().app) as port, connection(port) as raw:
        raw.write(b"".join(http(call_tool("hi", id=number)) for number in range(20)))
        assert [(await raw.response()).json["id"] for _ in range(20)] == list(range(20))


async def test_header_names_in_any_case_and_white_space_around_values():
    frame = call_tool("hi")
    data = http(frame).replace(b"mcp-method: tools/call", b"MCP-METHOD:  tools/call \t ")
    data = data.replace(b"mcp-name: hi", b"Mcp-Name:   hi   ").replace(b"host:", b"HOST:")
    async with served(House().app) as port, connection(port) as raw:
        raw.write(data)
        assert (await raw.response()).status == 200


@pytest.mark.parametrize(
    ("before", "after", "status", "code"),
    [
        (b"mcp-method: tools/call", b"mcp-method: tools/call\r\nMcp-Method: tools/call", 400, -32020),
        (b"mcp-name: hi", b"mcp-name: hi\r\nMCP-NAME: ho", 400, -32020),
        (b"mcp-name: hi", b"mcp-name: HI", 400, -32020),
        (b"mcp-name: hi\r\n", b"", 400, -32020),
        (b"mcp-name: hi", b"mcp-name: =?base64?aGk=?=", 200, None),
        (b"host: 127.0.0.1:8000", b"host: evil.example.com", 403, -32600),
        (b"host: 127.0.0.1:8000", b"host: 127.0.0.1\r\norigin: http://evil.example.com", 403, -32600),
        (b"content-type: application/json", b"content-type: text/plain", 415, -32600),
        (b"accept: application/json, text/event-stream", b"accept: text/html", 406, -32600),
        (b"POST /mcp", b"GET /mcp", 405, -32600),
        (b"POST /mcp", b"DELETE /mcp", 405, -32600),
        (b"tools/call", b"tools/fall", 404, -32601),
        (b"2026-07-28", b"2099-01-01", 400, -32022),
    ],
)
async def test_what_is_wrong_has_its_status(before, after, status, code):
    data = http(call_tool("hi"))
    assert before in data
    async with served(House().app) as port, connection(port) as raw:
        raw.write(data.replace(before, after))
        answer = await raw.response()
        assert answer.status == status
        assert answer.json.get("error", {}).get("code") == code
        raw.write(http(call_tool("hi", id="next")))
        assert (await raw.response()).json["id"] == "next", "the connection goes on"


async def test_another_path_is_no_endpoint():
    async with served(House().app) as port, connection(port) as raw:
        raw.write(http(call_tool("hi"), target="/"))
        answer = await raw.response()
        assert (answer.status, answer.headers["content-type"]) == (404, "text/plain; charset=utf-8")


async def test_a_body_over_the_limit_is_not_waited_for():
    async with served(House(body_bytes=100).app) as port, connection(port) as raw:
        raw.write(http(b"", {"content-length": "101"}))
        assert (await raw.response()).status == 413


async def test_a_body_of_unknown_length_is_bounded_too():
    async with served(House(body_bytes=100).app) as port, connection(port) as raw:
        raw.write(http(b"", {"content-length": None, "transfer-encoding": "chunked"}))
        raw.write((b"40\r\n" + b" " * 64 + b"\r\n") * 3)
        assert (await raw.response()).status == 413


async def test_a_body_that_stays_away_is_dropped():
    async with served(House(timing=Timing(body=0.1, watch=0.01)).app) as port, connection(port) as raw:
        raw.write(http(b"", {"content-length": "10"}) + b"{")
        answer = await raw.response()
        assert (answer.status, answer.headers["connection"]) == (408, "close")
        assert await raw.ended() == b""


async def test_a_head_without_an_end_is_refused():
    async with served(House().app) as port, connection(port) as raw:
        raw.write(b"POST /mcp HTTP/1.1\r\nhost: localhost\r\nx: " + b"y" * 100_000)
        status, headers = await raw.head()
        assert (status, headers["connection"]) == (431, "close")


async def test_a_head_that_comes_in_pieces_is_read():
    data = http(call_tool("hi"))
    async with served(House().app) as port, connection(port) as raw:
        for number in range(0, len(data), 40):
            raw.write(data[number : number + 40])
            await raw.writer.drain()
            await asyncio.sleep(0)
        assert (await raw.response()).status == 200


@pytest.mark.parametrize(("data", "told"), [(b"", 408), (b"POST /mcp HTTP/1.1\r\nhost:", 408)])
async def test_a_head_that_stays_away_is_given_up(monkeypatch, data, told):
    monkeypatch.setattr(protocol, "_HEAD_SECONDS", 0.1)
    async with served(House().app) as port, connection(port) as raw:
        raw.write(data)
        status, _ = await raw.head()
        assert status == told
        assert await raw.ended() == b""


async def test_a_later_head_that_stays_away_is_given_up(monkeypatch):
    monkeypatch.setattr(protocol, "_HEAD_SECONDS", 0.1)
    async with served(House().app) as port, connection(port) as raw:
        raw.write(http(call_tool("hi")))
        assert (await raw.response()).status == 200
        raw.write(b"POST")
        assert (await raw.head())[0] == 408


async def test_progress_comes_while_the_work_goes_on():
    house = House()
    async with served(house.app) as port, connection(port) as raw:
        raw.write(http(call_tool("wait", {"steps": 3}, progressToken=7)))
        status, headers = await raw.head()
        assert (status, headers["content-type"]) == (200, "text/event-stream")
        told = [await raw.event() for _ in range(3)]
        assert [event["params"]["progress"] for event in told] == [0, 1, 2]
        house.go.set()
        assert (await raw.event())["result"]["content"][0]["text"] == "waited"
        assert await raw.chunk() == b"", "the answer ends the stream"
        raw.write(http(call_tool("hi")))
        assert (await raw.response()).status == 200, "and not the connection"


@pytest.mark.parametrize("steps", [0, 1])
async def test_a_client_that_goes_cancels_its_call(steps):
    house = House()
    async with served(house.app) as port:
        async with connection(port) as raw:
            raw.write(http(call_tool("wait", {"steps": steps}, progressToken=1)))
            async with asyncio.timeout(20):
                await house.started.wait()
        async with asyncio.timeout(20):
            await house.cancelled.wait()
        async with connection(port) as raw:
            raw.write(http(call_tool("hi")))
            assert (await raw.response()).status == 200


async def test_a_listener_hears_of_changes_and_of_the_end():
    house = House()
    async with connection_when_stopping(house) as raw:
        raw.write(http(LISTEN))
        await raw.head()
        assert (await raw.event())["method"] == "notifications/subscriptions/acknowledged"
        house.server.remove_tool("hi")
        assert (await raw.event())["method"] == "notifications/tools/list_changed"
    assert (await raw.event())["result"]["resultType"] == "complete"
    assert await raw.chunk() == b""
    await raw.close()


class connection_when_stopping:
    """A connection that outlives the body of the block: the server is told to stop at its end."""

    def __init__(self, house, drain=5.0):
        self.served = served(house.app, drain=drain)

    async def __aenter__(self):
        self.port = await self.served.__aenter__()
        self.connection = connection(self.port)
        self.raw = await self.connection.__aenter__()
        return self.raw

    async def __aexit__(self, *error):
        self.stopping = asyncio.ensure_future(self.served.__aexit__(*error))
        await self.stopping


async def test_a_call_in_flight_is_answered_before_the_end():
    house = House()
    async with connection_when_stopping(house) as raw:
        raw.write(http(call_tool("wait")))
        async with asyncio.timeout(20):
            await house.started.wait()
        asyncio.get_running_loop().call_later(0.2, house.go.set)
    assert (await raw.response()).json["result"]["content"][0]["text"] == "waited"
    await raw.close()


async def test_a_call_that_does_not_end_is_told_of_the_end():
    house = House()
    async with connection_when_stopping(house, drain=0.1) as raw:
        raw.write(http(call_tool("wait", id="x")))
        async with asyncio.timeout(20):
            await house.started.wait()
    answer = await raw.response()
    assert (answer.status, answer.json["id"], house.cancelled.is_set()) == (503, "x", True)
    await raw.close()


async def test_while_it_stops_the_sign_of_life_and_new_requests_say_so():
    house = House()
    async with connection_when_stopping(house) as raw, connection_to_the_same(raw) as other:
        raw.write(http(call_tool("wait")))
        async with asyncio.timeout(20):
            await house.started.wait()
        house.app.stop()
        other.write(http(b"", verb="GET", target="/health"))
        sign = await other.response()
        other.write(http(call_tool("hi")))
        refused = await other.response()
        house.go.set()
        assert (sign.status, sign.json) == (503, {"status": "stopping"})
        assert (refused.status, refused.headers["retry-after"]) == (503, "1")
    assert (await raw.response()).json["result"]["content"][0]["text"] == "waited"
    await raw.close()


def connection_to_the_same(raw):
    return connection(raw.writer.get_extra_info("peername")[1])


# --- what has no room ---


async def test_a_connection_too_many_is_told_so_and_the_others_go_on():
    house = House()
    async with served(house.app, connections=2) as port, connection(port) as one, connection(port) as two:
        for raw in (one, two):
            raw.write(http(call_tool("hi")))
            assert (await raw.response()).status == 200
        async with connection(port) as surplus:
            surplus.write(http(call_tool("hi")))
            answer = await surplus.response()
            assert (answer.status, answer.headers["retry-after"], answer.headers["connection"]) == (503, "1", "close")
            assert await surplus.ended() == b""
        two.write(http(call_tool("hi")))
        assert (await two.response()).status == 200
        await one.close()
        answer = await first_with_room(port)
        assert answer.status == 200


async def test_without_its_own_protocol_connections_are_still_bounded(monkeypatch):
    monkeypatch.setattr(serve, "_protocol", lambda *bounds: serve._PLAIN)
    async with served(House().app, connections=2) as port, connection(port) as one:
        one.write(http(call_tool("hi")))
        assert (await one.response()).status == 200
        async with connection(port) as two:
            two.write(http(call_tool("hi")))
            assert (await two.response()).status == 503


def test_only_a_missing_parser_falls_back_to_the_plain_protocol(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "httptools", None)
        assert serve._protocol(1000, 10) == serve._PLAIN
    monkeypatch.setitem(sys.modules, "interlock.transport.http.runner.protocol", None)
    with pytest.raises(ImportError):
        serve._protocol(1000, 10)


async def first_with_room(port):
    """The place of a connection that was closed is free a moment later."""
    async with asyncio.timeout(20):
        while True:
            async with connection(port) as raw:
                raw.write(http(call_tool("hi")))
                if (answer := await raw.response()).status != 503:
                    return answer


async def test_a_connection_too_many_that_says_nothing_is_not_kept(monkeypatch):
    monkeypatch.setattr(protocol, "_TURNING_AWAY", 0.1)
    async with served(House().app, connections=0) as port, connection(port) as raw:
        raw.write(b"POST /mcp HTTP/1.1\r\nhost:")
        assert await ended(raw) == b""


async def test_far_too_many_connections_are_closed_at_once(monkeypatch):
    monkeypatch.setattr(protocol, "_TURNED_AWAY", 0)
    monkeypatch.setattr(protocol, "_TURNING_AWAY", 3600.0)  # which would else end it as well
    async with served(House().app, connections=0) as port, connection(port) as raw:
        assert await ended(raw) == b""


async def ended(raw):
    try:
        return await raw.ended()
    except ConnectionError:
        return b""


# --- as a process ---

PROGRAM = """
import asyncio, sys
from interlock import Server
server = Server("s")

@server.tool
async def deaf() -> str:
    print("started", file=sys.stderr, flush=True)
    while True:
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            pass

server.run("http", port=0)
"""


HANGING = """
import asyncio, sys
from interlock import Server
from interlock.transport.http.runner import serve
serve._LAST = float(sys.argv[1])
server = Server("s")

@server.app_lifespan
async def life():
    yield
    print("ending", file=sys.stderr, flush=True)
    await asyncio.sleep(1000)

server.run("http", port=0, drain=0.1)
"""


def started(*words):
    process = subprocess.Popen([sys.executable, *words], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    line = process.stderr.readline()
    found = re.search(r"http://127\.0\.0\.1:(\d+)/mcp", line)
    assert found, line + process.stderr.read()
    return process, int(found[1])


def wait_until_it_stops(port):
    with socket.create_connection(("127.0.0.1", port)) as client:
        while True:
            client.sendall(http(b"", verb="GET", target="/health"))
            if b"stopping" in client.recv(1000):
                return


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_0(number):
    process, _ = started("-c", PROGRAM)
    try:
        process.send_signal(number)
        assert process.wait(30) == 0
        assert process.stderr.read() == ""
    finally:
        process.kill()
        process.communicate()


def test_a_handler_that_never_ends_does_not_keep_the_process_and_a_second_signal_is_enough():
    process, port = started("-c", PROGRAM)
    try:
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(http(call_tool("deaf")))
            assert process.stderr.readline() == "started\n"
            process.send_signal(signal.SIGTERM)
            wait_until_it_stops(port)  # two signals that wait to be delivered are one
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
            assert "Traceback" not in process.stderr.read()
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("hurried", [True, False])
def test_an_end_that_hangs_does_not_keep_the_process(hurried):
    """A second signal skips it at once; without one it has its time, which is short here."""
    process, _ = started("-c", HANGING, "1000" if hurried else "0.5")
    try:
        process.send_signal(signal.SIGTERM)
        assert process.stderr.readline() == "ending\n"
        if hurried:
            process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        told = process.stderr.read()
        assert "did not end in time" in told and "Traceback" not in told
    finally:
        process.kill()
        process.communicate()


def test_each_worker_is_told_how_many_there_are(tmp_path):
    """Rates are counted in each of them, so each allows its part."""
    server, told = Server("s"), []
    server.spread = told.append
    app = server.asgi(state=tmp_path / "s.db")
    for workers in (1, 3):
        serve._check(app, "127.0.0.1", workers)
    assert told == [1, 3]


def test_why_it_cannot_start_is_said_once_and_by_us(tmp_path):
    """uvicorn would say it as well, and that it exits."""
    program = "import sys; from interlock import Server; Server('s').run('http', port=0, state=sys.argv[1])"
    ended = subprocess.run([sys.executable, "-c", program, tmp_path], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1 and "Application startup" not in ended.stderr
    assert ended.stderr.count("not a regular file") == 1


def test_without_uvloop_the_loop_is_pythons_own(monkeypatch):
    """It is not made for every platform, and for a new Python not at once."""
    monkeypatch.setitem(sys.modules, "uvloop", None)
    loop = serve._loop_factory()()
    try:
        assert type(loop).__module__.startswith("asyncio.")
    finally:
        loop.close()
