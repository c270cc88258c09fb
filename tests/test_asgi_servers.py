"""`server.asgi()` where others run it: mounted in Starlette and FastAPI, served by uvicorn, gunicorn, hypercorn and
granian."""

import asyncio
import os
import signal
import sys
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.routing import Mount, Route

from interlock import Context, LocalError, Server
from support.asgi import call_tool, message, post
from support.http_socket import connection, find_free_port, http, wait_until_listening
from support.sessions import OverSession

LISTEN = message("subscriptions/listen", "L", notifications={"toolsListChanged": True})
WAIT = 60.0


def app(**options):
    server = Server("s")

    @server.tool
    async def hi() -> str:
        return "hi"

    return server.asgi(**options)


def in_fastapi(prefix, **options):
    framework = FastAPI()
    framework.mount(prefix, app(**options))
    return framework


async def ask(framework, path):
    scope = {"query_string": b"", "scheme": "http", "http_version": "1.1", "server": ("127.0.0.1", 8000)}
    return await post(framework, call_tool("hi"), path=path, raw_path=path.encode(), **scope).answer()


# --- below a prefix ---


@pytest.mark.parametrize(
    ("framework", "path"),
    [
        (lambda: Starlette(routes=[Mount("/api", app())]), "/api/mcp"),
        (lambda: Starlette(routes=[Mount("/api", app())]), "/api/mcp/"),
        (lambda: Starlette(routes=[Mount("/api/", app())]), "/api/mcp"),
        (lambda: Starlette(routes=[Mount("/", app())]), "/mcp"),
        (lambda: Starlette(routes=[Mount("/", app())]), "/mcp/"),
        (lambda: Starlette(routes=[Mount("/api", app(path="/"))]), "/api/"),
        (lambda: Starlette(routes=[Route("/mcp", app())]), "/mcp"),
        (lambda: Starlette(routes=[Mount("/a", routes=[Mount("/b", app(path="/c/d"))])]), "/a/b/c/d"),
        (lambda: Starlette(routes=[Mount("/a", Starlette(routes=[Mount("/b", app())]))]), "/a/b/mcp/"),
        (lambda: in_fastapi("/api"), "/api/mcp"),
        (lambda: in_fastapi("/api"), "/api/mcp/"),
        (lambda: in_fastapi("/"), "/mcp"),
        (lambda: in_fastapi("/api", path="/"), "/api/"),
    ],
)
async def test_mounted_it_is_found(framework, path):
    answer = await ask(framework(), path)
    assert (answer.status, answer.json["result"]["content"][0]["text"]) == (200, "hi")


async def test_at_a_bare_prefix_the_framework_redirects_to_the_slash():
    scope = {"query_string": b"", "scheme": "http", "server": ("127.0.0.1", 8000)}
    answer = await post(in_fastapi("/api", path="/"), call_tool("hi"), path="/api", **scope).answer()
    assert (answer.status, answer.headers["location"]) == (307, "http://127.0.0.1:8000/api/")


async def test_mounted_it_says_where_the_endpoint_is():
    """Below the prefix: /mcp alone would be another place of the framework's."""
    answer = await ask(in_fastapi("/api"), "/api/typo")
    assert (answer.status, answer.body) == (404, b"Not found: the MCP endpoint is /api/mcp\n")


async def test_mounted_it_is_for_loopback_names_until_others_are_said():
    for options, status in (({}, 403), ({"allowed_hosts": ["mcp.example.com"]}, 200)):
        scope = {"query_string": b"", "scheme": "http", "path": "/api/mcp"}
        answer = await post(
            in_fastapi("/api", **options), call_tool("hi"), {"host": "mcp.example.com"}, **scope
        ).answer()
        assert answer.status == status
        assert status == 200 or "allowed_hosts" in answer.error["message"], "the refusal names the setting"


# --- under other servers ---


def words(kind, port):
    return {
        "uvicorn": ["uvicorn", "support.anywhere:framework", "--port", str(port), "--log-level", "warning"],
        "hypercorn": ["hypercorn", "support.anywhere:plain", "-b", f"127.0.0.1:{port}"],
        "granian": ["granian", "--interface", "asginl", "support.anywhere:plain", "--port", str(port)],
    }[kind]


