"""Sessions over HTTP (2025-03-26 … 2025-11-25 basic/transports#streamable-http), and the transport of 2024-11-05."""

from __future__ import annotations

import asyncio
import json
from urllib.parse import urljoin

import pytest

from interlock import Context, Server
from interlock.transport.http.server.app import HttpApp
from interlock.web.asgi.message import HttpRefusal
from interlock.wire.exchange import Principal
from support.asgi import begin, call_tool, post
from support.idle import until_idle
from support.sessions import BOTH, OverSession, events_of, said, send

STREAMABLE = ["2025-03-26", "2025-06-18", "2025-11-25"]
NEWEST_SESSION = STREAMABLE[-1]
HARD = "hé\u2028\x85 😀"

every = pytest.mark.parametrize("revision", STREAMABLE)
newest = pytest.mark.parametrize("revision", [NEWEST_SESSION])


class House:
    """A server whose tools speak, wait, ask and let go; closed behind the test, with nothing left."""

    def __init__(self, **options):
        self.server = server = Server("house")
        self.go, self.ran = asyncio.Event(), asyncio.Event()

        @server.tool
        async def echo(text: str) -> str:
            return text

        @server.tool
        async def steps(ctx: Context) -> str:
            await ctx.progress(1, 2)
            await self.go.wait()
            self.ran.set()
            return "done"

        @server.tool
        async def later(ctx: Context) -> str:
            await ctx.release_stream(250)
            await self.go.wait()
            return "later"

        self.app = HttpApp(server, **options)

    async def __aenter__(self):
        return self

    async def __aexit__(self, *error):
        self.app.stop()
        await self.app.settle(0)
        assert len(self.app._sessions or ()) == 0

    def session(self, revision, **headers):
        return OverSession(self.app, revision, **headers)


def text_of(frame):
    return frame["result"]["content"][0]["text"]


# --- the endpoint ---


@pytest.mark.requirement("TRANS-HTTP-01", "TRANS-HTTP-14", "TRANS-HTTP-34")
@every
async def test_one_path_takes_post_and_get(revision):
    async with House() as house, house.session(revision) as peer:
        whole = await peer.call("tools/list").answer()
        assert whole.headers["content-type"] == "application/json" and whole.json["id"] == 1
        stream = peer.get()
        await stream.heard(2)
        assert (stream.status, stream.headers["content-type"]) == (200, "text/event-stream")


@pytest.mark.requirement("TRANS-HTTP-02", "TRANS-HTTP-03")
@every
@pytest.mark.parametrize("verb", ["POST", "GET", "DELETE"])
async def test_a_foreign_origin_is_403_whatever_it_wants(revision, verb):
    async with House() as house, house.session(revision) as peer:
        frame = peer.hello if verb == "POST" else None
        assert (await peer.send(verb, frame, origin="http://evil.example").answer()).status == 403
        assert (await peer.call("ping").answer()).status == 200


@pytest.mark.requirement("TRANS-HTTP-06")
@every
async def test_everything_is_authenticated_where_that_is_asked_for(revision):
    def check(headers):
        known = headers.get("authorization") == "Bearer good"
        return Principal("test", "ann") if known else HttpRefusal(401, (("www-authenticate", "Bearer"),))

    async with House(authenticate=check) as house, house.session(revision, authorization="Bearer good") as peer:
        for verb in ("POST", "GET", "DELETE"):
            frame = peer.hello if verb == "POST" else None
            assert (await peer.send(verb, frame, authorization="Bearer bad").answer()).status == 401


# --- what is posted ---


@pytest.mark.requirement("TRANS-HTTP-11")
@every
async def test_notifications_and_responses_are_accepted_with_nothing(revision):
    async with House() as house, house.session(revision) as peer:
        for answer in (await peer.tell("notifications/roots/list_changed").answer(), await peer.reply(99).answer()):
            assert (answer.status, answer.body) == (202, b"")


