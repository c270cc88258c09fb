"""transport/http/client/link.py: one POST per call against a real socket that is scripted byte by byte."""

import asyncio
import gc
import json
import socket
import ssl
import warnings

import pytest

from interlock.protocol.client.base import ClientEdge
from interlock.revisions.table import REVISIONS
from interlock.transport.http.client import link as http_client
from interlock.transport.http.client import post
from interlock.transport.http.client.link import HttpLink
from interlock.web.outbound import client
from interlock.web.outbound.endpoint import endpoint_of
from interlock.wire.channel import Patience
from interlock.wire.errors import (
    BadResult,
    CallTimeout,
    ConnectionClosed,
    ConnectionLost,
    HttpStatus,
    LocalError,
    MessageTooLarge,
    MethodNotFound,
    NotOpen,
    RemoteError,
)
from interlock.wire.limits import MIB, Limits
from interlock.wire.messages import encode, read_frame
from interlock.wire.meta import PROTOCOL_VERSION, SUBSCRIPTION_ID
from support.certificates import self_signed
from support.http_peer import HttpPeer, answer, chunk, chunked, event, events, http, notice, refusal, result
from support.idle import until_idle

PATIENT = Patience(idle=None, total=20)
META = {PROTOCOL_VERSION: "2026-07-28"}


class linked:
    """A link to a scripted peer, closed at the end."""

    def __init__(self, script, headers=None, read=True, **options):
        self.peer = HttpPeer(script, read=read)
        self.headers, self.options = headers, options

    async def __aenter__(self):
        await self.peer.start()
        self.link = HttpLink(endpoint_of(self.peer.url, self.headers), **self.options)
        return self.link, self.peer

    async def __aexit__(self, *_):
        await self.link.close()
        await self.peer.stop()
        if self.peer.failures:
            raise self.peer.failures[0]


async def call(link, method="tools/call", params=None, patience=PATIENT, **options):
    frame = await link.call(method, {"name": "t"} if params is None else params, META, patience=patience, **options)
    return json.loads(bytes(frame.result))


def bodies(script_body):
    """A script that answers every request with the bytes `script_body(request)` gives."""
    return lambda request, stream: script_body(request)


def final(request, **found):
    return {"jsonrpc": "2.0", "id": request.id, "result": found}


# --- what is sent ---


async def test_a_call_is_one_post_with_its_headers():
    async with linked(bodies(lambda r: result(r, {"n": 1})), {"Authorization": "Bearer x"}) as (link, peer):
        assert await call(link) == {"resultType": "complete", "n": 1}
    [request] = peer.requests
    assert (request.verb, request.path) == ("POST", "/mcp")
    assert request.header("content-type") == "application/json"
    assert request.header("accept") == "application/json, text/event-stream"
    assert request.header("mcp-protocol-version") == "2026-07-28"
    assert request.header("mcp-method") == "tools/call"
    assert request.header("mcp-name") == "t"
    assert request.header("authorization") == "Bearer x"
    assert request.header("cookie") is None
    assert request.params["_meta"]["progressToken"] == request.id


@pytest.mark.parametrize(
    ("path", "sent"), [("", "/"), ("/a%2fb/%C3%A9?x=%20y&z=a+b", "/a%2fb/%C3%A9?x=%20y&z=a+b"), ("?q", "/?q")]
)
async def test_the_url_is_used_as_it_was_given(path, sent):
    async with HttpPeer(bodies(lambda r: result(r, {}))) as peer:
        link = HttpLink(endpoint_of(peer.url.removesuffix("/mcp") + path))
        await call(link)
        await link.close()
    assert peer.requests[0].path == sent


async def test_ids_are_unique_and_calls_run_side_by_side():
    async with linked(bodies(lambda r: result(r, {"id": r.id}))) as (link, _peer):
        found = await asyncio.gather(*(call(link) for _ in range(20)))
    assert len({each["id"] for each in found}) == 20


async def test_a_socket_is_used_again_after_an_answer_of_either_form():
    forms = [lambda r: result(r, {}), lambda r: events(r), lambda r: refusal(r, -32602), lambda r: result(r, {})]
    async with linked(bodies(lambda r: forms.pop(0)(r))) as (link, peer):
        await call(link)
        await call(link)
        await until_idle()
        await link.call("tools/call", {}, META, patience=PATIENT)
        await call(link)
    assert peer.connections == 1


