"""transport/http/client/post.py: errors quote how the body of a refusal begins, whatever its type and its end."""

import asyncio

import pytest

from interlock import Client
from interlock.host.gate.policy import Policy
from interlock.host.host import Host
from interlock.host.servers.managed_server import Unavailable
from interlock.protocol.client.probe import Verdicts
from interlock.wire.errors import AuthRequired, HttpStatus
from support.http_peer import HttpPeer, chunk, chunked, http
from support.http_peer import server as server_script

TOLD = b"Access is only allowed at localhost:8000"


@pytest.mark.parametrize("kind", ["text/plain", "text/html", "application/json", None, "application/octet-stream"])
@pytest.mark.parametrize("status", [403, 404, 500])
async def test_an_opening_that_is_refused_says_why(kind, status):
    async with HttpPeer(lambda request, stream: http(status, TOLD, kind=kind)) as peer:
        with pytest.raises(HttpStatus, match="it said: Access is only allowed at localhost:8000"):
            await Client(peer.url, verdicts=Verdicts()).open()


async def test_a_challenge_quotes_its_body_too():
    async with HttpPeer(lambda request, stream: http(401, b"the token has expired", kind="text/plain")) as peer:
        with pytest.raises(AuthRequired, match="it said: the token has expired"):
            await Client(peer.url, verdicts=Verdicts()).open()


async def test_a_call_that_is_refused_says_why():
    script = server_script(tools_call=lambda request, stream: http(503, TOLD, kind="text/plain"))
    async with HttpPeer(script) as peer, Client(peer.url, verdicts=Verdicts()) as client:
        with pytest.raises(HttpStatus, match="it said: Access"):
            await client.call_tool("t")


async def test_a_body_without_end_is_quoted_as_far_as_it_came():
    async def script(request, stream):
        head = chunked("text/plain").replace(b" 200 ", b" 502 ")
        await stream.write(head + chunk(b"the gateway failed"))
        await asyncio.Event().wait()

    async with HttpPeer(script) as peer:
        with pytest.raises(HttpStatus, match="it said: the gateway failed") as caught:
            await Client(peer.url, revision="2025-11-25", verdicts=Verdicts()).open()
    assert caught.value.status == 502


async def test_a_host_says_why_too():
    allowed = Policy(defaults={"launch": "allow"})
    refused = HttpPeer(lambda request, stream: http(403, TOLD, kind="text/plain"))
    async with refused as peer, Host({"web": peer.url}, policy=allowed) as host:
        with pytest.raises(Unavailable, match="it said: Access is only allowed at localhost:8000"):
            await host.members["web"].connected()