@pytest.mark.requirement("TRANS-HTTP-12", "TRANS-HTTP-13")
@every
@pytest.mark.parametrize(
    "frame",
    [b'{"jsonrpc":"1.0","method":"notifications/x"}', b'{"jsonrpc":"2.0","method":"tools/call"}', b"{", b"[]"],
)
async def test_what_cannot_be_accepted_is_400_with_an_error_without_an_id(revision, frame):
    async with House() as house, house.session(revision) as peer:
        answer = await peer.post(frame).answer()
        assert answer.status == 400 and "id" not in answer.json and answer.error["code"] in (-32600, -32700)


@pytest.mark.requirement("TRANS-HTTP-65")
@every
async def test_bodies_and_events_are_utf_8(revision):
    async with House() as house, house.session(revision) as peer:
        assert text_of((await peer.tool("echo", text=HARD).answer()).json) == HARD
        call = {"name": "echo", "arguments": {"text": HARD}}
        frame = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        (event,) = said(await peer.post(frame, accept="text/event-stream").answer())
        assert text_of(event) == HARD
        assert (await peer.post(b'{"jsonrpc":"2.0","id":1,"method":"\xff"}').answer()).status == 400


# --- streams of requests ---


@pytest.mark.requirement("TRANS-HTTP-22", "TRANS-HTTP-24", "TRANS-HTTP-25", "TRANS-HTTP-27", "TRANS-HTTP-37")
@every
async def test_a_stream_carries_what_belongs_to_its_request_and_ends_with_the_answer(revision):
    async with House() as house, house.session(revision) as peer:
        standing, talk = peer.get(), peer.tool("steps", 7)
        await talk.heard(2)
        await until_idle()
        assert not talk.complete  # not before the answer
        house.server.tool(lambda: "x", name="more")
        house.go.set()
        progress, answer = said(await talk.answer())
        assert (progress["method"], answer["id"]) == ("notifications/progress", 7)
        await standing.heard(3)
        assert [frame["method"] for frame in said(standing)] == ["notifications/tools/list_changed"]


@pytest.mark.requirement("TRANS-HTTP-16", "TRANS-HTTP-18", "TRANS-HTTP-20", "TRANS-HTTP-26")
@newest
async def test_a_stream_begins_with_an_event_to_come_back_to(revision):
    async with House() as house, house.session(revision) as peer:
        talk = await peer.tool("later", 7).answer()
        first, last = events_of(talk)
        assert first.id and first.data == b"" and last.retry == 250 and said(talk) == []
        house.go.set()
        assert [text_of(frame) for frame in said(await peer.get(first.id).answer())] == ["later"]


@pytest.mark.requirement("TRANS-HTTP-29", "TRANS-HTTP-31", "TRANS-HTTP-48")
@every
async def test_a_dropped_connection_cancels_nothing_and_is_resumed(revision):
    async with House() as house, house.session(revision) as peer:
        talk = peer.tool("steps", 7)
        await talk.heard(2)
        talk.disconnect()
        await talk.task
        house.go.set()
        await house.ran.wait()
        (answer,) = said(await peer.get(events_of(talk)[-1].id).answer())
        assert (answer["id"], text_of(answer)) == (7, "done")


@pytest.mark.requirement("TRANS-HTTP-44", "TRANS-HTTP-45", "TRANS-HTTP-49")
@every
async def test_ids_name_their_stream_and_lead_to_no_other(revision):
    async with House() as house, house.session(revision) as peer:
        talks = [peer.tool("steps", id) for id in (7, 8)]
        for talk in talks:
            await talk.heard(2)
            talk.disconnect()
            await talk.task
        house.go.set()
        await house.ran.wait()
        await until_idle()
        ids = [event.id for talk in talks for event in events_of(talk)]
        assert len(set(ids)) == len(ids)
        for talk, id in zip(talks, (7, 8), strict=True):
            assert [frame["id"] for frame in said(await peer.get(events_of(talk)[-1].id).answer())] == [id]


# --- streams of nobody's ---


