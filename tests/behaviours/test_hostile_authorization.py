"""A client that is to be authorized, and servers on real sockets that want it to go round in circles or elsewhere."""

from __future__ import annotations

import itertools

import pytest

from interlock import Client
from interlock.auth.client.token_record import read_standing
from interlock.auth.client.token_storage import MemoryRecords
from interlock.wire.errors import HttpStatus, InterlockError
from support.auth_peer import GuardedPeer
from support.http_peer import HttpPeer, http, server

CALLED = {"content": [{"type": "text", "text": "ok"}]}
DISCOVERED = "/.well-known/oauth-protected-resource/mcp"
ISSUED = "/.well-known/oauth-authorization-server/as"


def guarded(**more):
    return GuardedPeer(server(tools_call=CALLED, tools_list={"tools": [], "ttlMs": 0, "cacheScope": "private"}), **more)


def instead(host, path, answer):
    """What stands at this path from now on; a function of the request."""
    inner = host.peer.script
    host.peer.script = lambda request, stream: answer(request) if request.path == path else inner(request, stream)


@pytest.mark.parametrize("fresh", [True, False], ids=["ever new nonces", "the same nonce"])
async def test_a_server_that_always_wants_another_nonce_is_asked_a_few_times(fresh):
    numbers = itertools.count()
    async with guarded(scheme="DPoP", dpop_signing_alg_values_supported=["ES256"]) as host:
        async with Client(host.url, auth=host.oauth()) as client:
            asked = len(host.calls)

            def refuse(request):
                nonce = f"n{next(numbers) if fresh else 0}"
                return http(401, b"", 'WWW-Authenticate: DPoP error="use_dpop_nonce"', f"DPoP-Nonce: {nonce}")

            instead(host, "/mcp", refuse)
            with pytest.raises(HttpStatus) as refused:
                await client.call_tool("t")
        assert refused.value.status == 401 and len(host.calls) - asked <= 6 and len(host.visits) <= 2
        proofs = [call.header("DPoP") for call in host.calls[1:]]
        assert len(set(proofs)) == len(proofs), "no proof goes out twice"


async def test_an_issuer_that_always_wants_another_nonce_is_asked_twice():
    numbers = itertools.count()
    async with guarded(scheme="DPoP", dpop_signing_alg_values_supported=["ES256"]) as host:
        told = b'{"error": "use_dpop_nonce"}'
        instead(host, "/as/token", lambda request: http(400, told, f"DPoP-Nonce: n{next(numbers)}"))
        with pytest.raises(InterlockError, match="use_dpop_nonce"):
            async with Client(host.url, auth=host.oauth()):
                raise AssertionError("there is no token")
        assert host.asked.count("/as/token") == 2 and len(host.visits) == 1


@pytest.mark.requirement("AUTH-049")
async def test_a_server_that_takes_no_token_any_more_gets_one_refresh_and_one_login_of_each_request():
    async with guarded() as host, Client(host.url, auth=host.oauth()) as client:
        instead(host, "/mcp", lambda request: http(401, b"", "WWW-Authenticate: Bearer"))
        for number in range(1, 3):
            with pytest.raises(HttpStatus):
                await client.call_tool("t")
            grants = [each["grant_type"] for each in host.issuer.requests]
            assert grants == ["authorization_code"] + ["refresh_token", "authorization_code"] * number
            assert len(host.visits) == 1 + number


@pytest.mark.requirement("SEC-013")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("path", [DISCOVERED, ISSUED, "/as/register", "/as/token"])
async def test_nothing_follows_a_redirect_to_somebody_else(path, status):
    """Another port is another origin: neither a code nor a registration goes there, nor is its document taken."""
    async with guarded() as host, HttpPeer(lambda request, stream: http(200, b"{}")) as other:
        for location in (f"http://127.0.0.1:{other.port}/x", f"//127.0.0.1:{other.port}/x", f"http://localhost{path}"):
            instead(host, path, lambda request, to=location: http(status, b"", f"Location: {to}"))
            records = MemoryRecords()
            with pytest.raises(InterlockError):
                async with Client(host.url, auth=host.oauth(tokens=records), revision="2026-07-28"):
                    raise AssertionError("nobody granted a token")
            assert read_standing(records.load(f"server default {host.url}")) is None
        assert not other.requests


BROKEN = {
    "larger than it may be": http(200, b"{" + b" " * 300_000 + b"}"),
    "packed": http(200, b"\x1f\x8b\x08\x00", "Content-Encoding: gzip"),
    "no HTTP": b"SSH-2.0-x\r\n\r\n",
    "a head without an end": b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 5000,
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "less than it says": b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\n{}",
    "a name with a gap": b"HTTP/1.1 200 OK\r\nContent Length: 2\r\n\r\n{}",
}


@pytest.mark.parametrize("what", BROKEN)
@pytest.mark.parametrize("path", [DISCOVERED, ISSUED, "/as/register", "/as/token"])
async def test_an_answer_that_is_broken_is_an_error_of_ours(path, what):
    async with guarded() as host:

        async def broken(request, stream):
            await stream.write(BROKEN[what])
            stream.close()

        inner = host.peer.script
        host.peer.script = lambda request, stream: (broken if request.path == path else inner)(request, stream)
        records = MemoryRecords()
        with pytest.raises(InterlockError) as failed:
            async with Client(host.url, auth=host.oauth(tokens=records), revision="2026-07-28"):
                raise AssertionError("nobody granted a token")
        assert len(str(failed.value)) < 600 and read_standing(records.load(f"server default {host.url}")) is None
