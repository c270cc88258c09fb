"""What belongs to one user is to every other one as if it did not exist: the same status, headers and bytes.

With real tokens of one issuer, in both eras, on the streams, and at a second worker that has nothing in common with the
first but a file. A refreshed token is the same user.
"""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from urllib.parse import urljoin

import pytest

from interlock import Context, Server
from support.asgi import begin, call_tool, post
from support.auth_tokens import protection, stranger, token
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

    @server.tool
    async def confirm(ctx: Context, user: str = "", page: bool = False) -> str:
        """Asks, and says whose answer it was: by the token, whatever else is said."""
        if page:
            await ctx.elicit_url("Sign in", "https://example.com/in", key="page")
            return f"{ctx.principal.subject} of {ctx.principal.client}"
        name = await ctx.elicit("Who are you?", str, key="who")
        return f"{ctx.principal.subject} of {ctx.principal.client}, called {name}"

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
            await app._lifecycle.leave()


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


async def question_in(asking):
    """The first message of a stream."""
    while not (found := [json.loads(event.data) for event in events_of(asking) if event.data]):
        await asking.news.wait()
        asking.news.clear()
    return found[0]


@requirement("ELIC-37", "ELIC-39", "ELIC-44")
@pytest.mark.parametrize("page", [False, True])
@pytest.mark.parametrize("count", [1, 2])
async def test_a_question_is_answered_by_the_user_and_client_it_was_put_to(count, page, tmp_path):
    """Whoever knows the session and the id of the question, but has another token, answers nothing."""
    can = {"elicitation": {"form": {}, "url": {}}}
    async with apps(tmp_path, count) as (first, second), OverSession(first, can=can, authorization=bearer()) as peer:
        asking = peer.call("tools/call", name="confirm", arguments={"page": page})
        question = await question_in(asking)
        assert question["method"] == "elicitation/create"
        fields = question["params"].get("requestedSchema", {}).get("properties", {})
        said = {"action": "accept", **({} if page else {"content": dict.fromkeys(fields, "Ada")})}
        peer.app, frame = second, {"jsonrpc": "2.0", "id": question["id"], "result": said}
        for other in OTHERS:
            assert (await peer.post(frame, authorization=bearer(**other)).answer()).status == 404
        assert (await peer.post(frame, authorization=None).answer()).status == 401
        assert not asking.complete, "it still waits for the user it asked"
        assert (await peer.post(frame, authorization=bearer(jti="fresh")).answer()).status == 202
        await asking.answer()
        told = json.loads(events_of(asking)[-1].data)["result"]["content"][0]["text"]
        assert told.startswith("ada of c"), "the user is the one in the token"


@requirement("ELIC-39", "ELIC-61")
async def test_what_a_client_says_of_its_user_changes_nothing_about_who_it_is(tmp_path):
    """In its introduction, in `_meta`, in arguments, in headers and in the answer itself."""
    claims = {"user": "bob", "sub": "bob", "com.example/user": "bob"}
    can = {"elicitation": {"form": {}}, "experimental": {"user": claims}}
    said = {"authorization": bearer(), "x_user": "bob", "x_forwarded_user": "bob", "remote_user": "bob"}
    async with apps(tmp_path, 1) as (app, _), OverSession(app, can=can, **said) as peer:
        asking = peer.call("tools/call", name="confirm", arguments={"user": "bob"}, _meta=claims)
        question = await question_in(asking)
        content = dict.fromkeys(question["params"]["requestedSchema"]["properties"], "bob")
        answer = {"action": "accept", "content": content, "_meta": claims, "user": "bob"}
        assert (await peer.reply(question["id"], **answer).answer()).status == 202
        await asking.answer()
        told = json.loads(events_of(asking)[-1].data)["result"]["content"][0]["text"]
        assert told == "ada of c, called bob"
        head, _, signature = bearer().split(".")
        changed = ".".join((head, bearer(sub="bob").split(".")[1], signature))
        for unverified in (changed, f"Bearer {token(key=stranger, exp=LATER)}", "Bearer ada"):
            assert (await peer.post(PING, authorization=unverified).answer()).status == 401


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
        where = urljoin("/sse", events_of(stream)[0].data.decode())
        id = where.rpartition("=")[2]
        for other in OTHERS:
            foreign = await asked(second, "POST", where, **other).answer()
            unknown = await asked(second, "POST", where.replace(id, "0" * len(id)), **other).answer()
            assert alike(foreign, unknown, id, "0" * len(id)) and foreign.status == 404
        assert (await asked(second, "POST", where, jti="fresh").answer()).status == 202
        stream.disconnect()
        await stream.task