class Running:
    def __init__(self, process, port):
        self.process, self.port, self.log = process, port, ""

    async def heard(self, what, times=1):
        """Wait until the application has said it so often."""
        async with asyncio.timeout(WAIT):
            while self.log.count(f"said: {what}\n") < times:
                line = await self.process.stderr.readline()
                assert line, self.log
                self.log += line.decode()

    async def stopped(self):
        self.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(WAIT):
            told, rest = await self.process.communicate()
        return (told + rest).decode()

    async def whole(self, frame, changes=None, **where):
        async with connection(self.port) as raw:
            raw.write(http(frame, changes, **where))
            return await raw.response()


@asynccontextmanager
async def running(words_of):
    """What the words for a port start: its workers are in its process group."""
    port = find_free_port()
    command = words_of(port)
    paths = os.pathsep.join([os.path.dirname(__file__), *sys.path])
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        *command,
        stdout=pipe,
        stderr=pipe,
        env={**os.environ, "PYTHONPATH": paths},
        start_new_session=True,
    )
    try:
        await wait_until_listening(process, port)
        yield Running(process, port)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.communicate()


@pytest.mark.parametrize(
    ("kind", "at", "health"),
    [
        ("uvicorn", "/api/mcp", "/api/health"),
        ("uvicorn", "/deep/er/", "/deep/er/health"),
        ("hypercorn", "/mcp", "/health"),
        ("granian", "/mcp/", "/health"),
    ],
)
async def test_it_serves_under_other_servers(kind, at, health):
    async with running(lambda port: words(kind, port)) as there:
        assert (await there.whole(call_tool("hi"), target=at)).json["result"]["content"][0]["text"] == "alive"
        sign = await there.whole(b"", {"host": "elsewhere"}, target=health, verb="GET")
        assert (sign.status, sign.json) == (200, {"status": "serving"})
        await streams(there, at)
        await verbs(there, at)
        await session(there, at)
        await going_away(there, at)
        log = there.log + await there.stopped()
    assert "Traceback" not in log and "ERROR" not in log, log
    assert log.count("said: begun") == 1


async def streams(there, at):
    answer = await there.whole(call_tool("steps", progressToken=1), target=at)
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.body.count(b"notifications/progress") == 3 and answer.body.count(b"data: ") == 4
    async with connection(there.port) as raw:
        raw.write(http(LISTEN, target=at))
        assert (await raw.head())[0] == 200
        assert (await raw.event())["method"] == "notifications/subscriptions/acknowledged"


async def verbs(there, at):
    async with connection(there.port) as raw:
        for verb in ("HEAD", "PUT", "OPTIONS", "TRACE"):
            raw.write(http(b"", verb=verb, target=at))
            status, headers = await raw.head()
            assert (status, headers["allow"]) == (405, "POST")
            if verb != "HEAD":
                await raw.reader.readexactly(int(headers["content-length"]))
        raw.write(http(call_tool("hi"), target=at))
        assert (await raw.response()).status == 200


async def session(there, at):
    named = {"mcp-protocol-version": None, "mcp-method": None, "mcp-name": None}
    opened = await there.whole(OverSession(None).hello, named, target=at)
    named["mcp-session-id"] = opened.headers["mcp-session-id"]
    frame = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "hi"}}
    assert (await there.whole(frame, named, target=at)).json["result"]["content"][0]["text"] == "alive"
    async with connection(there.port) as raw:
        raw.write(http(b"", named, verb="GET", target=at))
        assert (await raw.head())[0] == 200
    async with connection(there.port) as raw:
        raw.write(http(b"", named, verb="DELETE", target=at))
        assert (await raw.head())[0] == 204
    assert (await there.whole(frame, named, target=at)).status == 404


async def going_away(there, at):
    """In the middle of a body, of a call, and of a stream."""
    async with connection(there.port) as raw:
        raw.write(http(call_tool("hi"), target=at)[:-20])
        await raw.writer.drain()
    async with connection(there.port) as raw:
        raw.write(http(call_tool("wait"), target=at))
        await there.heard("waiting")
    await there.heard("cancelled")
    async with connection(there.port) as raw:
        raw.write(http(call_tool("steps", progressToken=1), target=at))
        await raw.head()
        await raw.event()


