"""server/lifespans.py: when each of the three begins and ends, and what their failures do."""

import asyncio
from contextlib import asynccontextmanager

import msgspec
import pytest

from interlock.client.client import Client
from interlock.server.context import Context
from interlock.server.lifespans import Lifespans
from interlock.server.server import Server
from interlock.wire.errors import InternalError, InvalidParams, LocalError, Refused, ToolError
from interlock.wire.messages import encode
from interlock.wire.methods import AUTHOR_METHOD, METHODS
from support.doubles import Spoken, turns
from support.sessions import OverSession


def spoken(method, outlet=None, **params):
    raw = msgspec.Raw(encode(params))
    return Spoken(method, METHODS.get(method, AUTHOR_METHOD).decoder.decode(raw), raw=raw, outlet=outlet)


async def ask(server, method, outlet=None, **params):
    return msgspec.json.decode(encode(await server(spoken(method, outlet, **params))))


def recorded(name, log):
    """A lifespan that records its beginning, what it sees of the work inside, and its end."""

    async def live():
        log.append(f"+{name}")
        try:
            yield f"{name} value"
        except BaseException as error:
            log.append(f"!{name} {error}")
            raise
        finally:
            log.append(f"-{name}")

    return live


def lived(*names):
    """A server with these lifespans, and their record."""
    server, log = Server("s"), []
    for name in names:
        getattr(server, f"{name}_lifespan")(recorded(name, log))

    @server.tool
    async def values(ctx: Context) -> str:
        found = []
        for name in ("app", "connection", "request"):
            try:
                found.append(str(getattr(ctx, name)))
            except LocalError:
                found.append("none")
        return ", ".join(found)

    @server.tool
    async def fails() -> str:
        raise ToolError("on purpose")

    return server, log


async def text(server, **options):
    return (await ask(server, "tools/call", name="values", **options))["content"][0]["text"]


# --- values ---


async def test_each_yields_what_its_attribute_gives():
    server, _ = lived("app", "connection", "request")
    carrier = object()
    server.lives.enter(carrier)
    assert await text(server, outlet=carrier) == "app value, connection value, request value"
    server.lives.leave(carrier)
    await server.lives.settle()


@pytest.mark.parametrize("name", ["app", "connection", "request"])
async def test_each_alone(name):
    server, log = lived(name)
    carrier = object()
    server.lives.enter(carrier)
    places = [f"{name} value" if each == name else "none" for each in ("app", "connection", "request")]
    assert await text(server, outlet=carrier) == ", ".join(places)
    server.lives.leave(carrier)
    await server.lives.settle()
    assert log == [f"+{name}", f"-{name}"]


async def test_they_begin_in_their_order_and_end_the_other_way_round():
    server, log = lived("request", "connection", "app")
    carrier = object()
    server.lives.enter(carrier)
    await text(server, outlet=carrier)
    await text(server, outlet=carrier)
    server.lives.leave(carrier)
    await server.lives.settle()
    assert log == ["+app", "+connection", "+request", "-request", "+request", "-request", "-connection", "-app"]


@pytest.mark.parametrize("filter_first", [True, False])
async def test_filters_and_lifespans_go_together_in_any_order(filter_first):
    server, log = Server("s"), []
    server.add_tool(lambda: None, name="x")
    steps = [
        lambda: server.use(lambda handler: lambda exchange: log.append("filter") or handler(exchange)),
        lambda: server.request_lifespan(recorded("request", log)),
    ]
    for step in steps if filter_first else reversed(steps):
        step()
    await ask(server, "tools/call", name="x")
    assert log == ["filter", "+request", "-request"]


async def test_a_context_manager_does_as_well_as_a_generator():
    server = Server("s")

    @server.app_lifespan
    @asynccontextmanager
    async def app():
        yield 7

    @server.tool
    async def value(ctx: Context) -> str:
        return str(ctx.app)

    async with Client(server) as client:
        assert (await client.call_tool("value")).text == "7"


# --- app ---


