"""A server process over HTTP and connections to it made of bytes: no SDK between an experiment and the wire."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Mapping
from typing import Any

from .frames import HANDSHAKE, MODERN, call
from .lab import Lab, Problems
from .processes import descriptors, rss_mb, wait_until

__all__ = ["Cut", "WebServer", "Wire", "messages_in", "post", "posted", "verb"]

_START = 20.0  # seconds for the server to say where it is
_ANSWER = 20.0  # for anything to be answered: longer is a hang
_BACK = 15.0  # for everything that was used to be given back
_BLOCKS = 4_000  # of memory that may be in use for good: caches of what was seen for the first time


class Cut(Exception):
    """The server closed the connection where an answer was due."""


def post(frame: bytes, *, session: str | None = None, **more: str | None) -> bytes:
    """A message as a whole request; `more` are header lines, None takes one away."""
    message = json.loads(frame)
    lines: dict[str, str | None] = {
        "host": "127.0.0.1",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "content-length": str(len(frame)),
    }
    if session is None and "_meta" in message.get("params", {}):
        lines |= {"mcp-protocol-version": MODERN, "mcp-method": message["method"]}
        if message["method"] == "tools/call":
            lines["mcp-name"] = message["params"]["name"]
    return posted(frame, lines | {"mcp-session-id": session} | {key.replace("_", "-"): more[key] for key in more})


def posted(body: bytes, lines: Mapping[str, str | None], first: str = "POST /mcp HTTP/1.1") -> bytes:
    said = [f"{name}: {value}" for name, value in lines.items() if value is not None]
    return "\r\n".join([first, *said, "", ""]).encode("latin-1") + body


def verb(word: str, *, session: str | None = None, path: str = "/mcp", **more: str) -> bytes:
    lines: dict[str, str | None] = {"host": "127.0.0.1", "accept": "text/event-stream", "mcp-session-id": session}
    return posted(b"", {**lines, "mcp-protocol-version": HANDSHAKE, **more}, f"{word} {path} HTTP/1.1")


class Wire:
    """One connection."""

    number = 0
    session: str | None = None

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def to(cls, port: int, *, window: int | None = None) -> Wire:
        """`window` makes what our side takes unread small."""
        peer = socket.socket()
        peer.setblocking(False)
        if window is not None:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
        await asyncio.get_running_loop().sock_connect(peer, ("127.0.0.1", port))
        return cls(*await asyncio.open_connection(sock=peer, limit=window or 65536))

    def write(self, data: bytes) -> None:
        self.writer.write(data)

    async def head(self) -> tuple[int, dict[str, str]]:
        try:
            async with asyncio.timeout(_ANSWER):
                lines = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise Cut(f"cut before an answer: {error!r:.80}") from None
        pairs = [line.partition(": ")[::2] for line in lines[1:] if line]
        return int(lines[0][9:12]), {name.lower(): value for name, value in pairs}

    async def chunk(self, seconds: float = _ANSWER) -> bytes:
        """Empty at the end of the stream."""
        try:
            async with asyncio.timeout(seconds):
                size = int(await self.reader.readuntil(b"\r\n"), 16)
                return (await self.reader.readexactly(size + 2))[:-2]
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise Cut(f"a stream was cut: {error!r:.80}") from None

    async def answer(self) -> tuple[int, bytes]:
        """Status and body, whichever way it is framed."""
        status, headers = await self.head()
        if headers.get("transfer-encoding") == "chunked":
            body = b""
            while part := await self.chunk():
                body += part
            return status, body
        return status, await self.exactly(int(headers.get("content-length", 0)))

    async def exactly(self, length: int) -> bytes:
        """So many bytes of a body."""
        try:
            async with asyncio.timeout(_ANSWER):
                return await self.reader.readexactly(length)
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise Cut(f"an answer was cut: {error!r:.80}") from None

    async def rest(self, seconds: float = _ANSWER) -> bytes:
        """Everything until the server closes the connection."""
        async with asyncio.timeout(seconds):
            try:
                return await self.reader.read()
            except ConnectionError:
                return b""

    def reset(self) -> None:
        """Gone without a goodbye."""
        peer: Any = self.writer.get_extra_info("socket")
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    def half_close(self) -> None:
        self.writer.write_eof()

    async def close(self) -> None:
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except OSError:
            pass


def messages_in(part: bytes) -> list[Any]:
    """Of a piece of a stream: what was said together comes together, each message in one line."""
    return [json.loads(line[6:]) for line in part.split(b"\n") if line.startswith(b"data: ")]


class WebServer:
    """servers/web.py, or a `program` around it, in a process of its own. Use as an async context manager: at its end
    the process is gone."""

    def __init__(self, lab: Lab, name: str = "web", program: str = "web.py", **options: Any) -> None:
        self._errors = lab.folder / f"{name}.stderr"
        self._args = lab.plain(program, json.dumps(options))
        self._env = {**os.environ, **lab.marks("server")}
        self.before: dict[str, int] = {}
        self.rss = 0.0

    def ledger(self, path: Any) -> WebServer:
        self._env["FAULTLAB_LEDGER"] = str(path)
        return self

    async def __aenter__(self) -> WebServer:
        await asyncio.to_thread(self._start)
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", self.errors())
        if found is None:
            raise RuntimeError(f"the server did not start: {self.errors()[-400:]}")
        self.port = int(found[1])
        return self

    def _start(self) -> None:
        with open(self._errors, "wb") as errors:
            self._process = subprocess.Popen(self._args, stderr=errors, stdin=subprocess.DEVNULL, env=self._env)
        self.pid = self._process.pid
        wait_until(lambda: "serving at" in self.errors() or self._process.poll() is not None, _START)

    async def __aexit__(self, *_: object) -> None:
        if self._process.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
        self._process.wait()

    def errors(self) -> str:
        return self._errors.read_text("utf-8", "replace")

    def noise(self) -> list[str]:
        """What it logged beside its address."""
        return [line for line in self.errors().splitlines() if not line.startswith("interlock: serving at ")]

    async def wire(self, **how: Any) -> Wire:
        return await Wire.to(self.port, **how)

    async def ask(self, data: bytes) -> tuple[int, bytes]:
        """A request on a connection of its own."""
        wire = await self.wire()
        try:
            wire.write(data)
            return await wire.answer()
        finally:
            await wire.close()

    async def tool(self, name: str, **arguments: Any) -> Any:
        status, body = await self.ask(post(call(1, name, arguments)))
        result = json.loads(body)["result"]
        assert status == 200 and not result.get("isError"), body[:200]
        return result.get("structuredContent") or result["content"][0]["text"]

    # --- what it holds ----------------------------------------------------------------------------

    async def held(self) -> dict[str, int]:
        count = descriptors(self.pid)  # before there is a connection to ask on
        return {**await self.tool("inside"), "descriptors": count}

    async def remember(self) -> None:
        """What everything has to come back to; the second look, because the first one may begin something."""
        await self.held()
        await asyncio.sleep(0.2)
        self.before, self.rss = await self.held(), rss_mb(self.pid)

    async def back(self, problems: Problems, megabytes: float) -> str:
        """Wait until it holds no more than before, but for a few blocks of memory; gives what it holds then."""
        deadline = time.monotonic() + _BACK
        most = {**self.before, "blocks": self.before["blocks"] + _BLOCKS}
        now = await self.held()
        while time.monotonic() < deadline and any(now[name] > most[name] for name in now):
            await asyncio.sleep(0.1)
            now = await self.held()
        for name, count in now.items():
            problems.require(count <= most[name], f"{name}: {self.before[name]} before, {count} after")
        grown = rss_mb(self.pid) - self.rss
        problems.require(grown <= megabytes, f"RSS grew by {grown:.1f} MB (bound {megabytes:g})")
        noise = self.noise()
        problems.require(not noise, f"logged: {noise[:3]!r:.300}")
        blocks = now.pop("blocks") - self.before["blocks"]
        held = ", ".join(f"{count} {name}" for name, count in now.items())
        return f"then {held}, {blocks:+,} blocks of memory, RSS {grown:+.1f} MB"

    async def stop(self, seconds: float) -> tuple[int | None, float]:
        """SIGTERM; the exit code, None for a hang, and how long it took."""
        started = time.monotonic()
        self._process.send_signal(signal.SIGTERM)
        await asyncio.to_thread(wait_until, lambda: self._process.poll() is not None, seconds)
        return self._process.poll(), time.monotonic() - started
