"""Ways of talking to a handshake server by hand that several behaviour files share."""

from __future__ import annotations

import json
from typing import Any

from support.wire_peer import WirePeer

__all__ = ["answered", "barrier", "call", "can", "hello", "said_to", "together", "flat"]


def can(revision: str) -> dict[str, Any]:
    """Everything a client of the revision may declare that a server asks for."""
    declared: dict[str, Any] = {"roots": {"listChanged": True}, "sampling": {}}
    return declared | ({"elicitation": {}} if revision >= "2025-06-18" else {})


def hello(version: Any, **more: Any) -> dict[str, Any]:
    """Params of `initialize`."""
    return {
        "protocolVersion": version,
        "capabilities": {},
        "clientInfo": {"name": "raw", "version": "1"},
    } | more


def call(peer: WirePeer, name: str, arguments: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
    """A `tools/call` frame."""
    return peer.frame("tools/call", {"name": name, "arguments": arguments or {}}, **options)


def together(peer: WirePeer, *frames: Any, judged: bool = True) -> None:
    """Send all frames in one write, so that the server finds them in one read."""
    for frame in frames:
        peer.transcript.sent(frame, sender="client", judged=judged)
        peer.channel.send(json.dumps(frame).encode())


async def barrier(peer: WirePeer) -> None:
    """A request answered by the edge, and as many by a handler as turns of the loop that a notice may take to the wire:
    whatever was to be said before was said."""
    await peer.request("ping")
    for _ in range(6):
        await peer.request("tools/list", {})


async def answered(peer: WirePeer, id: Any) -> dict[str, Any]:
    """The response of that id, which may have come already."""
    for frame in peer.heard:
        if isinstance(frame, dict) and frame.get("id") == id and type(frame.get("id")) is type(id):
            return frame
    return await peer.response(id)


async def said_to(peer: WirePeer, line: bytes) -> list[Any]:
    """Send a line and give back everything the server said to it."""
    mark = len(peer.heard)
    peer.send(line)
    await barrier(peer)
    return peer.heard[mark:]


def flat(frames: list[Any]) -> list[dict[str, Any]]:
    """Frames with the arrays among them taken apart."""
    return [part for frame in frames for part in (frame if isinstance(frame, list) else [frame])]