async def test_an_app_lives_as_long_as_anybody_serves_it():
    server, log = lived("app")
    async with Client(server) as one:
        await one.call_tool("values")
        async with Client(server) as two:
            await two.call_tool("values")
        assert log == ["+app"]
        await one.call_tool("values")
    assert log == ["+app", "-app"]
    async with Client(server) as again:
        await again.call_tool("values")
    assert log == ["+app", "-app", "+app", "-app"]


async def test_clients_that_come_together_share_the_beginning():
    server, entered, go = Server("s"), [], asyncio.Event()

    @server.app_lifespan
    async def app():
        entered.append(1)
        await go.wait()
        yield

    server.add_tool(lambda: "x", name="x")

    async def use():
        async with Client(server) as client:
            return (await client.call_tool("x")).text

    using = [asyncio.ensure_future(use()) for _ in range(5)]
    await turns(20)
    go.set()
    assert await asyncio.gather(*using) == ["x"] * 5
    assert entered == [1]


async def test_an_app_that_cannot_begin_refuses_everything_and_is_logged_once(caplog):
    server, attempts = Server("s"), []

    @server.app_lifespan
    async def app():
        attempts.append(1)
        raise OSError("no database at secret-host")
        yield

    server.add_tool(lambda: "x", name="x")
    carrier = object()
    server.lives.enter(carrier)
    for method in ("server/discover", "tools/list", "tools/call"):
        with pytest.raises(InternalError, match="could not start") as caught:
            await ask(server, method, **({"name": "x"} if method == "tools/call" else {}))
        assert "secret" not in str(caught.value)
    assert attempts == [1] and caplog.text.count("all requests are refused") == 1
    with pytest.raises(LocalError, match="app lifespan failed: OSError: no database"):
        await server.lives.start()
    server.lives.leave(carrier)
    await server.lives.settle()
    with pytest.raises(LocalError):
        await server.lives.start()  # whoever serves it again may try again
    assert attempts == [1, 1]


async def test_runs_end_before_what_they_use():
    server, log, running = Server("s"), [], asyncio.Event()

    @server.app_lifespan
    async def app():
        yield
        log.append("app over")

    @server.tool
    async def slow() -> None:
        running.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            log.append("run over")

    async with Client(server) as client:
        call = asyncio.ensure_future(client.call_tool("slow"))
        await running.wait()
    with pytest.raises(Exception, match="closed"):
        await call
    assert log == ["run over", "app over"]


# --- connection ---


async def test_a_connection_has_one_and_http_one_for_each_request():
    server, log = lived("connection")
    one, two = object(), object()
    server.lives.enter(one)
    server.lives.enter(two)
    for outlet in (one, two, one):
        await text(server, outlet=outlet)
    assert log == ["+connection", "+connection"]
    server.lives.leave(one)
    await server.lives.settle()
    assert log == ["+connection", "+connection", "-connection"]
    log.clear()
    await text(server, outlet=object())
    await text(server)
    assert log == ["+connection", "-connection"] * 2
    server.lives.leave(two)
    await server.lives.settle()


async def test_a_session_over_http_has_one_for_all_its_requests():
    server, log = lived("connection")
    app = server.asgi()
    async with OverSession(app) as peer:
        for _ in range(2):
            answer = await peer.tool("values").answer()
            assert answer.json["result"]["content"][0]["text"] == "none, connection value, none"
        assert log == ["+connection"]
    await server.lives.settle()
    assert log == ["+connection", "-connection"]
    app.stop()
    await app.settle(1)


async def test_a_connection_that_only_lists_needs_none():
    server, log = lived("connection", "request")
    async with Client(server) as client:
        await client.list_tools()
    assert log == []


async def test_a_connection_that_cannot_be_set_up_is_refused_with_a_reference(caplog):
    server = Server("s")

    @server.connection_lifespan
    async def connection():
        raise OSError("secret-host")
        yield

    server.add_tool(lambda: "x", name="x")
    async with Client(server) as client:
        assert await client.list_tools()
        with pytest.raises(Refused, match="could not be set up") as caught:
            await client.call_tool("x")
    assert "secret" not in str(caught.value) and "secret-host" in caplog.text