async def test_a_stream_that_ends_soon_after_its_answer_frees_its_socket():
    async def script(request, stream):
        await stream.write(chunked() + chunk(event(final(request))))
        await answered.wait()
        await stream.write(b"0\r\n\r\n")

    answered = asyncio.Event()
    async with linked(script) as (link, peer):
        for _ in range(2):
            await call(link)
            answered.set()
            while link._readers:
                await asyncio.sleep(0.005)
            answered.clear()
    assert peer.connections == 1


async def test_a_stream_that_does_not_end_after_its_answer_holds_nobody_up(monkeypatch):
    async def script(request, stream):
        await stream.write(chunked() + chunk(event(final(request))))
        await stream.gone()
        stream.close()

    async with linked(script) as (link, _peer):
        monkeypatch.setattr(client, "_LINGER", 0.01)
        await call(link)
        while link._readers:
            await asyncio.sleep(0.005)
        monkeypatch.setattr(client, "_LINGER", 10_000.0)
        await call(link)
        await link.close()
        assert not link._readers


async def test_the_environment_names_no_proxy(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    async with linked(bodies(lambda r: result(r, {}))) as (link, _peer):
        await call(link)


async def test_no_cookie_is_kept():
    def script(request, stream):
        return answer(request, {"result": {}}).replace(b"\r\n", b"\r\nSet-Cookie: a=b; Path=/\r\n", 1)

    async with HttpPeer(script) as peer:
        link = HttpLink(endpoint_of(peer.url.replace("127.0.0.1", "localhost")))  # addresses have no cookies anyway
        await call(link)
        await call(link)
        await link.close()
    assert [request.header("cookie") for request in peer.requests] == [None, None]


async def test_a_message_over_the_limit_is_not_sent():
    async with linked(bodies(lambda r: b""), limits=Limits(message_bytes=500)) as (link, peer):
        with pytest.raises(MessageTooLarge):
            await call(link, params={"name": "x" * 600})
    assert peer.requests == []


async def test_calls_are_bounded():
    async def hang(request, stream):
        await stream.gone()

    async with linked(hang, limits=Limits(waiting=1)) as (link, _peer):
        first = asyncio.ensure_future(call(link))
        await asyncio.sleep(0)
        with pytest.raises(LocalError, match="waiting already"):
            await call(link)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first


# --- JSON ---


async def test_an_error_of_the_server_is_a_frame_with_any_status():
    async with linked(bodies(lambda r: refusal(r, -32601, 404))) as (link, _peer):
        frame = await link.call("x/y", {}, META, patience=PATIENT)
    assert json.loads(bytes(frame.error))["code"] == -32601


@pytest.mark.parametrize("cut", [1, 3, 50])
async def test_a_json_answer_may_come_in_pieces(cut):
    async def script(request, stream):
        await stream.write(result(request, {"text": "né"}), cut=cut)

    async with linked(script) as (link, _peer):
        assert (await call(link))["text"] == "né"


async def test_a_chunked_json_answer_is_read():
    def script(request, stream):
        body = json.dumps(final(request, n=7)).encode()
        return chunked("application/json; charset=utf-8") + chunk(body[:5]) + chunk(body[5:]) + b"0\r\n\r\n"

    async with linked(script) as (link, _peer):
        assert await call(link) == {"n": 7}


async def test_an_answer_to_another_call_is_refused():
    async with linked(bodies(lambda r: http(200, b'{"jsonrpc":"2.0","id":99,"result":{}}'))) as (link, _peer):
        with pytest.raises(BadResult, match="another request"):
            await call(link)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b'{"jsonrpc":"1.0"}', b"\xff"])
async def test_a_body_that_is_no_message_is_refused(body):
    async with linked(bodies(lambda r: http(200, body, "Content-Type: application/json", kind=None))) as (link, _peer):
        with pytest.raises(BadResult):
            await call(link)


