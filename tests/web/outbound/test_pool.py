"""web/outbound/pool.py: which sockets are opened, judged, used again and closed, with TLS and without."""

import asyncio
import gzip
import socket
import ssl
import sys
from weakref import WeakSet

import pytest
import yarl

from interlock.web.outbound import pool
from interlock.web.outbound.address_policy import NAMED, TYPED, Permit
from interlock.web.outbound.client import Outbound
from interlock.web.outbound.endpoint import endpoint_of
from interlock.web.outbound.http11 import NotReached, place_of
from interlock.web.outbound.pool import PlainSockets
from interlock.wire.errors import ConnectionLost, LocalError, RemoteError
from support.certificates import self_signed
from support.http_peer import HttpPeer, http
from support.http_session_talk import until


async def ask(out, verb="POST", body=b"{}"):
    async with out.sent(verb, body, {}) as (reply, response):
        return reply, await out.whole(response, "x")


@pytest.fixture(params=["plain", "tls"])
def peer_of(request, tmp_path, monkeypatch):
    """Makes a peer of a script, with TLS and without: the same guards stand before both."""
    if request.param == "plain":
        return HttpPeer
    context, certificate = self_signed(tmp_path)
    trusting = ssl.create_default_context(cafile=certificate)
    monkeypatch.setattr("aiohttp.connector._SSL_CONTEXT_VERIFIED", trusting)  # stands for the system's store
    return lambda script: HttpPeer(script, tls=context)


# --- the same both ways ---


async def test_a_socket_is_used_again(peer_of):
    async with peer_of(lambda r, s: http(200, b"{}")) as peer:
        out = Outbound(endpoint_of(peer.url))
        for _ in range(3):
            assert (await ask(out))[1] == b"{}"
        await out.close()
    assert peer.connections == 1


@pytest.mark.parametrize("header", ["A: " + "x" * 9000, "\r\n".join(f"A{n}: b" for n in range(200))])
async def test_what_a_server_says_before_its_answer_is_bounded(peer_of, header):
    async with peer_of(lambda r, s: http(200, b"{}", header)) as peer:
        out = Outbound(endpoint_of(peer.url))
        with pytest.raises(RemoteError, match="does not speak proper HTTP"):
            async with out.within("x", 20, "POST", b"{}", {}):
                pass
        await out.close()


async def test_a_body_nobody_wants_closes_its_socket(peer_of):
    gone = asyncio.Event()

    async def script(request, stream):
        await stream.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")
        await stream.gone()
        gone.set()

    async with peer_of(script) as peer:
        out = Outbound(endpoint_of(peer.url))
        async with out.sent("POST", b"{}", {}):
            pass
        await asyncio.wait_for(gone.wait(), 20)
        await out.close()


async def test_closing_tells_who_reads(peer_of):
    async def script(request, stream):
        await stream.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")
        await stream.gone()

    async with peer_of(script) as peer:
        out = Outbound(endpoint_of(peer.url))
        async with out.sent("POST", b"{}", {}) as (_, response):
            assert await response.content.readany() == b"half"
            reading = asyncio.ensure_future(response.content.readany())
            await asyncio.sleep(0)
            await out.close()
            await asyncio.wait([reading], timeout=20)
            assert isinstance(reading.exception(), Exception)


async def test_what_was_read_whole_may_outlive_its_client(peer_of):
    async with peer_of(lambda r, s: http(200, b"{}")) as peer:
        out = Outbound(endpoint_of(peer.url))
        async with out.sent("POST", b"{}", {}) as (_, response):
            assert await out.whole(response, "x") == b"{}"
            await out.close()


async def test_nothing_of_the_environment_and_of_other_answers_goes_along(peer_of, monkeypatch, tmp_path):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password secret")
    monkeypatch.setenv("NETRC", str(netrc))
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with peer_of(lambda r, s: http(200, b"{}", "Set-Cookie: a=b; Path=/")) as peer:
        out = Outbound(endpoint_of(peer.url))
        for _ in range(2):
            assert (await ask(out))[0].status == 200
        await out.close()
    for request in peer.requests:
        assert request.header("authorization") is None and request.header("cookie") is None


async def test_the_library_keeps_no_cookie():
    out, url = Outbound(endpoint_of("https://x.example/")), yarl.URL("https://x.example/")
    jar = out._opened().session.cookie_jar
    jar.update_cookies({"a": "b"}, url)
    assert not jar.filter_cookies(url)
    await out.close()


async def test_what_is_packed_stays_packed(peer_of):
    bomb = gzip.compress(bytes(1_000_000))
    async with peer_of(lambda r, s: http(200, bomb, "Content-Encoding: gzip")) as peer:
        out = Outbound(endpoint_of(peer.url))
        reply, body = await ask(out)
        assert (body, reply.packed) == (bomb, "gzip")
        await out.close()


async def test_a_peer_that_does_not_hear_the_goodbye_keeps_no_socket(peer_of):
    async def script(request, stream):
        stream.reader._transport.pause_reading()
        return http(200, b"{}")

    async with peer_of(script) as peer:
        out = Outbound(endpoint_of(peer.url))
        await ask(out)
        held = [*out._opened().sockets]
        await out.close()
        assert held and all(each.fileno() < 0 for each in held)


