"""Logins across: our client at servers of the official Python SDK, and its clients at our protected server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import aiohttp
import pytest
import yarl

from interlock import Client, OAuth
from interlock.auth.client.driver import drive
from interlock.auth.client.token_manager import Seeker
from interlock.protocol.client.probe import Verdicts
from interlock.transport.http.runner.serve import bind, serve_http
from interlock.web.outbound.endpoint import endpoint_of
from interop.environments import PEERS
from interop.told import served, story
from support.examples import loaded
from support.wire_peer import HANDSHAKE, MODERN

REDIRECT = "http://127.0.0.1:33418/callback"


@pytest.mark.parametrize("peer", ["mcp1", "mcp2"])
async def test_a_login_at_the_official_sdk(peer: str, peer_python: Callable[[str], str], tmp_path: Path):
    visits: list[str] = []

    async def login(url: str) -> str:
        visits.append(url)
        at = yarl.URL(url, encoded=True)
        async with aiohttp.ClientSession() as browser, browser.get(at, allow_redirects=False) as page:
            return page.headers["Location"]

    command = [peer_python(peer), str(PEERS / "guarded_server.py"), peer]
    with served(command, tmp_path / "said") as url:
        plan = OAuth(login=login, redirect_uri=REDIRECT, tokens=tmp_path / "tokens")
        async with Client(url, auth=plan, verdicts=Verdicts()) as client:
            assert (await client.call_tool("echo", {"text": "hi"})).text == "hi"
            first = await present(plan, url)
            while await present(plan, url) == first:  # its token ends, and is refreshed before
                await asyncio.sleep(0.05)
            assert (await client.call_tool("echo", {"text": "again"})).text == "again"
        assert len(visits) == 1


async def present(plan: OAuth, url: str) -> object:
    """The token that would be sent now."""
    got = await drive(Seeker(plan, url).current(), plan, endpoint_of(url))
    assert got is not None
    return got.standing.token.access


@pytest.mark.parametrize(("peer", "revision"), [("mcp1", HANDSHAKE[-1]), ("mcp2", MODERN[-1])])
async def test_the_official_client_logs_in_at_our_servers(peer: str, revision: str, peer_python: Callable[[str], str]):
    """Discovery, registration, a login on our page, a refresh, and one more login for a tool that needs more."""
    listener, stop = bind("127.0.0.1", 0), asyncio.Event()
    port = listener.getsockname()[1]
    app = loaded("protected.py").protected(port, "correct horse").asgi()
    serving = asyncio.create_task(serve_http(app, listener, stop=stop))
    try:
        url = f"http://127.0.0.1:{port}/mcp"
        command = [peer_python(peer), str(PEERS / "guarded_client.py"), peer, url, "ada", "correct horse"]
        saw = await asyncio.to_thread(story, command)
    finally:
        stop.set()
        await serving
    assert saw["revision"] == revision
    assert saw["who"] == saw["who again"] and saw["who"].startswith("ada, through ")
    assert saw["tokens"] == 2 and saw["written"] == "1" and saw["registered"]
    assert saw["visits"] == ["notes:read", "notes:read notes:write"]
