"""A real HTTP server of ours on a free port, and a client made of bytes.

async with served(app) as url:
    async with connection(url) as raw:
        raw.write(http(frame))
        answer = await raw.response()         # .status, .headers, .body
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from interlock.transport.http.runner.serve import bind, serve_http

from .asgi import headers_of

__all__ = ["Raw", "Response", "connection", "find_free_port", "http", "served", "wait_until_listening"]

WAIT = 20.0
START_TIMEOUT = 60.0


@asynccontextmanager
async def served(
    app: Any, *, port: int = 0, drain: float = 5.0, connections: int = 4096, **more: Any
) -> AsyncIterator[int]:
    """The port it listens on. Stopped at the end, whatever happens."""
    listener, stop = bind("127.0.0.1", port), asyncio.Event()
    port = listener.getsockname()[1]
    options: Any = {"drain": drain, "connections": connections, "stop": stop, **more}
    serving = asyncio.get_running_loop().create_task(serve_http(app, listener, **options))
    try:
        yield port
    finally:
        stop.set()
        async with asyncio.timeout(WAIT):
            await serving
        listener.close()


def find_free_port() -> int:
    """For a program of others, which must be told its port."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


async def wait_until_listening(process: asyncio.subprocess.Process, port: int) -> None:
    """Wait for a program that was just started; the error is what it wrote to stderr, which must be a pipe."""
    async with asyncio.timeout(START_TIMEOUT):
        while process.returncode is None:
            try:
                async with connection(port):
                    return
            except OSError:
                await asyncio.sleep(0.05)
    assert process.stderr is not None
    raise AssertionError((await process.stderr.read()).decode())


def http(
    frame: Any, changes: Mapping[str, str | None] | None = None, *, target: str = "/mcp", verb: str = "POST"
) -> bytes:
    """A request as bytes; the names of `changes` go out as they are written."""
    body = frame if isinstance(frame, bytes) else json.dumps(frame).encode()
    lines = [f"{verb} {target} HTTP/1.1".encode()]
    lines += [
        name + b": " + value for name, value in headers_of(frame, {"content-length": str(len(body)), **(changes or {})})
    ]
    return b"\r\n".join([*lines, b"", body])


class Response:
    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> Any:
        return self.json["error"]


class Raw:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self._events: list[Any] = []  # that came together with one that was wanted

    def write(self, data: bytes) -> None:
        self.writer.write(data)

    async def head(self) -> tuple[int, dict[str, str]]:
        async with asyncio.timeout(WAIT):
            lines = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        pairs = [line.split(": ", 1) for line in lines[1:] if line]
        return int(lines[0].split(" ")[1]), {name.lower(): value for name, value in pairs}

    async def chunk(self) -> bytes:
        """One chunk of a chunked body; empty at its end."""
        async with asyncio.timeout(WAIT):
            size = int(await self.reader.readline(), 16)
            return (await self.reader.readexactly(size + 2))[:-2]

    async def event(self) -> Any:
        """The next event of a stream that has a message in it."""
        while not self._events:
            data = await self.chunk()
            if not data:
                raise EOFError
            self._events += [json.loads(line[6:]) for line in data.split(b"\n") if line.startswith(b"data: ")]
        return self._events.pop(0)

    async def response(self) -> Response:
        status, headers = await self.head()
        if headers.get("transfer-encoding") == "chunked":
            body = b""
            while part := await self.chunk():
                body += part
            return Response(status, headers, body)
        async with asyncio.timeout(WAIT):
            return Response(status, headers, await self.reader.readexactly(int(headers["content-length"])))

    async def ended(self) -> bytes:
        """What still came before the server closed the connection."""
        async with asyncio.timeout(WAIT):
            return await self.reader.read()

    async def close(self) -> None:
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except OSError:
            pass


@asynccontextmanager
async def connection(port: int, source: str | None = None) -> AsyncIterator[Raw]:
    """`source` is the address that it comes from."""
    local = None if source is None else (source, 0)
    raw = Raw(*await asyncio.open_connection("127.0.0.1", port, local_addr=local))
    try:
        yield raw
    finally:
        await raw.close()