async def test_a_large_body_arrives_whole(peer_of):
    body = bytes(range(256)) * 8192
    async with peer_of(lambda r, s: http(200, b"%d" % len(r.body))) as peer:
        out = Outbound(endpoint_of(peer.url))
        assert (await ask(out, body=body))[1] == b"%d" % len(body)
        await out.close()
    assert peer.requests[0].body == body


async def test_who_cannot_be_reached_is_named(peer_of):
    async with peer_of(lambda r, s: http(200)) as peer:
        url = peer.url
    out = Outbound(endpoint_of(url))
    with pytest.raises(ConnectionLost, match=r"could not connect to .*: connection refused") as told:
        async with out.within("x", 20, "POST", b"{}", {}):
            pass
    assert told.value.sent is False
    await out.close()


# --- without TLS ---


def permit(host="127.0.0.1", policy=TYPED):
    return Permit(host, "http", policy.plain, policy)


def sockets():
    return PlainSockets(asyncio.get_running_loop(), WeakSet())


async def test_without_tls_the_library_is_not_made(monkeypatch):
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    async with HttpPeer(lambda r, s: http(200, b"{}")) as peer:
        out = Outbound(endpoint_of(peer.url))
        assert (await ask(out))[1] == b"{}"
        await out.close()


async def test_a_name_is_judged_by_all_its_addresses(monkeypatch):
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, 80)) for each in ("127.0.0.1", "10.0.0.1")]

    async def resolved(*_, **__):
        return found

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolved)
    with pytest.raises(LocalError, match="may not reach by http"):
        await sockets().connection(place_of("http://localhost:80/mcp"), permit("localhost"))


async def test_a_name_leads_to_the_first_address_that_answers():
    async with HttpPeer(lambda r, s: http(200)) as peer:
        plain = sockets()
        found = await plain.connection(place_of(f"http://localhost:{peer.port}/mcp"), permit("localhost"))
        assert found.address == "127.0.0.1"  # ::1, where localhost is that too, has nobody listening
        found.abort()
        await asyncio.sleep(0)


async def test_a_name_without_an_address_is_not_reached(monkeypatch):
    async def unknown(*_, **__):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", unknown)
    with pytest.raises(NotReached, match="not known"):
        await sockets().connection(place_of("http://nobody.localhost/mcp"), permit("nobody.localhost"))


async def test_a_socket_that_waits_is_judged_by_who_wants_it():
    async with HttpPeer(lambda r, s: http(200)) as peer:
        plain, place = sockets(), place_of(peer.url)
        plain.keep(place, await plain.connection(place, permit()))
        with pytest.raises(RemoteError, match="may not reach"):
            await plain.connection(place, permit(policy=NAMED))
        plain.close()
        await asyncio.sleep(0)


async def test_a_socket_that_nobody_uses_is_closed(monkeypatch):
    monkeypatch.setattr(pool, "_REUSED_FOR", 0.01)
    async with HttpPeer(lambda r, s: http(200)) as peer:
        plain, place = sockets(), place_of(peer.url)
        found = await plain.connection(place, permit())
        plain.keep(place, found)
        await until(lambda: not found.usable)
        await until(lambda: plain._sweeper is None)


async def test_a_socket_that_was_closed_meanwhile_is_not_used():
    async def script(request, stream):
        await stream.write(http(200, b"{}"))
        stream.close()

    async with HttpPeer(script) as peer:
        out = Outbound(endpoint_of(peer.url))
        for _ in range(2):
            await ask(out)
            await until(lambda: all(each.fileno() < 0 for each in out._opened().sockets))
        await out.close()
    assert peer.connections == 2


async def test_a_socket_that_waited_long_is_closed_and_not_used():
    async with HttpPeer(lambda r, s: http(200)) as peer:
        plain, place = sockets(), place_of(peer.url)
        old = await plain.connection(place, permit())
        plain.keep(place, old)
        old.since -= 2 * pool._REUSED_FOR
        new = await plain.connection(place, permit())
        assert new is not old and old.transport.is_closing()
        new.abort()
        plain.close()
        await asyncio.sleep(0)


async def test_a_socket_that_was_gone_before_we_looked_is_not_reached():
    class Gone:
        """Of a peer that nobody can name any more."""

        address = ""

        def abort(self):
            done.append("aborted")

    class Loop:
        async def sock_connect(self, *_):
            pass

        async def create_connection(self, *_, sock):
            sock.close()
            return None, Gone()

    done = []
    with pytest.raises(NotReached, match="closed as soon as it was there"):
        await PlainSockets(Loop(), WeakSet()).connection(place_of("http://127.0.0.1:1/mcp"), permit())
    assert done == ["aborted"]


async def test_a_request_nobody_waits_for_leaves_no_socket_at_a_peer_that_answered_and_does_not_read(peer_of):
    async def script(_, stream):
        stream.reader._transport.pause_reading()
        await stream.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")
        await asyncio.Event().wait()

    peer = peer_of(script)
    peer.read = False
    async with peer:
        out = Outbound(endpoint_of(peer.url))
        async with out.sent("POST", b"x" * 30_000_000, {}):
            pass
        await until(lambda: all(each.fileno() < 0 for each in out._opened().sockets))
        await out.close()