@pytest.mark.requirement("TRANS-HTTP-36", "TRANS-HTTP-38", "TRANS-HTTP-42")
@every
async def test_what_belongs_to_no_request_is_said_once_and_is_no_response(revision):
    async with House() as house, house.session(revision) as peer:
        streams = [peer.get(), peer.get()]
        for stream in streams:
            await stream.heard(2)
        assert (await peer.call("ping").answer()).json["result"] == {}
        house.server.tool(lambda: "x", name="more")
        await streams[1].heard(3)
        heard = [frame for stream in streams for frame in said(stream)]
        assert [frame["method"] for frame in heard] == ["notifications/tools/list_changed"]
        assert not any("result" in frame or "error" in frame for frame in heard)


# --- sessions ---


@pytest.mark.requirement("TRANS-HTTP-50", "TRANS-HTTP-51", "TRANS-HTTP-52")
@every
async def test_ids_of_sessions_cannot_be_guessed_and_can_be_seen(revision):
    async with House() as house:
        answers = [await send(house.app, "POST", house.session(revision).hello).answer() for _ in range(50)]
        ids = {answer.headers["mcp-session-id"] for answer in answers}
        assert len(ids) == 50
        assert all(len(id) >= 22 and all("!" <= char <= "~" for char in id) for id in ids)


@pytest.mark.requirement("TRANS-HTTP-55")
@every
async def test_a_request_without_its_session_is_400(revision):
    async with House() as house, house.session(revision) as peer:
        frame = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        assert (await peer.post(frame, mcp_session_id=None).answer()).status == 400


@pytest.mark.requirement("TRANS-HTTP-56", "TRANS-HTTP-57", "LIFE-23")
@every
async def test_a_session_that_has_ended_is_404(revision):
    async with House() as house, house.session(revision) as peer:
        open_stream = peer.get()
        await open_stream.heard(2)
        assert (await peer.send("DELETE").answer()).status == 204
        assert (await open_stream.answer()).complete
        assert (await peer.call("tools/list").answer()).status == 404


@pytest.mark.requirement("TRANS-HTTP-63", "TRANS-HTTP-64")
@pytest.mark.parametrize("revision", STREAMABLE[1:])
async def test_what_was_negotiated_holds_and_nothing_else_may_be_said(revision):
    async with House() as house, house.session(revision) as peer:
        frame = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        assert (await peer.post(frame, mcp_protocol_version=None).answer()).status == 200
        for bad in ("bogus", "1999-01-01", ""):
            assert (await peer.post(frame, mcp_protocol_version=bad).answer()).status == 400


@pytest.mark.requirement("COMPAT-001", "COMPAT-002", "COMPAT-003")
@pytest.mark.parametrize("revision", ["2026-07-28"])
async def test_one_endpoint_serves_a_newer_client_and_the_sessions_of_older_ones_at_once(revision):
    for older in STREAMABLE:
        await _served_at_once(revision, older)


async def _served_at_once(revision, older):
    async with House() as house, house.session(older) as peer:
        waiting = peer.tool("steps", 7)
        await waiting.heard(2)
        new = {"mcp-protocol-version": revision}
        found = (await post(house.app, call_tool("echo", {"text": "new"}), new).answer()).json["result"]
        assert (found["resultType"], found["content"][0]["text"]) == ("complete", "new")
        hello = await send(house.app, "POST", house.session(older).hello).answer()
        assert hello.json["result"]["protocolVersion"] == older and hello.headers["mcp-session-id"] != peer.id
        by_the_way = {"mcp_session_id": hello.headers["mcp-session-id"], "mcp_protocol_version": older}
        listed = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        assert "resultType" not in (await send(house.app, "POST", listed, **by_the_way).answer()).json["result"]
        alone = await send(house.app, "POST", listed).answer()
        assert alone.status == 400  # hands were shaken for that session, not for the endpoint
        house.go.set()
        *_, answer = said(await waiting.answer())
        assert text_of(answer) == "done" and "resultType" not in answer["result"]