async def test_an_answer_over_the_limit_is_refused_with_and_without_a_length():
    def huge(request, stream):
        if len(peer.requests) == 1:
            return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9999999\r\n\r\n{"
        return chunked("application/json") + chunk(b" " * 5000)

    async with linked(huge, limits=Limits(message_bytes=1000)) as (link, peer):
        for _ in range(2):
            with pytest.raises(BadResult, match="larger than 1000 bytes"):
                await call(link)


async def test_a_packed_answer_is_refused():
    async with linked(bodies(lambda r: http(200, b"....", "Content-Encoding: gzip"))) as (link, _peer):
        with pytest.raises(BadResult, match="packed"):
            await call(link)


# --- streams ---


@pytest.mark.parametrize("cut", [1, 7, 64, None])
async def test_a_stream_is_told_in_order_however_it_is_cut(cut):
    heard = []

    async def told(method, frame):
        await asyncio.sleep(0)
        heard.append((method, asyncio.current_task()))

    async def script(request, stream):
        said = [
            notice("notifications/progress", progressToken=request.id, progress=1),
            notice("notifications/message", level="info", data="né"),
            notice("notifications/progress", progressToken=request.id, progress=2),
        ]
        body = b"\xef\xbb\xbf:\r\n\r\nid: 7\r\nretry: 10\r\ndata:\r\n\r\nevent: other\ndata: {}\n\n"
        body += b"".join(event(each) for each in said) + event(final(request, n=1))
        await stream.write(chunked() + chunk(body) + b"0\r\n\r\n", cut=cut)

    async with linked(script) as (link, _peer):
        assert await call(link, told=told) == {"n": 1}
    names = [method.partition("/")[2] for method, _ in heard]
    assert names == ["progress", "message", "progress"]
    assert {task for _, task in heard} == {asyncio.current_task()}


@pytest.mark.parametrize("listens", [False, True])
async def test_what_comes_with_an_answer_is_heard_once(listens):
    news, heard = [], []

    def script(request, stream):
        return events(
            request,
            notice("notifications/message", level="info", data=1),
            notice("notifications/tools/list_changed", _meta={SUBSCRIPTION_ID: request.id}),
            notice("notifications/tools/list_changed", _meta={SUBSCRIPTION_ID: 99}),
            notice("notifications/progress", progressToken=request.id, progress=1),
        )

    async with linked(script, on_notice=lambda method, params: news.append((method, params))) as (link, _peer):
        await call(link, told=(lambda method, frame: heard.append(method)) if listens else None)
    mine = ["notifications/message", "notifications/tools/list_changed", "notifications/progress"]
    assert heard == (mine if listens else [])
    assert news == ([] if listens else [("notifications/message", {"level": "info", "data": 1})])


async def test_progress_of_another_token_is_ignored():
    heard = []

    def script(request, stream):
        return events(
            request,
            *(notice("notifications/progress", progressToken=token, progress=1) for token in (99, str(request.id))),
        )

    async with linked(script) as (link, _peer):
        await call(link, told=lambda method, frame: heard.append(method))
    assert heard == []


async def test_a_listener_that_fails_does_not_fail_the_call():
    def told(method, frame):
        raise ValueError("mine")

    async with linked(bodies(lambda r: events(r, notice("notifications/message")))) as (link, _peer):
        assert await call(link, told=told) == {"resultType": "complete"}


async def test_a_request_of_the_server_is_a_broken_rule():
    def script(request, stream):
        return chunked() + chunk(event({"jsonrpc": "2.0", "id": 1, "method": "roots/list"}))

    async with linked(script) as (link, _peer):
        with pytest.raises(RemoteError, match="sent a request"):
            await call(link)


@pytest.mark.parametrize("data", [b"data: {\n\n", b"data: [1]\n\n", b'data: {"jsonrpc":"2.0","id":77,"result":{}}\n\n'])
async def test_a_broken_event_fails_the_call_at_once(data):
    async with linked(bodies(lambda r: chunked() + chunk(data))) as (link, _peer):
        with pytest.raises(BadResult):
            await call(link)


async def test_an_error_without_an_id_answers_the_stream_it_comes_on():
    said = event({"jsonrpc": "2.0", "error": {"code": -32603, "message": "no"}})
    async with linked(bodies(lambda r: chunked() + chunk(said) + b"0\r\n\r\n")) as (link, _peer):
        frame = await link.call("x", {}, META, patience=PATIENT)
    assert json.loads(bytes(frame.error))["code"] == -32603


async def test_an_event_over_the_limit_is_refused():
    async with linked(
        bodies(lambda r: chunked() + chunk(b"data: " + b"x" * 2000)), limits=Limits(message_bytes=1000)
    ) as (
        link,
        _peer,
    ):
        with pytest.raises(BadResult, match="1000 bytes"):
            await call(link)


async def test_an_event_without_an_end_is_refused_after_a_few_megabytes():
    taken = 0

    async def endless(request, stream):
        nonlocal taken
        await stream.write(chunked() + chunk(b"data: "))
        while taken < 64:
            await stream.write(chunk(b"x" * MIB))
            taken += 1

    async with linked(endless) as (link, _peer):
        with pytest.raises(BadResult, match=f"an event of more than {8 * MIB} bytes"):
            await call(link)
    assert taken < 32  # beside what was refused, what buffers on the way held


async def test_a_stream_that_ends_without_an_answer_is_a_lost_call():
    said = chunk(event(notice("notifications/message")))
    ends = [
        lambda r: chunked() + said + b"0\r\n\r\n",  # a proper end
        lambda r: chunked() + said,  # cut
        lambda r: b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n: hi\n\n",
    ]

    async def script(request, stream):
        await stream.write(ends[len(peer.requests) - 1](request))
        stream.close()

    async with linked(script) as (link, peer):
        for _ in ends:
            with pytest.raises(ConnectionLost) as lost:
                await call(link)
            assert lost.value.sent is True
        assert link.end is None


# --- the connection ---


async def test_nobody_there_is_lost_and_provably_nothing_was_sent():
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    link = HttpLink(endpoint_of(f"http://127.0.0.1:{port}/mcp"))
    with pytest.raises(ConnectionLost, match="connection refused") as lost:
        await call(link)
    assert lost.value.sent is False
    await link.close()


@pytest.mark.parametrize("end", ["close", "reset"])
async def test_a_connection_that_ends_before_the_answer_is_lost(end):
    async def script(request, stream):
        getattr(stream, end)()

    async with linked(script) as (link, peer):
        with pytest.raises(ConnectionLost) as lost:
            await call(link)
    assert lost.value.sent is None
    assert len(peer.requests) == 1, "nothing is sent twice"


@pytest.mark.parametrize("end", ["close", "reset"])
async def test_an_answer_that_breaks_off_is_lost(end):
    async def script(request, stream):
        await stream.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{")
        getattr(stream, end)()

    async with linked(script) as (link, _peer):
        with pytest.raises(ConnectionLost) as lost:
            await call(link)
    assert lost.value.sent is True


async def test_what_is_no_http_is_a_broken_rule():
    async with linked(bodies(lambda r: b"SSH-2.0-x\r\n\r\n")) as (link, _peer):
        with pytest.raises(RemoteError, match="proper HTTP"):
            await call(link)


async def test_a_server_that_comes_back_is_found_again():
    async with linked(bodies(lambda r: result(r, {}))) as (link, peer):
        await call(link)
        await peer.stop()
        with pytest.raises(ConnectionLost):
            await call(link)
        await peer.start()
        await call(link)


async def test_a_certificate_nobody_vouches_for_is_refused_before_anything_is_sent(tmp_path):
    context, _ = self_signed(tmp_path)
    async with HttpPeer(bodies(lambda r: result(r, {})), tls=context) as peer:
        link = HttpLink(endpoint_of(peer.url))
        with pytest.raises(ConnectionLost, match="no trusted connection") as lost:
            await call(link)
        assert lost.value.sent is False
        await link.close()
    assert peer.requests == []


async def test_a_certificate_the_system_trusts_is_enough(tmp_path, monkeypatch):
    context, certificate = self_signed(tmp_path)
    trusting = ssl.create_default_context(cafile=certificate)
    monkeypatch.setattr("aiohttp.connector._SSL_CONTEXT_VERIFIED", trusting)  # stands for the system's store
    async with HttpPeer(bodies(lambda r: result(r, {"n": 1})), tls=context) as peer:
        link = HttpLink(endpoint_of(peer.url))
        assert (await call(link))["n"] == 1
        await link.close()


async def test_a_plain_server_behind_https_is_no_trusted_connection():
    async def script(request, stream):
        await stream.write(b"HTTP/1.1 400 Bad\r\n\r\n")
        stream.close()

    async with HttpPeer(script, read=False) as peer:
        link = HttpLink(endpoint_of(peer.url.replace("http:", "https:")))
        with pytest.raises(ConnectionLost) as lost:
            await call(link)
        assert lost.value.sent is False
        await link.close()


# --- statuses ---


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 413, 429, 431, 500, 502, 503, 504])
async def test_a_status_without_a_message_is_typed(status):
    async with linked(bodies(lambda r: http(status, b"<html>", kind="text/html"))) as (link, _peer):
        with pytest.raises(HttpStatus) as told:
            await call(link)
    assert told.value.status == status
    assert str(status) in str(told.value)


