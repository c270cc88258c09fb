"""A server of the handshake era in the test's hand, which dies, goes deaf and comes back as it is told."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from interlock import Client
from interlock.protocol.client.probe import Verdicts
from interlock.wire.errors import ConnectionEnded, ConnectionLost, PeerClosed
from support.doubles import Channel

__all__ = ["Mortal"]

CAPABILITIES = {"tools": {}, "resources": {"subscribe": True}, "logging": {}}


class Mortal:
    """Calling it makes a connection, as a target does. `silent` holds methods that get no answer."""

    def __init__(self) -> None:
        self.made = 0
        self.refused = 0
        """So many connections are refused from now on."""
        self.silent: set[str] = set()
        self.refuses: set[str] = set()
        """Methods that get an error."""
        self.kills: set[str] = set()
        """Methods under which it dies."""
        self.heard: list[tuple[int, str, Any]] = []
        self.tools: list[dict[str, Any]] = []
        self.delivered: int | None = None
        self.channel: Channel | None = None

    def client(self, **options: Any) -> Client:
        options = {"revision": "2025-11-25", "verdicts": Verdicts(), **options}
        return Client(self, **options)

    def methods(self, connection: int | None = None) -> list[str]:
        return [method for number, method, _ in self.heard if connection in (None, number)]

    def __call__(self) -> Channel:
        self.made += 1
        if self.refused:
            self.refused -= 1
            raise ConnectionLost("nobody there")
        channel = self.channel = Channel()
        channel.delivered = self.delivered
        channel.on_send = lambda message: self._hear(channel, json.loads(message))
        return channel

    def die(self, how: ConnectionEnded | None = None) -> None:
        assert self.channel is not None
        self.channel.receiver.ended(how or PeerClosed("killed", exit_code=-9, stderr="last words"))

    def _hear(self, channel: Channel, message: dict[str, Any]) -> None:
        method = message["method"]
        self.heard.append((self.made, method, message.get("params")))
        if "id" not in message or method in self.silent:
            return
        if method in self.kills:
            asyncio.get_running_loop().call_soon(self.die)
            return
        told: dict[str, Any] = {"error": {"code": -32000, "message": "no"}}
        if method not in self.refuses:
            told = {"result": self._result(method)}
        answer = json.dumps({"jsonrpc": "2.0", "id": message["id"], **told}).encode()
        asyncio.get_running_loop().call_soon(channel.receiver.received, answer)

    def _result(self, method: str) -> dict[str, Any]:
        info = {"name": "mortal", "version": str(self.made)}
        return {
            "initialize": {"protocolVersion": "2025-11-25", "capabilities": CAPABILITIES, "serverInfo": info},
            "tools/list": {"tools": self.tools},
            "tools/call": {"content": [{"type": "text", "text": str(self.made)}]},
            "resources/list": {"resources": []},
        }.get(method, {})
