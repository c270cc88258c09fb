"""A resolver that says what a test wants, and a record of every address that somebody connects to.

Nothing leaves the machine: a connection that does not go to 127.0.0.1 is written down and refused.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

__all__ = ["Names"]


class Names:
    """On the running loop. A name has one list of addresses, or several of which each question gets the next."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, names: dict[str, list[Any]] | None = None) -> None:
        self.names = names or {}
        self.asked: list[str] = []
        self.connected: list[str] = []
        self._loop = asyncio.get_running_loop()
        self._connect = self._loop.sock_connect
        monkeypatch.setattr(self._loop, "getaddrinfo", self._resolve)
        monkeypatch.setattr(self._loop, "sock_connect", self._watched)

    async def _resolve(self, host: Any, port: Any, **_: Any) -> list[Any]:
        self.asked.append(host)
        given = self.names.get(host)
        if given is None:  # numbers in any spelling; never a question to the network
            return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
        if isinstance(given[0], list):
            given = given.pop(0) if len(given) > 1 else given[0]
        return [_info(address, port) for address in given]

    async def _watched(self, sock: socket.socket, address: Any) -> None:
        self.connected.append(address[0])
        if address[0] != "127.0.0.1":
            raise ConnectionRefusedError(111, "nobody there")
        await self._connect(sock, address)


def _info(address: str, port: Any) -> Any:
    six = ":" in address
    where = (address, port, 0, 0) if six else (address, port)
    return socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", where