async def test_a_challenge_is_kept():
    async with linked(bodies(lambda r: http(401, b"", 'WWW-Authenticate: Bearer scope="a"'))) as (link, _peer):
        with pytest.raises(HttpStatus) as told:
            await call(link)
    assert told.value.challenge == 'Bearer scope="a"'


async def test_a_redirect_within_the_origin_is_followed_with_the_same_post():
    def script(request, stream):
        return http(307, b"", "Location: /mcp/") if request.path == "/mcp" else result(request, {"n": 1})

    async with linked(script, {"X-Key": "k"}) as (link, peer):
        assert (await call(link))["n"] == 1
    assert [request.path for request in peer.requests] == ["/mcp", "/mcp/"]
    assert peer.requests[0].body == peer.requests[1].body
    assert peer.requests[1].header("x-key") == "k"


async def test_a_server_that_redirects_and_leaves_has_read_the_request():
    async def script(request, stream):
        await stream.write(http(307, b"", "Location: /other", "Connection: close"))
        stopping.append(asyncio.ensure_future(peer.stop()))

    stopping = []
    async with linked(script) as (link, peer):
        with pytest.raises(ConnectionLost) as lost:
            await call(link)
        assert lost.value.sent is True
        await asyncio.gather(*stopping)
        await peer.start()


