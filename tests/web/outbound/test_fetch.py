"""web/outbound/fetch.py: one plain request, guarded and bounded like everything else."""

import asyncio

import pytest

from interlock.web.outbound.endpoint import endpoint_of
from interlock.web.outbound.fetch import fetch
from interlock.wire.errors import BadResult, CallTimeout, ConnectionLost, RemoteError
from support.http_peer import HttpPeer, chunk, chunked, http
from support.names import Names


async def test_a_get_and_what_comes_back():
    reply = http(200, b'{"a":1}', "Cache-Control: no-store", "X-A: 1", "x-a: 2")
    async with HttpPeer(lambda request, stream: reply) as peer:
        found = await fetch(endpoint_of(f"{peer.url}?x=1", {"Authorization": "Bearer t"}))
    assert (found.status, found.body, found.media) == (200, b'{"a":1}', "application/json")
    assert (found.headers["cache-control"], found.headers["x-a"]) == ("no-store", "1, 2")
    assert found.url == f"{peer.url}?x=1"
    [request] = peer.requests
    assert (request.verb, request.path, request.body) == ("GET", "/mcp?x=1", b"")
    assert request.header("authorization") == "Bearer t"
    assert request.header("accept") == "application/json"
    assert request.header("accept-encoding") == "identity"
    assert request.header("content-type") is None
    assert request.header("mcp-protocol-version") is None


async def test_a_post_of_a_form_and_of_anything_else():
    async with HttpPeer(lambda request, stream: http(201, b"made")) as peer:
        endpoint = endpoint_of(peer.url, {"user-agent": "mine"})
        assert (await fetch(endpoint, "POST", b"a=b")).status == 201
        await fetch(endpoint, "POST", b"{}", media="application/json", accept="*/*")
    first, second = peer.requests
    assert (first.body, first.header("content-type")) == (b"a=b", "application/x-www-form-urlencoded")
    assert (second.header("content-type"), second.header("accept")) == ("application/json", "*/*")
    assert first.header("user-agent") == "mine"


@pytest.mark.parametrize("status", [204, 302, 400, 401, 404, 500, 503])
async def test_every_status_is_an_answer(status):
    async with HttpPeer(lambda request, stream: http(status, b"")) as peer:
        assert (await fetch(endpoint_of(peer.url))).status == status
    assert len(peer.requests) == 1


async def test_no_secret_is_printed():
    async with HttpPeer(lambda request, stream: http(200, b"secret", "X-A: secret")) as peer:
        assert "secret" not in repr(await fetch(endpoint_of(f"{peer.url}?secret")))


# --- bounds ---


@pytest.mark.parametrize("form", [lambda body: http(200, body), lambda body: chunked() + chunk(body) + b"0\r\n\r\n"])
async def test_an_answer_is_bounded(form):
    async with HttpPeer(lambda request, stream: form(b"x" * 200)) as peer:
        with pytest.raises(BadResult, match="larger than 100 bytes"):
            await fetch(endpoint_of(peer.url), most_bytes=100)
        assert len((await fetch(endpoint_of(peer.url), most_bytes=200)).body) == 200


async def test_the_usual_bound_is_small():
    async with HttpPeer(lambda request, stream: http(200, b"x" * (256 * 1024 + 1))) as peer:
        with pytest.raises(BadResult, match="larger than 262144 bytes"):
            await fetch(endpoint_of(peer.url))


@pytest.mark.parametrize("begun", [False, True])
async def test_it_ends_in_time(begun):
    async def script(request, stream):
        if begun:
            await stream.write(chunked() + chunk(b"x"))
        await stream.gone()

    async with HttpPeer(script) as peer:
        with pytest.raises(CallTimeout, match=r"^GET http://127.0.0.1:\d+: no answer within the total deadline"):
            await fetch(endpoint_of(f"{peer.url}?secret"), seconds=0.05)


@pytest.mark.parametrize("encoding", ["gzip", "br", "deflate, gzip"])
async def test_nothing_packed_is_taken(encoding):
    async with HttpPeer(lambda request, stream: http(200, b"x", f"Content-Encoding: {encoding}")) as peer:
        with pytest.raises(BadResult, match="packed"):
            await fetch(endpoint_of(peer.url))


@pytest.mark.parametrize(
    "head",
    [b"X-A: " + b"a" * 9000, b"X" * 9000 + b": a", b"\r\n".join([b"X-A: a"] * 200), b"nonsense"],
    ids=["value", "name", "number", "no header"],
)
async def test_a_head_is_bounded_and_proper(head):
    async with HttpPeer(lambda request, stream: b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n") as peer:
        with pytest.raises(RemoteError, match="does not speak proper HTTP"):
            await fetch(endpoint_of(peer.url))


async def test_a_connection_that_breaks_is_told_as_one():
    async def script(request, stream):
        stream.reset()

    async with HttpPeer(script) as peer:
        with pytest.raises(ConnectionLost) as told:
            await fetch(endpoint_of(peer.url), "POST", b"a=b")
        assert told.value.sent is None


async def test_giving_up_leaves_nothing_behind():
    asked = asyncio.Event()

    async def script(request, stream):
        asked.set()
        await stream.gone()

    async with HttpPeer(script) as peer:
        task = asyncio.ensure_future(fetch(endpoint_of(peer.url)))
        await asyncio.wait_for(asked.wait(), 20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


# --- where it goes ---


async def test_redirects_stay_within_the_origin_and_end(monkeypatch):
    names = Names(monkeypatch)

    def script(request, stream):
        step = int(request.path.rpartition("/")[2] or 0)
        return http(302, b"", f"Location: /{step + 1}") if step else http(302, b"", "Location: https://127.0.0.1/x")

    async with HttpPeer(script) as peer:
        base = peer.url.removesuffix("/mcp")
        assert (await fetch(endpoint_of(f"{base}/1"))).status == 302
        assert [request.path for request in peer.requests] == ["/1", "/2", "/3", "/4"]
        found = await fetch(endpoint_of(f"{base}/0", {"Authorization": "Bearer t"}))
        assert (found.status, found.headers["location"]) == (302, "https://127.0.0.1/x")
    assert len(peer.requests) == 5
    assert set(names.connected) == {"127.0.0.1"}


async def test_what_a_server_names_gets_none_of_our_headers():
    async with HttpPeer(lambda request, stream: http(200)) as peer, HttpPeer(lambda r, s: http(200)) as other:
        mine = endpoint_of(peer.url, {"Authorization": "Bearer t"})
        await fetch(mine.named(other.url))
        await fetch(mine.named(peer.url))
        await fetch(mine.named(other.url, {"X-A": "b"}))
    assert {request.header("authorization") for request in peer.requests + other.requests} == {None}
    assert other.requests[1].header("x-a") == "b"
