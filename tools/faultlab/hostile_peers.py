"""Carriers for the scripts of hostility.py: memory, stdio, both eras of Streamable HTTP, and HTTP+SSE.

Written on plain sockets and without anything of the client under test: what they say is bytes.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from interlock import Command
from interlock.wire.errors import PeerClosed

from .hostility import Act, Script, play

__all__ = ["CARRIERS", "hostile"]

CARRIERS = {
    "memory, handshake": "handshake",
    "memory, stateless": "stateless",
    "stdio, handshake": "handshake",
    "stdio, stateless": "stateless",
    "http, handshake": "handshake",
    "http, stateless": "stateless",
    "sse": "handshake",
}
"""By name, with the era that is spoken there."""
_SERVER = Path(__file__).parent / "servers" / "hostile.py"


@asynccontextmanager
async def hostile(carrier: str, script: Script, env: dict[str, str] | None = None) -> AsyncIterator[Any]:
    """A target for a client, behind which that script is played."""
    if carrier.startswith("memory"):
        yield lambda: _Memory(script)
    elif carrier.startswith("stdio"):
        words = [sys.executable, "-S", "-E", str(_SERVER), *script]
        yield Command.of(words, env=env, close_seconds=0.1, terminate_seconds=0.1)
    else:
        async with _Http(script, sse=carrier == "sse") as url:
            yield url


class _Memory:
    """A channel whose other end is the script; every connection is a new one."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._receiver: Any = None
        self._deaf = self._over = False
        self.backlog = 0
        self.delivered = None

    async def open(self, receiver: Any) -> None:
        self._receiver = receiver

    def send(self, message: bytes) -> int | None:
        if not self._deaf and not self._over:
            for act in play(self._script, json.loads(message)):
                asyncio.get_running_loop().call_soon(self._do, act)
        return None

    def _do(self, act: Act) -> None:
        if self._deaf or self._over:
            return
        if act.what == "end":
            self._end(PeerClosed("the script ended it"))
        elif act.what == "hold":
            self._deaf = True
        else:
            self._receiver.received(act.data)

    def _end(self, error: Any) -> None:
        if not self._over:
            self._over = True
            self._receiver.ended(error)

    async def drain(self) -> None: ...

    async def close(self) -> None:
        if self._receiver is not None:
            self._end(PeerClosed("closed"))


class _Http:
    """One endpoint; with `sse` only the transport of 2024-11-05."""

    def __init__(self, script: Script, *, sse: bool) -> None:
        self._script, self._sse = script, sse
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._streams: list[asyncio.StreamWriter] = []

    async def __aenter__(self) -> str:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/mcp"

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=10)
        await self._server.wait_closed()
        await asyncio.sleep(0)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while True:
                await self._request(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            with suppress(RuntimeError):  # the loop is closed already
                writer.transport.abort()

    async def _request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        verb, path, _ = head[0].split(" ")
        lengths = [line.partition(":")[2] for line in head if line.lower().startswith("content-length:")]
        body = await reader.readexactly(int(lengths[0]) if lengths else 0)
        if verb == "GET" and self._sse:
            await self._stream(reader, writer)
        elif verb != "POST" or (self._sse and path == "/mcp"):
            writer.write(_whole(200 if verb == "DELETE" else 405, b""))
        elif self._sse:
            writer.write(_whole(202, b""))
            await self._on_stream(json.loads(body))
        else:
            await self._answer(writer, json.loads(body))
        await writer.drain()

    # --- Streamable HTTP ---

    async def _answer(self, writer: asyncio.StreamWriter, message: dict[str, Any]) -> None:
        acts = play(self._script, message)
        said = [act.data for act in acts if act.what == "say"]
        part = [act.data for act in acts if act.what == "part"]
        if part:
            writer.write(_head(200, len(part[0]) * 2) + part[0])
        elif len(said) > 1:
            writer.write(_CHUNKED + b"".join(_event(data) for data in said) + b"0\r\n\r\n")
        elif said:
            refused = b'"error"' in said[0] and message.get("method") == "server/discover"
            session = "Mcp-Session-Id: s1" if message.get("method") == "initialize" else "X-Nothing: 1"
            writer.write(_whole(400 if refused else 200, said[0], session))
        elif not acts:
            writer.write(_whole(202, b""))
        await writer.drain()
        await self._then(acts, writer, holds=not said)

    async def _then(self, acts: list[Act], writer: asyncio.StreamWriter, *, holds: bool) -> None:
        if any(act.what == "end" for act in acts):
            raise ConnectionResetError
        if holds and any(act.what == "hold" for act in acts):
            await asyncio.Event().wait()

    # --- HTTP+SSE ---

    async def _stream(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(_CHUNKED + _chunk(b"event: endpoint\ndata: /messages\n\n"))
        self._streams.append(writer)
        try:
            while await reader.read(65536):
                pass
        finally:
            self._streams.remove(writer)
        raise ConnectionResetError

    async def _on_stream(self, message: dict[str, Any]) -> None:
        for act in play(self._script, message):
            for stream in [*self._streams]:
                if act.what == "end":
                    stream.transport.abort()
                elif act.what != "hold":
                    with suppress(OSError):
                        stream.write(_event(act.data) if act.what == "say" else _chunk(b"data: " + act.data))
                        await stream.drain()


_CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/event-stream\r\n\r\n"


def _head(status: int, length: int, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} Something", f"Content-Length: {length}", "Content-Type: application/json", *headers]
    return "\r\n".join([*lines, "", ""]).encode()


def _whole(status: int, body: bytes, *headers: str) -> bytes:
    return _head(status, len(body), *headers) + body


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def _event(data: bytes) -> bytes:
    return _chunk(b"data: " + data.replace(b"\n", b" ") + b"\n\n")