@pytest.mark.parametrize(
    "where", ["http://localhost:{port}/mcp", "http://127.0.0.1:1/x", "https://127.0.0.1/", "//x/y"]
)
@pytest.mark.parametrize("status", [307, 308])
async def test_a_redirect_to_another_origin_is_not_followed(status, where):
    async with linked(bodies(lambda r: http(status, b"", f"Location: {where.format(port=peer.port)}"))) as (link, peer):
        with pytest.raises(HttpStatus, match="not followed"):
            await call(link)
    assert len(peer.requests) == 1


@pytest.mark.parametrize("status", [301, 302, 303])
async def test_a_redirect_that_would_change_the_verb_is_not_followed(status):
    async with linked(bodies(lambda r: http(status, b"", "Location: /other"))) as (link, peer):
        with pytest.raises(HttpStatus, match="not followed"):
            await call(link)
    assert len(peer.requests) == 1


async def test_redirects_in_a_circle_end():
    async with linked(bodies(lambda r: http(308, b"", "Location: /mcp"))) as (link, peer):
        with pytest.raises(HttpStatus):
            await call(link)
    assert len(peer.requests) == client._REDIRECTS + 1


# --- deadlines and giving up ---


async def hang(request, stream):
    await stream.write(chunked())
    await stream.gone()
    stream.close()


async def test_a_deadline_closes_the_stream():
    closed = asyncio.Event()

    async def script(request, stream):
        await hang(request, stream)
        closed.set()

    async with linked(script) as (link, _peer):
        with pytest.raises(CallTimeout) as late:
            await call(link, patience=Patience(idle=0.05, total=20))
        assert late.value.which == "idle"
        async with asyncio.timeout(20):
            await closed.wait()


async def test_a_server_that_never_answers_at_all_meets_the_total_deadline():
    async def script(request, stream):
        await stream.gone()

    async with linked(script) as (link, _peer):
        with pytest.raises(CallTimeout) as late:
            await call(link, patience=Patience(idle=None, total=0.05))
        assert late.value.which == "total"


