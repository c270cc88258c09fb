"""A server as a child process with nothing of ours on this side: bytes in, bytes out, its exit.

async with raw_process(RUN, "basic") as child:
    child.write(opening("2025-06-18"))
    frames = await child.finish()           # closes stdin, reads everything, waits for the exit
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

from support.wire_peer import CAPABILITIES_KEY, CLIENT_KEY, MODERN, VERSION_KEY, WAIT

__all__ = ["SERVERS", "RawProcess", "call", "command", "line", "opening", "raw_process", "request"]

SERVERS = Path(__file__).parent / "servers"
CLIENT = {"name": "raw", "version": "1"}


def command(server: str | Path) -> list[str]:
    """`interlock run` of a file, or of a name in support/servers."""
    path = server if isinstance(server, Path) else SERVERS / f"{server}.py"
    return [sys.executable, "-m", "interlock", "run", str(path)]


def line(frame: Any) -> bytes:
    return json.dumps(frame).encode() + b"\n"


def request(revision: str, id: Any, method: str, params: Mapping[str, Any] | None = None, **meta: Any) -> bytes:
    """A request of that revision as a line; `meta` goes into `_meta`."""
    if revision in MODERN:
        meta = {VERSION_KEY: revision, CAPABILITIES_KEY: {}, CLIENT_KEY: CLIENT, **meta}
    members = {**(params or {}), **({"_meta": meta} if meta else {})}
    return line({"jsonrpc": "2.0", "id": id, "method": method, **({"params": members} if members else {})})


def call(revision: str, id: Any, tool: str, arguments: Mapping[str, Any] | None = None, **meta: Any) -> bytes:
    return request(revision, id, "tools/call", {"name": tool, "arguments": dict(arguments or {})}, **meta)


def opening(revision: str) -> bytes:
    """What a client of that revision says first; its one answer has the id "open"."""
    if revision in MODERN:
        return request(revision, "open", "server/discover")
    hello = {"protocolVersion": revision, "capabilities": {}, "clientInfo": CLIENT}
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    return request(revision, "open", "initialize", hello) + line(ready)


class RawProcess:
    """The child and what it said so far: `frames` of stdout, `errors` of stderr."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.frames: list[Any] = []
        self.raw: list[bytes] = []
        self._stderr = asyncio.get_running_loop().create_task(_drain(process.stderr))

    def write(self, data: bytes) -> Self:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        return self

    async def drain(self) -> None:
        assert self.process.stdin is not None
        await self.process.stdin.drain()

    def close_stdin(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    async def read(self) -> Any:
        """The next message. Anything on stdout that is no JSON fails the test here."""
        assert self.process.stdout is not None, "its stdout goes elsewhere"
        async with asyncio.timeout(WAIT):
            found = await self.process.stdout.readline()
        if not found:
            raise EOFError
        assert found.endswith(b"\n"), f"the last line is cut off: {found[:200]!r}"
        self.raw.append(found)
        self.frames.append(json.loads(found))
        return self.frames[-1]

    async def answer(self, id: Any) -> Any:
        """Read until the response with that id."""
        while True:
            frame = await self.read()
            if isinstance(frame, dict) and "method" not in frame and frame.get("id") == id:
                return frame

    async def notice(self, method: str) -> Any:
        while True:
            frame = await self.read()
            if isinstance(frame, dict) and frame.get("method") == method:
                return frame

    async def rest(self) -> list[Any]:
        """Everything up to the end of stdout; all frames there were."""
        assert self.process.stdout is not None, "its stdout goes elsewhere"
        async with asyncio.timeout(4 * WAIT):
            data = await self.process.stdout.read()
        assert data.endswith(b"\n") or not data, f"the last line is cut off: {data[-200:]!r}"
        found = data.split(b"\n")[:-1]  # not splitlines(): a carriage return is no end of a message
        self.raw += [each + b"\n" for each in found]
        self.frames += map(json.loads, found)
        return self.frames

    async def exit_code(self) -> int:
        async with asyncio.timeout(WAIT):
            return await self.process.wait()

    async def finish(self) -> list[Any]:
        """Close stdin, read to the end, see it exit with 0."""
        self.close_stdin()
        frames = await self.rest()
        assert await self.exit_code() == 0, await self.stderr()
        return frames

    async def stderr(self) -> str:
        """All of stderr; the process must have ended."""
        return (await self._stderr).decode("utf-8", "replace")

    def answers(self, id: Any) -> list[Any]:
        return [
            frame
            for frame in self.frames
            if isinstance(frame, dict) and "method" not in frame and frame.get("id") == id
        ]


async def _drain(stream: asyncio.StreamReader | None) -> bytes:
    return await stream.read() if stream is not None else b""


@asynccontextmanager
async def raw_process(
    args: Sequence[str],
    *,
    stdin: Any = asyncio.subprocess.PIPE,
    stdout: Any = asyncio.subprocess.PIPE,
    env: Mapping[str, str] | None = None,
) -> AsyncIterator[RawProcess]:
    """Start it; whatever happens inside, it is gone afterwards."""
    process = await asyncio.create_subprocess_exec(
        *args,
        stdin=stdin,
        stdout=stdout,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **(env or {})},
        limit=2**26,
    )
    child = RawProcess(process)
    try:
        yield child
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        await child._stderr
        process._transport.close()  # type: ignore[attr-defined]  # the pipes of a test that failed half way
        await asyncio.sleep(0)
        for thread in threading.enumerate():
            if thread.name.startswith("asyncio-waitpid"):  # it has reported the exit and is about to end
                thread.join()