@pytest.mark.parametrize("target", ["/mcp", "/messages"])
async def test_a_session_of_another_process_is_refused_with_the_way_out(target):
    """Two workers of one server that share nothing."""
    named = {"mcp-protocol-version": None, "mcp-method": None, "mcp-name": None}
    frame = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    async with (
        running(lambda port: words("hypercorn", port)) as one,
        running(lambda port: words("hypercorn", port)) as other,
    ):
        if target == "/mcp":
            opened = await one.whole(OverSession(None).hello, named, target="/mcp")
            where = {"changes": {**named, "mcp-session-id": opened.headers["mcp-session-id"]}, "target": "/mcp"}
            refused = [await there.whole(frame, **where) for there in (one, other, other)]
        else:
            async with connection(one.port) as raw:
                raw.write(http(b"", {"accept": "text/event-stream"}, verb="GET", target="/sse"))
                await raw.head()
                message = (await raw.reader.readuntil(b"\n\n")).partition(b"data: ")[2].decode().strip()
                where = {"changes": named, "target": f"/{message.lstrip('/')}"}
                refused = [await there.whole(frame, **where) for there in (one, other, other)]
        log = await other.stopped()
    assert [answer.status for answer in refused] == [200 if target == "/mcp" else 202, 404, 404]
    assert b"state=" in refused[1].body
    assert log.count("state=") == 1, log


LIMITED = """
from interlock import Rate, RateLimits, Server

server = Server("limited", rate_limits=RateLimits(calls=Rate(0.001, 5)))

@server.tool
async def hi() -> str:
    return "hi"

app = server.asgi(state={state!r})
"""


@pytest.mark.parametrize("kind", ["ours", "uvicorn", "gunicorn"])
async def test_the_rate_of_a_caller_does_not_depend_on_the_number_of_workers(kind, tmp_path):
    file, state = tmp_path / "limited_app.py", str(tmp_path / "state.db")
    file.write_text(LIMITED.format(state=state))
    words_of = {
        "ours": lambda port: [
            *("interlock", "run", str(file), "--http", "--port", str(port), "--workers", "3", "--state", state)
        ],
        "uvicorn": lambda port: [
            *("uvicorn", "limited_app:app", "--app-dir", str(tmp_path), "--port", str(port), "--workers", "3")
        ],
        "gunicorn": lambda port: [
            *("gunicorn", "limited_app:app", "--chdir", str(tmp_path), "-b", f"127.0.0.1:{port}", "-w", "3"),
            *("-k", "uvicorn_worker.UvicornWorker", "--no-control-socket"),
        ],
    }[kind]
    async with running(words_of) as there:
        answers = [(await there.whole(call_tool("hi"), target="/mcp")).json["result"] for _ in range(15)]
        await there.stopped()
    assert [bool(answer.get("isError")) for answer in answers] == [False] * 5 + [True] * 10
    assert "0.001 calls per second and 5 at once" in answers[-1]["content"][0]["text"]


# --- and stops with them ---


def stopped_by(kind, name, port):
    """A server without a bound of its own for open connections, or with one that is longer than a test waits."""
    at, gunicorn = f"127.0.0.1:{port}", ["gunicorn", f"support.anywhere:{name}", "--no-control-socket"]
    uvicorn = ["uvicorn", f"support.anywhere:{name}", "--port", str(port), "--log-level", "warning"]
    return {
        "uvicorn": uvicorn,
        "uvicorn on asyncio": [*uvicorn, "--loop", "asyncio", "--http", "h11"],
        "uvicorn --workers": [*uvicorn, "--workers", "2"],
        "uvicorn --reload": [*uvicorn, "--reload", "--reload-dir", os.path.dirname(__file__)],
        "gunicorn": [*gunicorn, "-k", "uvicorn_worker.UvicornWorker", "-b", at, "--graceful-timeout", "600"],
        "gunicorn asgi": [*gunicorn, "-k", "asgi", "-b", at, "--graceful-timeout", "600"],
        "hypercorn": ["hypercorn", f"support.anywhere:{name}", "-b", at, "--graceful-timeout", "600"],
        "granian": ["granian", "--interface", "asgi", f"support.anywhere:{name}", "--port", str(port)],
    }[kind]


