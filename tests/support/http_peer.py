"""A scripted HTTP/1.1 server on a real socket: what it says is written byte by byte by the test.

It shares no code with the client under test: requests are cut at their Content-Length, responses are plain bytes.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

__all__ = [
    "HttpPeer",
    "Request",
    "Stream",
    "DISCOVERY",
    "answer",
    "chunked",
    "chunk",
    "discovery",
    "event",
    "events",
    "http",
    "notice",
    "refusal",
    "result",
    "server",
]

NEWEST = "2026-07-28"
WAIT = 20.0


class Request:
    """One request as it came."""

    def __init__(self, line: str, headers: list[tuple[str, str]], body: bytes, connection: int) -> None:
        self.verb, self.path, self.protocol = line.split(" ")
        self.headers, self.body, self.connection = headers, body, connection

    @property
    def message(self) -> Any:
        return json.loads(self.body)

    @property
    def method(self) -> str:
        """Of its message; an answer of the client's is an "answer", and a request without a message its verb."""
        return self.message.get("method", "answer") if self.body else self.verb

    @property
    def params(self) -> Any:
        return self.message.get("params", {})

    @property
    def id(self) -> Any:
        return self.message.get("id")

    def header(self, name: str) -> str | None:
        """Its value, whatever the case of its name; two lines of one name are a mistake of the client."""
        found = [value for each, value in self.headers if each.lower() == name.lower()]
        assert len(found) < 2, f"{name} came {len(found)} times"
        return found[0] if found else None


class Stream:
    """The connection a request came on."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def write(self, data: bytes, *, cut: int | None = None) -> None:
        """Send it, in pieces of `cut` bytes that reach the peer one by one."""
        for start in range(0, len(data), cut or len(data) or 1):
            self.writer.write(data[start : start + (cut or len(data))])
            await self.writer.drain()
            if cut is not None:
                await asyncio.sleep(0)

    def close(self) -> None:
        self.writer.close()

    def reset(self) -> None:
        """Gone without a goodbye."""
        self.writer.transport.abort()

    async def gone(self) -> None:
        """Wait until the client has closed its end."""
        async with asyncio.timeout(WAIT):
            try:
                while await self.reader.read(65536):
                    pass
            except ConnectionError:
                pass


Script = Callable[[Request, Stream], Any]


class HttpPeer:
    """Every request is kept in `requests` and handed to `script`, which answers with bytes or writes them itself."""

    def __init__(self, script: Script, *, read: bool = True, tls: ssl.SSLContext | None = None) -> None:
        self.script, self.read, self.tls = script, read, tls
        self.requests: list[Request] = []
        self.connections = 0
        self.failures: list[BaseException] = []
        self.port = 0
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"http{'s' if self.tls else ''}://127.0.0.1:{self.port}/mcp"

    @property
    def methods(self) -> list[str]:
        return [request.method for request in self.requests]

    async def __aenter__(self) -> HttpPeer:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()
        if self.failures:
            raise self.failures[0]

    async def start(self) -> None:
        """Listen; after `stop` on the same port again."""
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port, ssl=self.tls)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=WAIT)
        await self._server.wait_closed()
        await asyncio.sleep(0)  # sockets that were given up are closed in the next turn

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            await self._talk(Stream(reader, writer), self.connections)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        except BaseException as failure:
            self.failures.append(failure)
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _talk(self, stream: Stream, number: int) -> None:
        while not stream.writer.is_closing():
            request = await _read(stream.reader, number) if self.read else None
            if request is not None:
                self.requests.append(request)
            given = self.script(request, stream)  # type: ignore[arg-type]
            if inspect.isawaitable(given):
                given = await given
            if given is not None:
                await stream.write(given)


async def _read(reader: asyncio.StreamReader, number: int) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    line, *rest = head.removesuffix("\r\n\r\n").split("\r\n")
    headers = [(name, value.strip(" \t")) for name, _, value in (each.partition(":") for each in rest)]
    length = next((int(value) for name, value in headers if name.lower() == "content-length"), 0)
    return Request(line, headers, await reader.readexactly(length), number)


# --- responses as bytes ---


def http(status: int, body: bytes = b"", *headers: str, kind: str | None = "application/json") -> bytes:
    """A whole response with a Content-Length."""
    lines = [f"HTTP/1.1 {status} Something", f"Content-Length: {len(body)}", *headers]
    if kind is not None and body:
        lines.append(f"Content-Type: {kind}")
    return "\r\n".join([*lines, "", ""]).encode() + body


def answer(request: Request, members: Any, status: int = 200) -> bytes:
    """A JSON response with these members beside jsonrpc and id."""
    return http(status, json.dumps({"jsonrpc": "2.0", "id": request.id, **members}).encode())


def result(request: Request, found: Any) -> bytes:
    return answer(request, {"result": {"resultType": "complete", **found}})


def refusal(request: Request, code: int, status: int = 400, data: Any = None, message: str = "no") -> bytes:
    told = {"code": code, "message": message} | ({} if data is None else {"data": data})
    return answer(request, {"error": told}, status)


def chunked(kind: str = "text/event-stream", *headers: str) -> bytes:
    """The head of a response whose body comes in chunks."""
    lines = ["HTTP/1.1 200 OK", "Transfer-Encoding: chunked", f"Content-Type: {kind}", *headers]
    return "\r\n".join([*lines, "", ""]).encode()


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def event(message: Any) -> bytes:
    return b"data: " + json.dumps(message).encode() + b"\n\n"


def notice(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def events(request: Request, *before: Any, found: Any = None) -> bytes:
    """A whole stream: notifications, then the result."""
    final = {"jsonrpc": "2.0", "id": request.id, "result": {"resultType": "complete", **(found or {})}}
    return chunked() + chunk(b"".join(event(each) for each in (*before, final))) + b"0\r\n\r\n"


# --- a small stateless server ---


def discovery(*versions: str, **capabilities: Any) -> dict[str, Any]:
    return {
        "resultType": "complete",
        "supportedVersions": list(versions or (NEWEST,)),
        "capabilities": capabilities or {"tools": {}, "resources": {}, "prompts": {}},
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "peer", "version": "3"}},
    }


DISCOVERY = discovery()


def server(**methods: Callable[[Request, Stream], bytes | Awaitable[bytes | None] | None] | Any) -> Script:
    """Answers `server/discover` itself, the others by name (`tools_call` for tools/call): a script or a result."""

    def script(request: Request, stream: Stream) -> Any:
        given = methods.get(request.method.replace("/", "_"))
        if given is None:
            return result(request, DISCOVERY) if request.method == "server/discover" else refusal(request, -32601, 404)
        return given(request, stream) if callable(given) else result(request, given)

    return script
