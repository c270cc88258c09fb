"""What belongs to one user is to every other one as if it did not exist: the same status, headers and bytes.

With real tokens of one issuer, in both eras, on the streams, and at a second worker that has nothing in common with the
first but a file. A refreshed token is the same user.
"""

from __future__ import annotations

from contextlib import asynccontextmanager

import pytest

from interlock import Context, Server
from support.asgi import begin, call_tool, post
from support.auth_tokens import protection, token
from support.sessions import OverSession, events_of

requirement = pytest.mark.requirement
LATER = 4e9
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
CAN = {"io.modelcontextprotocol/clientCapabilities": {"roots": {}}}
OTHERS = ({"sub": "bob"}, {"client_id": "d"}, {"sub": "bob", "client_id": "d"}, {"sub": "ada "}, {"client_id": None})


def bearer(**claims):
    return f"Bearer {token(**{'exp': LATER, **claims})}"


def app_of(state):
    server = Server("house", auth=protection(scopes=("read",)))

    @server.tool
    async def roots(ctx: Context) -> str:
        return (await ctx.roots())[0].uri

    return server.asgi(state=state)


@asynccontextmanager
async def apps(folder, count):
    """One application, or two workers; the first begins, the last is asked."""
    made = [app_of(folder / "state.db" if count > 1 else None) for _ in range(count)]
    try:
        yield made[0], made[-1]
    finally:
        for app in made:
            app.stop()
            await app.settle(0)
            await app._let_go()


def alike(one, other, *names):
    """All that came back, but for what was different in the question."""

    def seen(talk):
        text = talk.body.decode()
        for name in names:
            text = text.replace(name, "…")
        return talk.status, sorted(talk.headers.items()), text

    return seen(one) == seen(other)


@requirement("SEC-19", "SEC-20", "SEC-23", "SEC-009", "SEC-011")
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("verb", ["POST", "GET", "DELETE"])
async def test_a_session_of_somebody_else_is_one_that_does_not_exist(verb, count, tmp_path):
    async with apps(tmp_path, count) as (first, second), OverSession(first, authorization=bearer()) as peer:
        peer.app, frame = second, PING if verb == "POST" else None
        unknown = await peer.send(verb, frame, mcp_session_id="0" * len(peer.id)).answer()
        assert unknown.status == 404
        for other in OTHERS:
            for last in (None, "0-1", "x"):
                said = {"authorization": bearer(**other), "last_event_id": last}
                foreign = await peer.send(verb, frame, **said).answer()
                absent = await peer.send(verb, frame, mcp_session_id="0" * len(peer.id), **said).answer()
                assert alike(foreign, absent, peer.id, "0" * len(peer.id)) and foreign.status == 404
        assert (await peer.send(verb, frame, authorization=None).answer()).status == 401
        fresh = await peer.post(PING, authorization=bearer(jti="fresh", exp=LATER + 9)).answer()
        assert fresh.status == 200, "a refreshed token goes on, and nobody else has ended the session"


@requirement("SEC-23", "SEC-011")
async def test_a_stream_is_read_again_by_its_user_only():
    app = app_of(None)
    async with OverSession(app, "2025-11-25", can={"roots": {}}, authorization=bearer()) as peer:
        asking = peer.call("tools/call", name="roots", arguments={})
        while not events_of(asking):
            await asking.news.wait()
            asking.news.clear()
        last = events_of(asking)[0].id
        for other in OTHERS:
            talk = await peer.get(last, authorization=bearer(**other)).answer()
            assert talk.status == 404 and b"roots/list" not in talk.body
        asking.disconnect()
        await asking.task
    app.stop()
    await app.settle(0)


@requirement("SEC-009", "SEC-011")
@pytest.mark.parametrize("count", [1, 2])
async def test_a_state_of_somebody_else_is_one_that_was_never_given(count, tmp_path):
    async with apps(tmp_path, count) as (first, second):
        asked = await post(first, call_tool("roots", **CAN), {"authorization": bearer()}).answer()
        state = asked.json["result"]["requestState"]
        key = next(iter(asked.json["result"]["inputRequests"]))

        async def shown(state, **claims):
            frame = call_tool("roots", **CAN)
            answers = {key: {"roots": [{"uri": "file:///a"}]}}
            frame["params"] |= {"requestState": state, "inputResponses": answers}
            return await post(second, frame, {"authorization": bearer(**claims)}).answer()

        made_up = await shown(state[:-8] + "AAAAAAA=", sub="bob")
        for other in OTHERS:
            assert alike(await shown(state, **other), made_up) and made_up.status == 400
        done = await shown(state, jti="fresh")
        assert done.json["result"]["content"][0]["text"] == "file:///a"


@requirement("SEC-23")
@pytest.mark.parametrize("count", [1, 2])
async def test_a_connection_of_the_oldest_transport_is_its_users_only(count, tmp_path):
    def asked(app, verb, where, frame=None, **claims):
        path, _, query = where.partition("?")
        said = {"host": "127.0.0.1", "accept": "text/event-stream", "authorization": bearer(**claims)}
        lines = {**said, "content-type": "application/json"} if verb == "POST" else said
        raw = [(name.encode(), value.encode()) for name, value in lines.items()]
        body = [b'{"jsonrpc":"2.0","id":1,"method":"ping"}'] if verb == "POST" else [b""]
        return begin(app, body, method=verb, path=path, query_string=query.encode(), headers=raw)

    async with apps(tmp_path, count) as (first, second):
        stream = asked(first, "GET", "/sse")
        await stream.heard(2)
        where = events_of(stream)[0].data.decode()
        id = where.rpartition("=")[2]
        for other in OTHERS:
            foreign = await asked(second, "POST", where, **other).answer()
            unknown = await asked(second, "POST", where.replace(id, "0" * len(id)), **other).answer()
            assert alike(foreign, unknown, id, "0" * len(id)) and foreign.status == 404
        assert (await asked(second, "POST", where, jti="fresh").answer()).status == 202
        stream.disconnect()
        await stream.task
