"""transport/http/cluster/legacy_sse.py: a connection of 2024-11-05 at one worker, posted to at another."""

import asyncio
import json
from urllib.parse import urljoin

from interlock import Context, Server
from interlock.transport.http.server import legacy_sse
from interlock.transport.http.server.app import HttpApp, SessionBounds
from interlock.wire.exchange import Principal
from support.asgi import begin
from support.sessions import BOTH, OverSession, events_of


def app_at(path, **options):
    server = Server("s")

    @server.tool
    async def where(ctx: Context) -> str:
        return (await ctx.roots())[0].uri

    # on a machine that is busy a worker may be slow to renew its lease
    return HttpApp(server, state=path, sessions=SessionBounds(lease=20.0), **options)


def ask(app, method, path, frame=None, **changes):
    lines = {"host": "127.0.0.1:8000", "accept": BOTH, "content-type": "application/json", **changes}
    body = b"" if frame is None else json.dumps(frame).encode()
    path, _, query = path.partition("?")
    headers = [(name.replace("_", "-").encode(), value.encode()) for name, value in lines.items()]
    return begin(app, [body], method=method, path=path, query_string=query.encode(), headers=headers)


async def heard(stream, count):
    async with asyncio.timeout(30):
        while len(events_of(stream)) < count + 1:
            await asyncio.sleep(0.005)
    return said_behind(stream)[count - 1]


def said_behind(stream):
    """Without the event that says where to post, which is no JSON."""
    return [json.loads(event.data) for event in events_of(stream)[1:]]


async def close(*apps):
    for app in apps:
        app.stop()
        await app.settle(0)


async def test_what_is_posted_at_one_worker_is_answered_on_the_stream_of_the_other(tmp_path):
    a, b = app_at(tmp_path / "s.db"), app_at(tmp_path / "s.db")
    stream = ask(a, "GET", "/sse")
    await stream.heard(2)
    where = urljoin("/sse", events_of(stream)[0].data.decode())
    hello = OverSession(None, "2024-11-05", can={"roots": {}}).hello
    assert (await ask(b, "POST", where, hello).answer()).status == 202
    assert (await heard(stream, 1))["result"]["protocolVersion"] == "2024-11-05"
    assert (await ask(a, "POST", where, {"jsonrpc": "2.0", "method": "notifications/initialized"}).answer()).status
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "where"}}
    assert (await ask(b, "POST", where, call).answer()).status == 202
    question = await heard(stream, 2)
    answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"roots": [{"uri": "file:///x"}]}}
    assert (await ask(b, "POST", where, answer).answer()).status == 202
    assert (await heard(stream, 3))["result"]["content"][0]["text"] == "file:///x"
    stream.disconnect()
    await stream.task
    async with asyncio.timeout(30):
        while (await ask(b, "POST", where, call).answer()).status != 404:
            await asyncio.sleep(0.005)
    await close(a, b)


async def test_what_was_handed_on_and_cannot_be_served_is_refused_on_the_stream(tmp_path, monkeypatch):
    monkeypatch.setattr(legacy_sse, "_UNREAD_BYTES", -1)
    a, b = app_at(tmp_path / "s.db"), app_at(tmp_path / "s.db")
    stream = ask(a, "GET", "/sse")
    await stream.heard(2)
    where = urljoin("/sse", events_of(stream)[0].data.decode())
    for frame in ([], OverSession(None, "2024-11-05").hello):
        assert (await ask(b, "POST", where, frame).answer()).status == 202
    told = await heard(stream, 1)
    assert (told["id"], told["error"]["code"]) == (0, -32603)
    stream.disconnect()
    await stream.task
    await close(a, b)


async def test_it_is_unknown_to_everybody_else_and_when_its_worker_is_gone(tmp_path):
    def check(headers):
        return Principal("test", headers.get("x-who", "nobody"))

    a, b = (app_at(tmp_path / "s.db", authenticate=check) for _ in range(2))
    stream = ask(a, "GET", "/sse", x_who="ann")
    await stream.heard(2)
    where = urljoin("/sse", events_of(stream)[0].data.decode())
    hello = OverSession(None, "2024-11-05").hello
    for app in (a, b):
        assert (await ask(app, "POST", where, hello, x_who="bob").answer()).status == 404
        assert (await ask(app, "POST", where + "x", hello, x_who="ann").answer()).status == 404
        assert (await ask(app, "POST", "/messages", hello, x_who="ann").answer()).status == 400
    await a._sharing.colleagues.leave()
    assert (await ask(b, "POST", where, hello, x_who="ann").answer()).status == 404
    stream.disconnect()
    await stream.task
    await close(a, b)


async def test_a_store_that_was_closed_is_503(tmp_path):
    app = app_at(tmp_path / "s.db")
    await app._sharing.ready()
    await app._sharing.state.close()
    hello = OverSession(None, "2024-11-05").hello
    assert (await ask(app, "GET", "/sse").answer()).status == 503
    assert (await ask(app, "POST", "/messages?session_id=x", hello).answer()).status == 503
    await close(app)