async def test_a_server_that_does_not_even_read_leaves_nothing_behind():
    never = asyncio.Event()

    async def script(request, stream):
        await never.wait()

    async with linked(script, read=False) as (link, _peer):
        with pytest.raises(CallTimeout):
            await call(
                link,
                params={"name": "t", "arguments": {"text": "x" * 30_000_000}},
                patience=Patience(idle=None, total=0.3),
            )
        await link.close()


async def test_a_large_request_arrives_whole():
    async with linked(bodies(lambda r: result(r, {"n": len(r.params["arguments"]["text"])}))) as (link, _peer):
        found = await call(link, params={"name": "t", "arguments": {"text": "x" * 3_000_000}})
    assert found["n"] == 3_000_000


async def test_only_progress_that_increases_extends_the_idle_deadline():
    link = HttpLink(endpoint_of("http://127.0.0.1:1/mcp"))
    waiting = link._calls.add("x", Patience(idle=10, total=100), None, True)

    def extended_by(method, **params):
        waiting.idle_until = 0.0
        link._notified(waiting, read(notice(method, **params)))
        return waiting.idle_until > 0

    progress = "notifications/progress"
    assert extended_by(progress, progressToken=waiting.id, progress=1)
    assert not extended_by(progress, progressToken=waiting.id, progress=1)
    assert not extended_by(progress, progressToken=99, progress=2)
    assert extended_by(progress, progressToken=waiting.id, progress=2)
    assert not extended_by("notifications/message", level="info")
    assert extended_by("notifications/tools/list_changed", _meta={SUBSCRIPTION_ID: waiting.id})
    assert not extended_by("notifications/tools/list_changed", _meta={SUBSCRIPTION_ID: 99})
    link._calls.remove(waiting)
    await link.close()


def read(message):
    return read_frame(encode(message))


async def test_giving_up_closes_the_stream_and_other_calls_go_on():
    closed = asyncio.Event()

    async def script(request, stream):
        if request.params["name"] == "t":
            await hang(request, stream)
            closed.set()
            return None
        return result(request, {"n": 1})

    async with linked(script) as (link, peer):
        waiting = asyncio.ensure_future(call(link))
        while not peer.requests:
            await asyncio.sleep(0.005)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        async with asyncio.timeout(20):
            await closed.wait()
        assert (await call(link, params={"name": "u"}))["n"] == 1
    assert all(request.method != "notifications/cancelled" for request in peer.requests)


# --- notifications ---


@pytest.mark.parametrize("reply", [http(202), http(204), http(200, b"{}")])
async def test_a_notification_is_accepted(reply):
    async with linked(bodies(lambda r: reply)) as (link, peer):
        await link.tell("notifications/x", {"a": 1})
    [request] = peer.requests
    assert request.message == {"jsonrpc": "2.0", "method": "notifications/x", "params": {"a": 1}}
    assert request.header("mcp-method") == "notifications/x"


async def test_a_notification_that_is_refused_says_why():
    replies = [
        http(400, b'{"jsonrpc":"2.0","error":{"code":-32601,"message":"unknown"}}'),
        http(500),
        http(302, b"", "Location: /"),
    ]
    async with linked(bodies(lambda r: replies.pop(0))) as (link, _peer):
        with pytest.raises(MethodNotFound, match="unknown"):
            await link.tell("notifications/x", None)
        for _ in range(2):
            with pytest.raises(HttpStatus):
                await link.tell("notifications/x", None)


async def test_a_notification_nobody_takes_is_late(monkeypatch):
    monkeypatch.setattr(post, "_ACCEPTED_WITHIN", 0.05)

    async def script(request, stream):
        await stream.gone()

    async with linked(script) as (link, peer):
        with pytest.raises(CallTimeout):
            await link.tell("notifications/x", None)
        await peer.stop()
        monkeypatch.setattr(post, "_ACCEPTED_WITHIN", 60)  # a slow machine must not be late as well
        with pytest.raises(ConnectionLost):
            await link.tell("notifications/x", None)
        await peer.start()


# --- the end ---


async def test_close_fails_what_waits_and_is_idempotent():
    async with linked(hang) as (link, peer):
        waiting = [asyncio.ensure_future(call(link)) for _ in range(3)]
        while len(peer.requests) < 3:
            await asyncio.sleep(0.005)
        await asyncio.gather(link.close(), link.close())
        for each in waiting:
            with pytest.raises(ConnectionClosed):
                await each
        with pytest.raises(NotOpen):
            await call(link)
        with pytest.raises(NotOpen):
            await link.tell("x", None)
        await link.close()


