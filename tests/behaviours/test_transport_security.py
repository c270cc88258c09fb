"""Who somebody is comes from his credentials, on every request, and from nothing else (security_best_practices)."""

from __future__ import annotations

import inspect
import json
import random
from contextlib import asynccontextmanager
from urllib.parse import urljoin

import pytest

from interlock import Context, Server
from interlock.cli.commands.run import read_options
from interlock.transport.http.server.app import HttpApp
from interlock.web.asgi.message import HttpRefusal
from interlock.wire.exchange import Principal
from support.asgi import begin, call_tool, post
from support.sessions import OverSession, events_of, send

STREAMABLE = ["2025-03-26", "2025-06-18", "2025-11-25"]
every = pytest.mark.parametrize("revision", STREAMABLE)
ADA, BOB = "Bearer ada", "Bearer bob"
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


def by_token(headers):
    token = headers.get("authorization", "").removeprefix("Bearer ")
    return Principal("issuer", token) if token in ("ada", "bob") else HttpRefusal(401)


def lines(token):
    said = {"host": "127.0.0.1", "content-type": "application/json", "authorization": token}
    return [(name.encode(), value.encode()) for name, value in said.items() if value is not None]


@asynccontextmanager
async def house():
    server = Server("house")

    @server.tool
    async def who(ctx: Context) -> str:
        return ctx.principal.subject

    app = HttpApp(server, authenticate=by_token)
    try:
        yield app
    finally:
        app.stop()
        await app.settle(0)


@pytest.mark.requirement("SEC-19", "SEC-20")
@every
async def test_the_id_of_a_session_stands_for_nobody(revision):
    """Whoever has it, and no credentials, is turned away from everything that the session can do."""
    async with house() as app, OverSession(app, revision, authorization=ADA) as peer:
        for verb, frame in (("POST", LIST), ("POST", peer.hello), ("GET", None), ("DELETE", None)):
            for none in (None, "Bearer eve", "Bearer ", f"Bearer {peer.id}"):
                assert (await peer.send(verb, frame, authorization=none).answer()).status == 401
        assert (await peer.post(LIST).answer()).status == 200


@pytest.mark.requirement("SEC-20", "SEC-23")
@every
async def test_a_session_is_its_owners_and_to_others_as_if_it_were_not_there(revision):
    async with house() as app, OverSession(app, revision, authorization=ADA) as peer:
        unknown = await peer.post(LIST, authorization=BOB, mcp_session_id="none").answer()
        for verb, frame in (("POST", LIST), ("GET", None), ("DELETE", None)):
            foreign = await peer.send(verb, frame, authorization=BOB).answer()
            assert foreign.status == unknown.status == 404
        assert (await peer.post(LIST).answer()).status == 200


@pytest.mark.requirement("SEC-19", "SEC-20", "SEC-23")
@pytest.mark.parametrize("revision", ["2024-11-05"])
async def test_the_address_that_an_old_client_was_given_is_no_credential_either(revision):
    async with house() as app:
        stream = begin(app, [b""], method="GET", path="/sse", headers=lines(ADA))
        await stream.heard(2)
        [told] = events_of(stream)
        path, _, query = urljoin("/sse", told.data.decode()).partition("?")
        hello = json.dumps(OverSession(app, revision).hello).encode()
        for token, status in ((None, 401), ("Bearer eve", 401), (BOB, 404), (ADA, 202)):
            where = {"method": "POST", "path": path, "query_string": query.encode(), "headers": lines(token)}
            assert (await begin(app, [hello], **where).answer()).status == status
        await stream.heard(3)
        stream.disconnect()
        await stream.task


@pytest.mark.requirement("SEC-21", "SEC-22")
async def test_ids_of_sessions_come_from_no_generator_that_can_be_set_back():
    async with house() as app:
        ids = []
        for _ in range(20):
            random.seed(7)
            hello = OverSession(app).hello
            ids.append((await send(app, "POST", hello, authorization=ADA).answer()).headers["mcp-session-id"])
    assert len(set(ids)) == 20
    assert min(map(len, ids)) >= 22  # 128 bits, six to a character
    starts = {id[:8] for id in ids}
    assert len(starts) == 20  # and no counter with a tail


@pytest.mark.requirement("SEC-010")
async def test_without_a_session_every_request_says_who_it_is():
    async with house() as app:
        for token, status in ((ADA, 200), (None, 401), (BOB, 200), ("Bearer eve", 401)):
            told = await post(app, call_tool("who"), {"authorization": token}).answer()
            assert told.status == status
            if status == 200:
                assert told.json["result"]["content"][0]["text"] == token.removeprefix("Bearer ")


@pytest.mark.requirement("SEC-28", "SEC-008")
async def test_a_local_server_speaks_stdio_unless_told_and_can_want_a_token_where_it_does_not():
    assert inspect.signature(Server.run).parameters["carrier"].default == "stdio"
    assert read_options([]).endpoint is None
    assert read_options(["--http"]).endpoint.host == "127.0.0.1"
    async with house() as app:
        assert (await post(app, call_tool("who"), {"authorization": None}).answer()).status == 401
