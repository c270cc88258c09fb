"""Access that ends: streams end with the token that opened them, and a principal's sessions when the server says so."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager

import pytest

from interlock import Context, Server
from interlock.transport.http.server.app import HttpApp
from interlock.transport.http.server.sessions import SessionBounds
from interlock.web.asgi.message import HttpRefusal
from interlock.wire.exchange import Principal
from support.asgi import begin, call_tool, message, post
from support.auth_tokens import protection, token
from support.sessions import OverSession, events_of, said
from support.virtual_time import virtual_time

LISTEN = message("subscriptions/listen", "L", notifications={"toolsListChanged": True})
ADA, BOB = Principal("issuer", "ada"), Principal("issuer", "bob")


class House:
    """A server with a tool that speaks and then waits."""

    def __init__(self, **options):
        self.server = server = Server("house", auth=options.pop("auth", None))
        self.go, self.cancelled = asyncio.Event(), []

        @server.tool
        async def wait(ctx: Context, steps: int = 1) -> str:
            try:
                for step in range(steps):
                    await ctx.progress(step)
                await self.go.wait()
            except asyncio.CancelledError:
                self.cancelled.append(ctx.principal.subject)
                raise
            return "waited"

        self.app = HttpApp(server, **options)

    async def close(self):
        self.app.stop()
        await self.app.settle(0)


@asynccontextmanager
async def house(**options):
    made = House(**options)
    try:
        yield made
    finally:
        await made.close()


# --- tokens that expire ---------------------------------------------------------------------------


def protected():
    return house(auth=protection(leeway=0))


def bearer(seconds=300):
    """A token that is valid for so long, far longer than a test takes in real time."""
    return f"Bearer {token(exp=time.time() + seconds)}"


@virtual_time
async def test_a_listen_ends_with_its_token_so_that_its_client_listens_again():
    async with protected() as served:
        stream = post(served.app, LISTEN, {"authorization": bearer()})
        await stream.answer()
        methods = [each.get("method") for each in stream.events]
        assert methods == ["notifications/subscriptions/acknowledged"]  # and no result: its client does not give up
        again = post(served.app, LISTEN, {"authorization": bearer()})
        assert (await again.heard(2)).status == 200
        again.disconnect()
        await again.task


@virtual_time
async def test_the_get_stream_of_a_session_ends_with_its_token_and_the_session_goes_on():
    async with protected() as served, OverSession(served.app, authorization=bearer(9000)) as peer:
        stream = await peer.get(authorization=bearer(300)).answer()
        assert stream.status == 200 and said(stream) == []
        assert (await peer.call("tools/list").answer()).status == 200


@virtual_time
async def test_a_call_in_a_session_streams_to_its_end():
    async with protected() as served, OverSession(served.app, authorization=bearer(9000)) as peer:
        stream = peer.tool("wait", authorization=bearer(300))
        await asyncio.sleep(400)
        served.go.set()
        await stream.answer()
        assert said(stream)[-1]["result"]["content"][0]["text"] == "waited"
        assert served.cancelled == []


@virtual_time
@pytest.mark.parametrize("streams", [True, False])
async def test_a_stateless_call_gets_its_answer(streams):
    """It was allowed when it was made."""
    async with protected() as served:
        call = call_tool("wait", progressToken="p") if streams else call_tool("wait", {"steps": 0})
        talk = post(served.app, call, {"authorization": bearer()})
        await asyncio.sleep(400)
        served.go.set()
        await talk.answer()
        last = talk.events[-1] if streams else talk.json
        assert last["result"]["content"][0]["text"] == "waited"
        assert served.cancelled == []


@virtual_time
async def test_the_connection_of_the_first_transport_ends_with_its_token():
    async with protected() as served:
        lines = [(b"host", b"127.0.0.1"), (b"authorization", bearer().encode())]
        stream = await begin(served.app, [b""], method="GET", path="/sse", headers=lines).answer()
        assert [event.name for event in events_of(stream)] == ["endpoint"]


# --- principals whose sessions are ended ------------------------------------------------------------


def by_name(headers):
    name = headers.get("authorization", "")
    return Principal("issuer", name) if name else HttpRefusal(401)


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18", "2025-11-25"])
async def test_the_sessions_of_a_principal_end_and_no_others(revision):
    async with house(authenticate=by_name) as served:
        ada, bob = (OverSession(served.app, revision, authorization=name) for name in ("ada", "bob"))
        async with ada, bob:
            standing, call = ada.get(), ada.tool("wait")
            other = bob.tool("wait")
            for talk in (standing, call, other):
                await talk.heard(2)
            await served.app.end_sessions(ADA)
            assert (await standing.answer()).status == 200
            assert [each["method"] for each in said(await call.answer())] == ["notifications/progress"]
            assert (await ada.call("tools/list").answer()).status == 404
            served.go.set()
            assert said(await other.answer())[-1]["result"]["content"][0]["text"] == "waited"
            assert served.cancelled == ["ada"]


async def test_a_call_in_a_session_that_has_said_nothing_yet_is_404():
    async with house(authenticate=by_name) as served, OverSession(served.app, authorization="ada") as peer:
        call = peer.tool("wait", steps=0)
        while not served.app._sessions.running:
            await asyncio.sleep(0)
        await served.app.end_sessions(ADA)
        assert (await call.answer()).status == 404


async def test_so_do_the_streams_and_calls_without_a_session():
    async with house(authenticate=by_name) as served:
        listening, call, silent = (
            post(served.app, frame, {"authorization": "ada"})
            for frame in (LISTEN, call_tool("wait", id=2, progressToken="p"), call_tool("wait", {"steps": 0}, id=3))
        )
        other = post(served.app, LISTEN, {"authorization": "bob"})
        for talk in (listening, call, other):
            await talk.heard(2)
        await served.app.end_sessions(ADA)
        assert [each.get("id") for each in (await listening.answer()).events] == [None]
        for told in ((await call.answer()).events[-1], (await silent.answer()).json):
            assert told["error"]["message"] == "Cancelled: the sessions of this caller were ended"
        assert not other.task.done()
        other.disconnect()
        await other.task


async def test_so_does_the_connection_of_the_first_transport():
    async with house(authenticate=by_name) as served:
        lines = [(b"host", b"127.0.0.1"), (b"authorization", b"ada")]
        stream = begin(served.app, [b""], method="GET", path="/sse", headers=lines)
        await stream.heard(2)
        await served.app.end_sessions(BOB)
        assert not stream.task.done()
        await served.app.end_sessions(ADA)
        await stream.answer()


async def test_a_tool_may_end_the_sessions_of_its_own_caller():
    server = Server("s")

    @server.tool
    async def log_out(ctx: Context) -> str:
        await app.end_sessions(ctx.principal)
        return "logged out"

    app = HttpApp(server, authenticate=by_name)
    async with OverSession(app, authorization="ada") as peer:
        told = await post(app, call_tool("log_out"), {"authorization": "ada"}).answer()
        assert told.json["result"]["content"][0]["text"] == "logged out"
        assert (await peer.call("tools/list").answer()).status == 404
    await app.settle(0)


# --- at several workers -----------------------------------------------------------------------------


async def test_all_workers_hear_of_it(tmp_path):
    """What one worker ends is over at the other: streams that are open there, and sessions that nobody serves now."""
    options = {"authenticate": by_name, "state": tmp_path / "state.db"}
    async with house(**options) as here, house(**options) as there:
        ada, idle, bob = (OverSession(there.app, authorization=name) for name in ("ada", "ada", "bob"))
        async with ada, idle, bob:
            listening = post(there.app, LISTEN, {"authorization": "ada"})
            streams = [ada.get(), ada.tool("wait"), listening]
            other = bob.get()
            for talk in (*streams, other):
                await talk.heard(2)
            await here.app.end_sessions(ADA)
            async with asyncio.timeout(30):
                for talk in streams:
                    await talk.answer()
            for peer, app in ((ada, here.app), (ada, there.app), (idle, here.app), (idle, there.app)):
                peer.app = app
                assert (await peer.call("tools/list").answer()).status == 404
            assert there.cancelled == ["ada"] and not other.task.done()
            assert (await bob.call("tools/list").answer()).status == 200
            other.disconnect()
            await other.task


async def test_a_worker_that_missed_the_message_ends_its_part_with_the_next_renewal_of_its_lease(tmp_path):
    options = {"authenticate": by_name, "state": tmp_path / "state.db", "sessions": SessionBounds(lease=2.0)}
    async with (
        house(**options) as here,
        house(**options) as there,
        OverSession(there.app, authorization="ada") as peer,
    ):
        streams = [peer.get(), post(there.app, LISTEN, {"authorization": "ada"})]
        other = post(there.app, LISTEN, {"authorization": "bob"})
        for talk in (*streams, other):
            await talk.heard(2)
        missed = asyncio.Event()

        async def drop(mail):
            missed.set()

        there.app._sharing.hear(principal_end=drop)
        await here.app.end_sessions(ADA)
        async with asyncio.timeout(30):
            await missed.wait()
            for talk in streams:
                await talk.answer()
        again = post(there.app, LISTEN, {"authorization": "ada"})
        await again.heard(2)
        await there.app._sharing.colleagues._look_for_missed()
        assert not again.task.done() and not other.task.done()
        for talk in (again, other):
            talk.disconnect()
            await talk.task
