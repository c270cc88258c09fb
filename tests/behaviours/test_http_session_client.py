"""A client in a session over HTTP (2024-11-05 to 2025-11-25), seen from the server: every request is captured."""

from __future__ import annotations

import asyncio
import json
import logging

import pytest

from interlock import Client
from interlock.protocol.client.probe import Verdicts
from interlock.transport.http.client import event_reader
from interlock.wire.errors import ConnectionLost, HttpStatus, SessionGone
from support.http_handshake import asked, ended, final, handshake, old_server, sse
from support.http_peer import HttpPeer, chunked, http, notice, refusal
from support.http_session_talk import NEWEST, answered, events, of, ok, talking, until
from support.idle import until_idle

SESSIONS = ["2025-03-26", "2025-06-18", NEWEST]
in_every_session = pytest.mark.parametrize("revision", SESSIONS)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Waits that no server asked for are short."""
    monkeypatch.setattr(event_reader, "_FIRST_WAIT", 0.01)
    monkeypatch.setattr(event_reader, "_SHORTEST_WAIT", 0.005)


def questions(*, together=False):
    """A script for tools/call that asks twice, on one stream, and ends it when both answers have come."""
    asks = [asked(name, "ping") for name in ("q1", "q2")]
    replies = []
    both = asyncio.Event()

    def heard(request, stream):
        message = request.message
        replies.extend(message if isinstance(message, list) else [message])
        if len(replies) == 2:
            both.set()
        return http(202)

    async def call(request, stream):
        await stream.write(chunked() + (sse(asks) if together else sse(asks[0]) + sse(asks[1])))
        await asyncio.wait_for(both.wait(), 20)
        await stream.write(answered(request))

    return call, heard


# --- what is sent -------------------------------------------------------------------------------------------


@pytest.mark.requirement(
    *("TRANS-HTTP-07", "TRANS-HTTP-08", "TRANS-HTTP-33", "TRANS-HTTP-54", "TRANS-HTTP-59", "TRANS-HTTP-61")
)
@in_every_session
async def test_a_session_from_the_first_word_to_the_last(revision):
    script = handshake(version=revision, tools_call=ok)
    async with talking(script, revision=revision, headers={"Authorization": "Bearer x"}) as (client, peer):
        assert client.revision == revision
        assert (await client.call_tool("t")).text == "ok"
        await until(lambda: of(peer, "GET"))
    assert sorted(peer.methods) == ["DELETE", "GET", "initialize", "notifications/initialized", "tools/call"]
    assert peer.methods[:2] == ["initialize", "notifications/initialized"]
    assert peer.methods[-1] == "DELETE"
    first, *rest = peer.requests
    assert (first.header("mcp-session-id"), first.header("mcp-protocol-version")) == (None, None)
    for request in rest:
        assert request.header("mcp-session-id") == "s1"
        assert request.header("mcp-protocol-version") == revision
        assert request.header("mcp-method") is None
    for request in peer.requests:
        assert request.path == "/mcp"
        assert request.header("authorization") == "Bearer x"
        wanted = "text/event-stream" if request.verb == "GET" else "application/json, text/event-stream"
        assert request.header("accept") == wanted


@pytest.mark.requirement("TRANS-HTTP-62", "TRANS-HTTP-61")
async def test_the_version_is_the_one_agreed_on():
    script = handshake(version="2025-06-18", tools_call=ok)
    async with talking(script, revision=(NEWEST, "2025-06-18")) as (client, peer):
        await client.call_tool("t")
        assert client.revision == "2025-06-18"
    assert peer.requests[0].params["protocolVersion"] == NEWEST
    assert {request.header("mcp-protocol-version") for request in peer.requests[1:]} == {"2025-06-18"}


@pytest.mark.requirement("TRANS-HTTP-07", "TRANS-HTTP-09")
@pytest.mark.parametrize("revision", SESSIONS[1:])
async def test_every_post_is_exactly_one_message(revision):
    """Requests, a notification, and the answers to two questions that came in one breath."""
    call, heard = questions()
    script = handshake(version=revision, tools_call=call, answer=heard)
    async with talking(script, revision=revision) as (client, peer):
        await client.call_tool("t")
        await client.notify("notifications/x")
    posts = [request for request in peer.requests if request.verb == "POST"]
    assert len(posts) == 6
    for request in posts:
        assert request.header("content-type") == "application/json"
        assert isinstance(json.loads(request.body), dict)
    assert sorted(request.id for request in of(peer, "answer")) == ["q1", "q2"]


@pytest.mark.requirement("TRANS-HTTP-10")
async def test_an_array_holds_answers_alone():
    call, heard = questions(together=True)

    def script(request, stream):
        if request.body[:1] == b"[":
            return heard(request, stream)
        return handshake(version=SESSIONS[0], tools_call=call)(request, stream)

    async with talking(script, revision=SESSIONS[0]) as (client, peer):
        await client.call_tool("t")
        requests = list(peer.requests)
    [array] = [request.message for request in requests if request.body[:1] == b"["]
    assert sorted(each["id"] for each in array) == ["q1", "q2"]
    assert all("result" in each and "method" not in each for each in array)


# --- what comes back ----------------------------------------------------------------------------------------


@pytest.mark.requirement("TRANS-HTTP-15", "TRANS-HTTP-17")
@pytest.mark.parametrize("reply", [ok, events(answered), events(sse(id="e1"), sse(), b"", answered)])
@in_every_session
async def test_an_answer_is_read_from_a_body_and_from_a_stream(revision, reply, caplog):
    """The last one begins as 2025-11-25 has it, with an event that only says its id: nobody takes that for a broken
    message."""
    async with talking(handshake(version=revision, tools_call=reply), revision=revision) as (client, peer):
        assert (await client.call_tool("t")).text == "ok"
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert not [request for request in of(peer, "GET") if request.header("last-event-id")]


@pytest.mark.requirement("TRANS-HTTP-35")
@in_every_session
async def test_a_server_without_a_stream_of_its_own_is_no_error(revision, caplog):
    script = handshake(version=revision, GET=lambda r, s: http(405), tools_call=ok)
    with caplog.at_level(logging.INFO, "interlock"):
        async with talking(script, revision=revision) as (client, peer):
            await until(lambda: of(peer, "GET"))
            assert (await client.call_tool("t")).text == "ok"
            await until_idle()  # it would have asked again by now
    assert len(of(peer, "GET")) == 1
    assert not [record for record in caplog.records if record.name.startswith("interlock")]


# --- going on with a stream ---------------------------------------------------------------------------------


@pytest.mark.requirement("TRANS-HTTP-19", "TRANS-HTTP-46", "TRANS-HTTP-47")
@in_every_session
@pytest.mark.parametrize("breaks", ["let go", "reset"])
async def test_a_call_goes_on_where_its_stream_ended(revision, breaks):
    """An id, and the end of the connection; the rest of what a POST began comes on GETs, and ids are followed."""

    async def call(request, stream):
        await stream.write(chunked() + sse(id="p1", retry=30) + (ended if breaks == "let go" else b""))
        if breaks == "reset":
            stream.reset()

    def listening(request, stream):
        if request.header("last-event-id") is None:
            return http(405)
        [call] = of(peer, "tools/call")
        if request.header("last-event-id") == "p1":
            return chunked() + sse(notice("notifications/progress", progressToken=call.id, progress=1), id="p2") + ended
        return chunked() + sse(final(call), id="p3") + ended

    steps = []
    script = handshake(version=revision, GET=listening, tools_call=call)
    async with talking(script, revision=revision) as (client, peer):
        assert (await client.call_tool("t", on_progress=lambda step, *_: steps.append(step))).text == "ok"
    assert steps == [1]
    resumed = [request for request in peer.requests if request.header("last-event-id")]
    assert [(request.verb, request.header("last-event-id")) for request in resumed] == [("GET", "p1"), ("GET", "p2")]
    assert {request.header("mcp-session-id") for request in resumed} == {"s1"}
    assert len(of(peer, "tools/call")) == 1


@pytest.mark.requirement("TRANS-HTTP-21")
async def test_the_time_to_wait_is_kept_to(monkeypatch):
    slept, sleep = [], asyncio.sleep

    async def noted(seconds, result=None):
        slept.append(seconds)
        return await sleep(min(seconds, 0.01), result)

    def listening(request, stream):
        if request.header("last-event-id") is None:
            return http(405)
        return chunked() + sse(final(of(peer, "tools/call")[0])) + ended

    script = handshake(GET=listening, tools_call=events(sse(id="p1", retry=77_000), ended))
    async with talking(script) as (client, peer):
        monkeypatch.setattr(asyncio, "sleep", noted)
        await client.call_tool("t")
    assert [each for each in slept if each > 1] == [77.0]


# --- giving up, and the end ---------------------------------------------------------------------------------


@pytest.mark.requirement("TRANS-HTTP-30")
@in_every_session
@pytest.mark.parametrize("silent", [b"", chunked(), chunked() + sse(id="p1")])
async def test_giving_up_tells_the_server_and_lets_go_of_the_response(revision, silent):
    async def call(request, stream):
        await stream.write(silent)
        await stream.gone()
        left.set()

    left = asyncio.Event()
    async with talking(handshake(version=revision, tools_call=call), revision=revision) as (client, peer):
        task = asyncio.ensure_future(client.call_tool("t"))
        await until(lambda: of(peer, "tools/call"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: of(peer, "notifications/cancelled"))
        await asyncio.wait_for(left.wait(), 20)
    [told] = of(peer, "notifications/cancelled")
    assert told.params["requestId"] == of(peer, "tools/call")[0].id


@pytest.mark.requirement("TRANS-HTTP-58", "TRANS-HTTP-54")
@in_every_session
@pytest.mark.parametrize("body", [b"", b"gone", b'{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"x"}}'])
async def test_a_forgotten_session_is_begun_anew_and_the_call_said_again(revision, body):
    def call(request, stream):
        return http(404, body) if request.header("mcp-session-id") == "s1" else ok(request, stream)

    names = ["s1", "s2"]

    def hello(request, stream):
        return handshake(version=revision, session=names.pop(0))(request, stream)

    script = handshake(version=revision, initialize=hello, tools_call=call)
    async with talking(script, revision=revision) as (client, peer):
        assert (await client.call_tool("t")).text == "ok"
    _, again = of(peer, "initialize")
    assert (again.header("mcp-session-id"), again.header("mcp-protocol-version")) == (None, None)
    assert [request.header("mcp-session-id") for request in of(peer, "tools/call")] == ["s1", "s2"]
    assert [request.header("mcp-session-id") for request in of(peer, "DELETE")] == ["s2"]


@pytest.mark.requirement("TRANS-HTTP-53")
async def test_the_session_id_is_in_no_log_no_error_and_no_url(caplog):
    secret = "session-5ec12e7"
    replies = [lambda r, s: http(500), lambda r, s: s.reset(), lambda r, s: http(404), lambda r, s: http(404)]
    script = handshake(session=secret, tools_call=lambda r, s: replies.pop(0)(r, s), GET=lambda r, s: http(400))
    told = []
    with caplog.at_level(logging.DEBUG):
        async with talking(script) as (client, peer):
            for error in (HttpStatus, ConnectionLost, SessionGone):
                with pytest.raises(error) as caught:
                    await client.call_tool("t")
                told.append(f"{caught.value} {caught.value!r} {client!r}")
    assert [request for request in peer.requests if request.header("mcp-session-id") == secret]
    assert caplog.records
    assert secret not in caplog.text + "".join(told) + "".join(request.path for request in peer.requests)


# --- the transport before that ------------------------------------------------------------------------------


@pytest.mark.requirement("TRANS-SSE-06", "TRANS-SSE-11")
@pytest.mark.parametrize("status", [400, 403, 404, 405, 406, 415, 422])
async def test_an_old_server_is_found_step_by_step(status):
    server = old_server()

    def script(request, stream):
        return http(status) if (request.verb, request.path) == ("POST", "/mcp") else server(request, stream)

    async with HttpPeer(script) as peer:
        async with Client(peer.url, headers={"Authorization": "Bearer x"}, verdicts=Verdicts()) as client:
            assert client.revision == "2024-11-05"
            assert (await client.call_tool("t")).text == "ok"
            await client.notify("notifications/x")
        first = [(request.verb, request.path) for request in peer.requests[:4]]
    assert first == [("POST", "/mcp"), ("POST", "/mcp"), ("GET", "/mcp"), ("POST", "/messages?session=1")]
    assert [request.method for request in peer.requests[:3]] == ["server/discover", "initialize", "GET"]
    said = ["initialize", "notifications/initialized", "tools/call", "notifications/x"]
    assert [request.method for request in server.posts] == said
    assert {(request.verb, request.path) for request in server.posts} == {("POST", "/messages?session=1")}
    assert {request.header("authorization") for request in peer.requests} == {"Bearer x"}
    assert {request.header("mcp-session-id") for request in peer.requests} == {None}
    [get] = [request for request in peer.requests if request.verb == "GET"]
    assert get.header("accept") == "text/event-stream"


@pytest.mark.requirement("TRANS-SSE-11")
@pytest.mark.parametrize("status", [401, 500, 503])
async def test_what_says_nothing_about_the_transport_is_raised_as_it_is(status):
    def script(request, stream):
        return http(404 if request.method == "server/discover" else status)

    async with HttpPeer(script) as peer:
        client = Client(peer.url, verdicts=Verdicts())
        with pytest.raises(HttpStatus) as told:
            await client.open()
        await client.close()
    assert told.value.status == status
    assert peer.methods == ["server/discover", "initialize"]


async def test_a_version_that_is_refused_is_followed_by_one_of_those_listed():
    """2025-11-25 basic/lifecycle#error-handling, over HTTP with the status 400."""
    inner = handshake(version="2025-03-26")

    def script(request, stream):
        if request.method == "initialize" and json.loads(request.body)["params"]["protocolVersion"] != "2025-03-26":
            return refusal(request, -32602, 400, {"supported": ["2024-11-05", "2025-03-26"], "requested": "x"})
        return inner(request, stream)

    ours = ("2025-03-26", "2025-11-25")
    async with HttpPeer(script) as peer, Client(peer.url, revision=ours, verdicts=Verdicts()) as client:
        assert client.revision == "2025-03-26"
    bodies = [json.loads(request.body) for request in peer.requests if request.method == "initialize"]
    assert [body["params"]["protocolVersion"] for body in bodies] == ["2025-11-25", "2025-03-26"]