async def opened(stack, there, at, times=1):
    """A call that never ends, the stream of a session, and one of change notices."""
    named = {"mcp-protocol-version": None, "mcp-method": None, "mcp-name": None}
    # with workers, the session belongs to the process of this connection
    raw = await stack.enter_async_context(connection(there.port))
    raw.write(http(OverSession(None).hello, named, target=at))
    named["mcp-session-id"] = (await raw.response()).headers["mcp-session-id"]
    raw.write(http(b"", named, verb="GET", target=at))
    assert (await raw.head())[0] == 200
    listening = await stack.enter_async_context(connection(there.port))
    listening.write(http(LISTEN, target=at))
    assert (await listening.head())[0] == 200
    waiting = await stack.enter_async_context(connection(there.port))
    waiting.write(http(call_tool("wait"), target=at))
    await there.heard("waiting", times)


@pytest.mark.parametrize(
    ("kind", "name", "prefixes"),
    [
        ("uvicorn", "mounted", ("/api/mcp", "/deep/er/")),
        ("uvicorn on asyncio", "starlette", ("/deep/er/mcp",)),
        ("uvicorn --workers", "mounted", ("/api/mcp",)),
        ("uvicorn --reload", "mounted", ("/api/mcp",)),
        ("uvicorn", "plain_drained", ("/mcp",)),
        ("gunicorn", "mounted", ("/api/mcp", "/deep/er/")),
        ("gunicorn", "starlette", ("/deep/er/mcp",)),
        ("gunicorn asgi", "mounted", ("/api/mcp",)),
        ("hypercorn", "mounted", ("/api/mcp", "/deep/er/")),
        ("hypercorn", "starlette", ("/deep/er/mcp",)),
        ("granian", "mounted", ("/api/mcp", "/deep/er/")),
        ("granian", "starlette", ("/deep/er/mcp",)),
    ],
)
async def test_open_streams_do_not_keep_a_server_from_stopping(kind, name, prefixes):
    """The process ends, not this test's patience; calls in flight are cancelled, and lifespans end."""
    async with running(lambda port: stopped_by(kind, name, port)) as there, AsyncExitStack() as stack:
        for times, at in enumerate(prefixes, start=1):
            await opened(stack, there, at, times)
        log = there.log + await there.stopped()
    assert log.count("said: cancelled") == len(prefixes)
    assert log.count("said: begun") == log.count("said: ended") > 0, log
    assert "Traceback" not in log, log


async def test_a_mounted_app_without_its_lifespan_stops_too():
    async with running(lambda port: stopped_by("uvicorn", "framework", port)) as there, AsyncExitStack() as stack:
        raw = await stack.enter_async_context(connection(there.port))
        raw.write(http(LISTEN, target="/api/mcp"))
        assert (await raw.head())[0] == 200
        await there.stopped()
        assert b"subscriptionId" in await raw.reader.read()  # the result of the stream


# --- the lifespan of a mount ---


def living():
    """A server that tells of its app lifespan, and what it told."""
    server, told = Server("s"), []

    @server.app_lifespan
    async def life():
        told.append("begun")
        yield "alive"
        told.append("ended")

    @server.tool
    async def hi(ctx: Context) -> str:
        return str(ctx.app)

    return server.asgi(), told


async def test_the_lifespan_of_a_framework_is_that_of_its_mount():
    mcp, told = living()
    framework = FastAPI(lifespan=mcp.lifespan)
    framework.mount("/api", mcp)
    async with framework.router.lifespan_context(framework):
        assert told == ["begun"]
        assert (await ask(framework, "/api/mcp")).json["result"]["content"][0]["text"] == "alive"
    assert told == ["begun", "ended"]
    async with mcp.lifespan():  # a second time
        assert (await ask(framework, "/api/mcp")).status == 200
    assert told == ["begun", "ended"] * 2


async def test_a_lifespan_that_cannot_begin_keeps_the_framework_from_starting():
    server = Server("s")

    @server.app_lifespan
    async def life():
        raise RuntimeError("no database")
        yield

    mcp = server.asgi()
    with pytest.raises(LocalError, match="no database"):
        async with mcp.lifespan():
            raise AssertionError("it began")
