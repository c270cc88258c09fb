"""A Client of ours that is open, and the raw server behind it, which the test itself plays.

async with talking(carrier, revision) as (client, peer):
    call = start(client.call_tool("echo"))
    request = await peer.expect("tools/call")
    reply(peer, request, {"content": []})
    await call
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any

from interlock import Client
from support.wire_peer import MODERN, WAIT, WirePeer, client_under_test

__all__ = [
    "Clock",
    "discovery",
    "everything",
    "greet",
    "methods",
    "refuse",
    "reply",
    "settled",
    "silent",
    "start",
    "talking",
    "text",
    "turns",
    "welcome",
]

INFO = {"name": "played", "version": "1"}


def everything(revision: str) -> dict[str, Any]:
    """The capabilities of a server that has all the revision knows."""
    found: dict[str, Any] = {
        "tools": {"listChanged": True},
        "resources": {"subscribe": True, "listChanged": True},
        "prompts": {"listChanged": True},
        "logging": {},
    }
    return found if revision == "2024-11-05" else {**found, "completions": {}}


# --- what the raw server says -----------------------------------------------------------------------------


def reply(peer: WirePeer, request: Mapping[str, Any], result: Mapping[str, Any], *, judged: bool = True) -> None:
    """Answer with a result, complete in the words of the revision."""
    told = dict(result)
    if peer.revision in MODERN:
        told = {"resultType": "complete", **told}
    peer.send({"jsonrpc": "2.0", "id": request["id"], "result": told}, judged=judged)


def refuse(
    peer: WirePeer, request: Mapping[str, Any], code: int, message: str = "no", data: Any = None, *, judged: bool = True
) -> None:
    error = {"code": code, "message": message} | ({"data": data} if data is not None else {})
    peer.send({"jsonrpc": "2.0", "id": request["id"], "error": error}, judged=judged)


def text(said: str) -> dict[str, Any]:
    """The result of a tool that says one thing."""
    return {"content": [{"type": "text", "text": said}]}


def welcome(revision: str, capabilities: Mapping[str, Any] | None = None, **members: Any) -> dict[str, Any]:
    """An InitializeResult."""
    told = everything(revision) if capabilities is None else dict(capabilities)
    return {"protocolVersion": revision, "capabilities": told, "serverInfo": INFO, **members}


def discovery(revision: str, capabilities: Mapping[str, Any] | None = None, **members: Any) -> dict[str, Any]:
    """A DiscoverResult."""
    told = everything(revision) if capabilities is None else dict(capabilities)
    return {
        "resultType": "complete",
        "supportedVersions": [revision],
        "capabilities": told,
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": {"io.modelcontextprotocol/serverInfo": INFO},
        **members,
    }


async def greet(peer: WirePeer, capabilities: Mapping[str, Any] | None = None, **members: Any) -> dict[str, Any]:
    """Play the opening of the revision to its end; gives the client's first request."""
    if peer.revision in MODERN:
        hello = await peer.receive()
        assert hello["method"] == "server/discover", hello
        reply(peer, hello, discovery(peer.revision, capabilities, **members))
        return hello
    hello = await peer.receive()
    assert hello["method"] == "initialize", hello
    reply(peer, hello, welcome(peer.revision, capabilities, **members))
    told = await peer.receive()
    assert told["method"] == "notifications/initialized", told
    return hello


async def silent(peer: WirePeer) -> None:
    """A server that reads and never says anything."""
    await peer.ended_event.wait()


def methods(peer: WirePeer) -> list[str]:
    """What the client has called and told so far, in order."""
    return [frame["method"] for frame in peer.transcript.frames("client") if "method" in frame]


# --- the client ---------------------------------------------------------------------------------------------


@asynccontextmanager
async def talking(
    carrier: str,
    revision: str,
    /,
    *,
    capabilities: Mapping[str, Any] | None = None,
    members: Mapping[str, Any] | None = None,
    check: bool = True,
    **options: Any,
) -> AsyncIterator[tuple[Client, WirePeer]]:
    """An open client that speaks this revision. `capabilities` and `members` are what the server said."""

    greeted = asyncio.Event()

    async def script(peer: WirePeer) -> None:
        await greet(peer, capabilities, **(members or {}))
        greeted.set()

    options.setdefault("keepalive", None)
    options.setdefault("revision", revision)
    async with client_under_test(carrier, revision, script, check=check, **options) as (client, peers):
        await client.open()
        async with asyncio.timeout(WAIT):
            await greeted.wait()  # from here on the test alone reads what the client says
        yield client, peers


async def settled(client: Client, peer: WirePeer) -> None:
    """A barrier in both eras: whatever the client had to say before is in `peer.heard` afterwards."""
    asking = start(client.ping())
    question = await peer.expect("server/discover" if peer.revision in MODERN else "ping")
    reply(peer, question, discovery(peer.revision) if peer.revision in MODERN else {})
    await asking


def start(work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    """Begin something that the test looks after later."""
    return asyncio.get_running_loop().create_task(work)


async def turns(count: int = 10) -> None:
    """Let the loop turn: what was ready has run. Not a wait for anything that takes time."""
    for _ in range(count):
        await asyncio.sleep(0)


class Clock:
    """The clock of the running loop, which a test can put forward: deadlines pass and nobody waits.

    Each test has a loop of its own, so nothing has to be put back.
    """

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        real = loop.time
        self._ahead = 0.0
        loop.time = lambda: real() + self._ahead  # type: ignore[method-assign]

    async def advance(self, seconds: float) -> None:
        self._ahead += seconds
        await turns()