async def test_close_ends_a_notification_on_its_way():
    async def script(request, stream):
        await stream.gone()

    async with linked(script) as (link, peer):
        waiting = asyncio.ensure_future(link.tell("notifications/x", None))
        while not peer.requests:
            await asyncio.sleep(0.005)
        await link.close()
        with pytest.raises(ConnectionClosed):
            await waiting


async def test_many_calls_given_up_at_any_moment_leave_nothing_behind():
    async def script(request, stream):
        await stream.write(chunked() + chunk(event(notice("notifications/message"))))
        await asyncio.sleep(0)
        await stream.write(chunk(event(final(request))) + b"0\r\n\r\n")

    async with linked(script) as (link, _peer):
        calls = [asyncio.ensure_future(call(link)) for _ in range(60)]
        for turn, each in enumerate(calls):
            for _ in range(turn % 7):
                await asyncio.sleep(0)
            if turn % 2:
                each.cancel()
        found = await asyncio.gather(*calls, return_exceptions=True)
        assert all(each == {} for each in found[::2])
        assert await call(link) == {}
        assert not link._calls.waiting


async def test_a_link_that_was_never_used_closes_without_a_word():
    link = HttpLink(endpoint_of("http://127.0.0.1:1/mcp"))
    await link.close()


def test_a_link_whose_loop_is_gone_can_be_given_up():
    async def used():
        async with HttpPeer(bodies(lambda r: result(r, {}))) as peer:
            link = HttpLink(endpoint_of(peer.url))
            await call(link)
            return link, list(link._outbound._pool.sockets)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # of the loop, about transports that went with it
        link, held = asyncio.run(used())
        link.abandon()
        link.abandon()
        assert held and all(each.fileno() < 0 for each in held)
        assert isinstance(link.end, ConnectionClosed)
        del link, held
        gc.collect()


async def test_redirects_lead_on_from_where_they_led():
    def script(request, stream):
        further = {"/mcp": "v2/mcp", "/v2/mcp": "other"}.get(request.path)
        return http(307, b"", f"Location: {further}") if further else result(request, {"at": request.path})

    async with linked(script) as (link, _peer):
        assert (await call(link))["at"] == "/v2/other"


async def test_a_head_that_breaks_off_is_not_shown():
    def script(request, stream):
        stream.writer.write(b"HTTP/1.1 200 OK\r\nSet-Cookie: secret=1\r\n")
        stream.close()

    async with linked(script) as (link, _peer):
        with pytest.raises(ConnectionLost) as caught:
            await call(link)
    assert "secret" not in str(caught.value) and "closed it before it answered" in str(caught.value)


async def test_the_version_in_the_header_is_the_one_in_the_message():
    async with linked(bodies(lambda r: result(r, {}))) as (link, peer):
        link.adopt(ClientEdge(link, REVISIONS["2025-11-25"], {}))
        await call(link)
        await link.call("x", {}, patience=PATIENT)
    assert [each.header("mcp-protocol-version") for each in peer.requests] == ["2026-07-28", "2025-11-25"]


async def test_who_gives_up_waiting_for_the_end_does_not_stop_it(monkeypatch):
    goes_on = asyncio.Event()
    link = HttpLink(endpoint_of("http://127.0.0.1:1/"))
    monkeypatch.setattr(link._outbound, "close", goes_on.wait)
    closing = asyncio.ensure_future(link.close())
    await until_idle()
    closing.cancel()
    await asyncio.wait([closing])
    goes_on.set()
    await link.close()
    assert closing.cancelled() and link._closing.done()


async def test_what_is_being_told_ends_with_the_link(monkeypatch):
    async def never(*_):
        await asyncio.Event().wait()

    link = HttpLink(endpoint_of("http://127.0.0.1:1/"))
    monkeypatch.setattr(http_client, "post_accepted", never)
    telling = asyncio.ensure_future(link.tell("notifications/x", None))
    await until_idle()
    await link.close()
    with pytest.raises(ConnectionClosed):
        await asyncio.wait_for(telling, 20)