# --- the transport of 2024-11-05 ---


def old(app, verb, path, frame=None, **more):
    lines = {"host": "127.0.0.1", "accept": BOTH, "content-type": "application/json"} | more
    path, _, query = path.partition("?")
    headers = [(name.encode(), value.encode()) for name, value in lines.items()]
    body = b"" if frame is None else json.dumps(frame).encode()
    return begin(app, [body], method=verb, path=path, query_string=query.encode(), headers=headers)


@pytest.mark.requirement(
    "TRANS-SSE-04", "TRANS-SSE-05", "TRANS-SSE-07", "TRANS-SSE-08", "TRANS-SSE-09", "TRANS-SSE-10", "COMPAT-023"
)
@pytest.mark.requirement("LIFE-23")
async def test_old_clients_find_their_two_endpoints():
    async with House() as house:
        hello = house.session("2024-11-05").hello
        streams = [old(house.app, "GET", "/sse") for _ in range(2)]
        places = []
        for stream in streams:
            await stream.heard(2)
            (told,) = events_of(stream)
            assert told.name == "endpoint"
            places.append(urljoin("/sse", told.data.decode()))
        for number, (stream, place) in enumerate(zip(streams, places, strict=True)):
            assert (await old(house.app, "POST", place, hello | {"id": number}).answer()).status == 202
            await stream.heard(3)
            _, event = events_of(stream)
            assert event.name == "message"
            found = json.loads(event.data)
            assert (found["id"], found["result"]["protocolVersion"]) == (number, "2024-11-05")
        for stream, place in zip(streams, places, strict=True):
            stream.disconnect()
            await stream.task
            assert (await old(house.app, "POST", place, hello).answer()).status == 404


@pytest.mark.requirement("TRANS-SSE-01", "TRANS-SSE-03")
@pytest.mark.parametrize(("verb", "path"), [("GET", "/sse"), ("POST", "/messages?session_id=x")])
async def test_old_endpoints_are_guarded_like_the_new_one(verb, path):
    async with House(authenticate=lambda headers: HttpRefusal(401)) as house:
        assert (await old(house.app, verb, path, {}, origin="http://evil.example").answer()).status == 403
        assert (await old(house.app, verb, path, {}).answer()).status == 401


# --- what other clients get wrong ---


@every
@pytest.mark.parametrize("version", ["", "2099-01-01", "latest", "DRAFT-2026-v1"])
async def test_initialize_is_negotiated_whatever_unknown_version_its_header_names(revision, version):
    async with House() as house:
        hello = house.session(revision).hello
        talk = await send(house.app, "POST", hello, mcp_protocol_version=version).answer()
        assert (talk.status, talk.json["result"]["protocolVersion"]) == (200, revision)
        assert talk.headers["mcp-session-id"]
        other = {**hello, "method": "tools/list", "params": {}}
        assert (await send(house.app, "POST", other, mcp_protocol_version=version).answer()).status == 400


@newest
async def test_a_header_that_names_the_stateless_era_needs_its_envelope(revision):
    async with House() as house:
        hello = house.session(revision).hello
        talk = await send(house.app, "POST", hello, mcp_protocol_version="2026-07-28").answer()
        assert (talk.status, talk.error["code"]) == (400, -32602)


@newest
async def test_an_array_with_initialize_is_told_to_send_it_alone(revision):
    async with House() as house:
        talk = await send(house.app, "POST", [house.session(revision).hello]).answer()
        assert (talk.status, talk.error["code"]) == (400, -32600)
        assert talk.error["message"] == "A POST holds one message, not an array: send initialize by itself"


@every
@pytest.mark.parametrize("method", ["roots/list", "sampling/createMessage", "elicitation/create"])
async def test_a_request_in_the_wrong_direction_says_so(revision, method):
    async with House() as house, house.session(revision) as peer:
        told = (await peer.call(method).answer()).json["error"]
        assert told["code"] == -32601 and "goes from a server to its client" in told["message"]
