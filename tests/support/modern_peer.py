"""What the tests of modern servers share: one server with several connections, one request of every kind."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from interlock import Server
from interlock.transport.jsonrpc.serve import serve_channel
from interlock.transport.memory import memory_pair
from interlock.wire.channel import Channel
from support.wire_peer import CARRIERS, MODERN, WirePeer

__all__ = [
    "ACKNOWLEDGED",
    "FILTER_OF",
    "NOTICE_OF",
    "REFUSALS",
    "REQUESTS",
    "SERVER_KEY",
    "SUBSCRIPTION_KEY",
    "UPDATED",
    "change",
    "connected",
    "hears",
    "listen",
    "members_called",
    "methods",
    "modern",
    "same",
    "settled",
    "tag_of",
    "tagged",
    "touch",
]

SERVER_KEY = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
UPDATED = "notifications/resources/updated"

NOTICE_OF = {kind: f"notifications/{kind}/list_changed" for kind in ("tools", "prompts", "resources")}
FILTER_OF = {kind: f"{kind}ListChanged" for kind in NOTICE_OF}

# One request of every kind that the server `basic` answers with a result ...
REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("server/discover", {}),
    ("tools/list", {}),
    ("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}}),
    ("tools/call", {"name": "add_in_thread", "arguments": {"a": 1, "b": 2}}),
    ("tools/call", {"name": "record"}),
    ("tools/call", {"name": "blocks", "arguments": {}}),
    ("tools/call", {"name": "fail", "arguments": {"how": "tool"}}),
    ("tools/call", {"name": "fail", "arguments": {"how": "bug"}}),
    ("tools/call", {"name": "add", "arguments": {"a": "one"}}),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("resources/read", {"uri": "note://one"}),
    ("resources/read", {"uri": "note://bytes"}),
    ("prompts/list", {}),
    ("prompts/get", {"name": "greet", "arguments": {"name": "Ada"}}),
    ("example/double", {"number": 2}),
]

# ... and one of every kind that it refuses, with the code the specification has for it.
REFUSALS: list[tuple[str, dict[str, Any], int]] = [
    ("no/such/method", {}, -32601),
    (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "name", "value": ""}},
        -32601,
    ),
    ("tasks/get", {"taskId": "1"}, -32601),
    ("tools/call", {"name": "no-such-tool"}, -32602),
    ("tools/call", {}, -32602),
    ("tools/call", {"name": "add", "arguments": [1, 2]}, -32602),
    ("tools/list", {"cursor": "made up"}, -32602),
    ("resources/list", {"cursor": "made up"}, -32602),
    ("resources/templates/list", {"cursor": "made up"}, -32602),
    ("prompts/list", {"cursor": "made up"}, -32602),
    ("resources/read", {"uri": "note://none"}, -32602),
    ("resources/read", {}, -32602),
    ("prompts/get", {"name": "no-such-prompt"}, -32602),
    ("prompts/get", {"name": "greet"}, -32602),
    ("prompts/get", {"name": "greet", "arguments": {"name": 5}}, -32602),
    ("subscriptions/listen", {}, -32602),
    ("example/double", {"number": "two"}, -32602),
]


def modern(test: Any) -> Any:
    """Run a test over every carrier, in the newest revision."""
    return pytest.mark.parametrize("carrier", CARRIERS)(pytest.mark.parametrize("revision", MODERN)(test))


@asynccontextmanager
async def connected(
    server: Server,
    revision: str = MODERN[0],
    *,
    pair: Callable[[], tuple[Channel, Channel]] = memory_pair,
    opened: bool = True,
    check: bool = True,
) -> AsyncIterator[WirePeer]:
    """One more connection to a server object that may have others; `pair` makes the two ends of the carrier."""
    near, far = pair()
    duplex = serve_channel(server, far)
    await duplex.open()
    peer = WirePeer(near, revision, "client")
    await near.open(peer)
    try:
        if opened:
            await peer.open()
        yield peer
        if check:
            peer.transcript.check()
    finally:
        await near.close()
        await duplex.close()


async def settled(peer: WirePeer) -> None:
    """A barrier for change notices: requests that go all the way in, where a ping is answered at the door.

    A request is answered in the turn of the loop that reads it; a notice takes some turns more from who changes to who
    listens to the wire, and as many requests as that must come behind it.
    """
    for _ in range(8):
        await peer.request("tools/list", {})


# --- listening ---


def same(one: Any, other: Any) -> bool:
    """Equal, and of the same JSON type: 1 is not "1"."""
    return type(one) is type(other) and one == other


def tag_of(frame: dict[str, Any]) -> Any:
    """The subscription a frame says it belongs to."""
    return frame.get("params", {}).get("_meta", {}).get(SUBSCRIPTION_KEY)


def tagged(peer: WirePeer, id: Any) -> list[dict[str, Any]]:
    """Every notification of one subscription, in the order of the wire."""
    return [frame for frame in peer.transcript.frames("server") if "method" in frame and same(tag_of(frame), id)]


async def hears(peer: WirePeer, fits: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The first frame that fits, be it heard already or still to come. It is taken, so the next call finds another."""
    while True:
        for frame in peer.heard:
            if fits(frame):
                peer.heard.remove(frame)
                return frame
        peer.heard.append(await peer.receive())


async def listen(
    peer: WirePeer, wanted: dict[str, Any], *, id: Any, meta: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Open a subscription; gives what the server acknowledges."""
    peer.send(peer.frame("subscriptions/listen", {"notifications": wanted}, id=id, meta=meta))
    frame = await hears(peer, lambda frame: frame.get("method") == ACKNOWLEDGED and same(tag_of(frame), id))
    return frame["params"]["notifications"]


async def change(peer: WirePeer, kind: str, *, tool: str = "change") -> None:
    """Change a list of the server `changing`; afterwards all it had to say about that has been heard."""
    await peer.result("tools/call", {"name": tool, "arguments": {"kind": kind}})
    await settled(peer)


async def touch(peer: WirePeer, uri: str, *, tool: str = "touch") -> None:
    await peer.result("tools/call", {"name": tool, "arguments": {"uri": uri}})
    await settled(peer)


def methods(frames: list[dict[str, Any]]) -> list[str]:
    return [frame["method"] for frame in frames]


def members_called(name: str, value: Any) -> Iterator[Any]:
    """Every member of that name, however deep."""
    if isinstance(value, dict):
        if name in value:
            yield value[name]
        for member in value.values():
            yield from members_called(name, member)
    elif isinstance(value, list):
        for item in value:
            yield from members_called(name, item)