async def test_the_context_tells_whose_connection_it_is():
    server, seen = Server("s"), []

    @server.app_lifespan
    async def app():
        yield "the app"

    @server.connection_lifespan
    async def connection(ctx: Context):
        seen.append((ctx.app, ctx.client.name, ctx.principal.subject))
        yield

    server.add_tool(lambda: "x", name="x")
    async with Client(server, name="me") as client:
        await client.call_tool("x")
    assert seen == [("the app", "me", "local")]


# --- request ---


async def test_a_request_lifespan_sees_failures_and_the_answer_stays():
    server, log = lived("request")
    found = await ask(server, "tools/call", name="fails")
    assert found["isError"] and found["content"][0]["text"] == "on purpose"
    assert log == ["+request", "!request on purpose", "-request"]
    log.clear()
    with pytest.raises(InvalidParams):
        await ask(server, "tools/call", name="nope")
    assert log == ["+request", "!request Unknown tool: 'nope'", "-request"]


async def test_an_end_that_fails_fails_the_request():
    server = Server("s")

    @server.request_lifespan
    async def transaction():
        yield
        raise OSError("could not commit")

    server.add_tool(lambda: "x", name="x")
    with pytest.raises(OSError, match="commit"):
        await ask(server, "tools/call", name="x")


async def test_one_that_swallows_what_failed_gives_no_answer_instead_of_a_wrong_one():
    server = Server("s")

    @server.request_lifespan
    async def swallows():
        try:
            yield
        except Refused:
            pass

    server.add_tool(lambda: "x", name="x")
    with pytest.raises(InternalError, match="kept what failed"):
        await ask(server, "tools/call", name="nope")
    assert "x" in str(await ask(server, "tools/call", name="x"))


# --- mounted ---


async def test_a_mounted_server_keeps_its_own():
    inner, log = lived("app", "connection", "request")
    outer, outer_log = lived("app")
    outer.mount("in", inner)
    async with Client(outer) as client:
        assert (await client.call_tool("in_values")).text == "app value, connection value, request value"
        assert (await client.call_tool("values")).text == "app value, none, none"
        assert log == ["+app", "+connection", "+request", "-request"] and outer_log == ["+app"]
    assert log[-2:] == ["-connection", "-app"] and outer_log == ["+app", "-app"]


async def test_one_that_is_mounted_late_lives_with_the_connections_there_are():
    inner, log = lived("app", "connection")
    outer = Server("outer")
    outer.add_tool(lambda: None, name="x")
    async with Client(outer) as client:
        await client.list_tools()
        outer.mount("in", inner)
        await client.call_tool("in_values")
        await client.call_tool("in_values")
    assert log == ["+app", "+connection", "-connection", "-app"]


async def test_what_is_mounted_starts_and_fails_with_the_rest():
    inner, outer = Server("inner"), Server("outer")

    @inner.app_lifespan
    async def app():
        raise OSError("no")
        yield

    outer.mount("in", inner)
    with pytest.raises(LocalError, match="app lifespan failed"):
        await outer.lives.start()


# --- declaring ---


def test_there_is_one_of_each():
    server, _ = lived("app")
    with pytest.raises(LocalError, match="one app lifespan"):

        @server.app_lifespan
        async def another():
            yield


def test_what_is_no_lifespan_is_refused():
    def plain():
        yield

    async def returns(): ...

    async def takes(a: int):
        yield

    async def asks(ctx: Context):
        yield

    for name, wrong in (("app", plain), ("app", returns), ("app", asks), ("app", takes), ("request", takes)):
        with pytest.raises(LocalError, match="lifespan"):
            Lifespans().declare(name, wrong)


def test_an_app_whose_loop_was_closed_under_it_begins_anew():
    """As in a test suite that has one server and a loop for each test."""
    server, log = lived("app")
    for count in (1, 2):
        loop = asyncio.new_event_loop()
        result = loop.run_until_complete(ask(server, "tools/call", name="values"))
        assert "app value" in result["content"][0]["text"]
        for task in asyncio.all_tasks(loop):
            task.cancel()
            loop.run_until_complete(asyncio.wait([task]))
        loop.close()
        assert log.count("+app") == count
