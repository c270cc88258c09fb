"""A peer made of raw frames, for either side: says exactly what a test wants, records everything that is said.

    async with server_under_test("stdio", "2025-06-18") as peer:      # a real server, spoken to by hand
        answer = await peer.request("tools/list")

    async with client_under_test("memory", script) as client: ...      # a real Client, answered by `script(peer)`

Every frame goes into a transcript, which the official schema of the revision judges at the end.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from interlock import Client, Command
from interlock.protocol.server.router import ServerSide
from interlock.revisions.table import REVISIONS
from interlock.transport.jsonrpc.connection import Duplex
from interlock.transport.memory import memory_pair
from interlock.transport.stdio.child_process import ChildChannel
from interlock.wire.channel import Channel
from interlock.wire.errors import ConnectionEnded
from interlock.wire.limits import DEFAULT_LIMITS, Limits

from . import warm
from .transcripts import Transcript
from .warm_channel import WarmChannel

HERE = Path(__file__).parent
CARRIERS = ("memory", "stdio")
ALL = tuple(REVISIONS)
HANDSHAKE = ALL[:-1]
MODERN = ALL[-1:]
WAIT = 20.0  # seconds until a frame that never comes is reported

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
CLIENT_KEY = "io.modelcontextprotocol/clientInfo"


class WirePeer:
    """One end of a channel, driven by hand. `heard` keeps what came beside the awaited answers."""

    def __init__(self, channel: Channel, revision: str, role: str) -> None:
        self.channel = channel
        self.revision = revision
        self.role = role  # "client" or "server": whose part it plays
        self.other = "server" if role == "client" else "client"
        self.transcript = Transcript(revision)
        self.inbox: asyncio.Queue[Any] = asyncio.Queue()
        self.heard: list[dict[str, Any]] = []
        self.raw: list[bytes] = []
        self.end: ConnectionEnded | None = None
        self.ended_event = asyncio.Event()
        self.capabilities: dict[str, Any] = {}
        self._ids = 0

    # what the channel calls
    def received(self, message: bytes) -> None:
        self.raw.append(message)
        frame = json.loads(message)
        self.transcript.sent(frame, sender=self.other)
        self.inbox.put_nowait(frame)

    def oversized(self, beginning: bytes, size: int) -> None:
        raise AssertionError(f"a message of {size} bytes")

    def ended(self, error: ConnectionEnded) -> None:
        self.end = error
        self.ended_event.set()

    # what a test says
    def send(self, frame: dict[str, Any] | list[Any] | bytes, *, judged: bool | None = None) -> None:
        """Send a frame, or bytes as they are. Bytes are not judged by the schema unless told so."""
        data = frame if isinstance(frame, bytes) else json.dumps(frame).encode()
        if judged is None:
            judged = not isinstance(frame, bytes)
        try:
            self.transcript.sent(json.loads(data), sender=self.role, judged=judged)
        except (ValueError, RecursionError):
            pass  # no JSON: nothing a schema could judge
        self.channel.send(data)

    def next_id(self) -> int:
        self._ids += 1
        return self._ids

    def notify(self, method: str, params: dict[str, Any] | None = None, *, judged: bool | None = None) -> None:
        self.send(
            {"jsonrpc": "2.0", "method": method} | ({"params": params} if params is not None else {}), judged=judged
        )

    def frame(
        self, method: str, params: dict[str, Any] | None = None, *, id: Any = None, meta: Any = None
    ) -> dict[str, Any]:
        """A request as a client of this revision makes it: with the per-request envelope where there is one."""
        id = self.next_id() if id is None else id
        params = dict(params) if params is not None else None
        envelope = self.envelope() if self.revision in MODERN else {}
        if envelope or meta:
            params = {**(params or {}), "_meta": {**envelope, **(meta or {})}}
        frame = {"jsonrpc": "2.0", "id": id, "method": method}
        return frame | ({"params": params} if params is not None else {})

    def envelope(self) -> dict[str, Any]:
        return {
            VERSION_KEY: self.revision,
            CAPABILITIES_KEY: self.capabilities,
            CLIENT_KEY: {"name": "raw", "version": "1"},
        }

    async def request(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        id: Any = None,
        meta: Any = None,
        judged: bool = True,
    ) -> dict[str, Any]:
        """Send a request and wait for its response; everything else that comes goes to `heard`."""
        frame = self.frame(method, params, id=id, meta=meta)
        self.send(frame, judged=judged)
        return await self.response(frame["id"])

    async def result(self, method: str, params: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
        answer = await self.request(method, params, **options)
        assert "result" in answer, answer
        return answer["result"]

    async def error(self, method: str, params: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
        answer = await self.request(method, params, **options)
        assert "error" in answer, answer
        return answer["error"]

    async def response(self, id: Any) -> dict[str, Any]:
        while True:
            frame = await self.receive()
            if (
                isinstance(frame, dict)
                and "method" not in frame
                and frame.get("id") == id
                and type(frame.get("id")) is type(id)
            ):
                return frame
            self.heard.append(frame)

    async def receive(self) -> Any:
        """The next frame of the other side, who gets a turn to do what it has to, answered or not."""
        await asyncio.sleep(0)
        async with asyncio.timeout(WAIT):
            return await self.inbox.get()

    async def expect(self, method: str) -> dict[str, Any]:
        """Wait for the next request or notification of that method."""
        while True:
            frame = await self.receive()
            if frame.get("method") == method:
                return frame
            self.heard.append(frame)

    async def settle(self) -> None:
        """A barrier, not a sleep: whatever the other side had to say before it is in `heard` afterwards."""
        if self.revision in MODERN:
            await self.request("server/discover", {})
        else:
            await self.request("ping")

    async def open(self, capabilities: dict[str, Any] | None = None, *, initialized: bool = True) -> dict[str, Any]:
        """Introduce ourselves as a client of the revision; gives what the server said about itself."""
        self.capabilities = capabilities or {}
        if self.revision in MODERN:
            return await self.result("server/discover", {})
        hello = {
            "protocolVersion": self.revision,
            "capabilities": self.capabilities,
            "clientInfo": {"name": "raw", "version": "1"},
        }
        found = await self.result("initialize", hello)
        if initialized:
            self.notify("notifications/initialized")
        return found

    def notices(self, method: str) -> list[dict[str, Any]]:
        """The notifications of that method heard so far."""
        return [frame.get("params", {}) for frame in self.heard if frame.get("method") == method]


@asynccontextmanager
async def server_under_test(
    carrier: str,
    revision: str,
    *,
    server: str = "basic",
    capabilities: dict[str, Any] | None = None,
    opened: bool = True,
    initialized: bool = True,
    limits: Limits = DEFAULT_LIMITS,
    check: bool = True,
) -> AsyncIterator[WirePeer]:
    """A real server of ours behind a carrier; `server` names a file in support/servers."""
    if carrier == "memory":
        module = fresh(f"support.servers.{server}")
        near, far = memory_pair()
        side = ServerSide(module.server, module.server.rows, strict=module.server.strict, asker=module.server.asker)
        duplex = Duplex(far, side, limits)
        side.attach(duplex)
        far.attach(duplex)
        channel: Channel = near
    else:
        path = HERE / "servers" / f"{server}.py"
        words = [sys.executable, "-m", "interlock", "run", str(path)]
        channel = WarmChannel(path) if warm.available() else ChildChannel(Command.of(words))
    peer = WirePeer(channel, revision, "client")
    await channel.open(peer)
    try:
        if opened:
            await peer.open(capabilities, initialized=initialized)
        yield peer
        if check:
            peer.transcript.check(allow_missing_id=True)
    finally:
        await channel.close()
        if carrier == "memory":
            await duplex.close()


def fresh(name: str) -> Any:
    """A module imported anew, so that no test sees another's state."""
    sys.modules.pop(name, None)
    return importlib.import_module(name)


Script = Callable[[WirePeer], Awaitable[None]]


@asynccontextmanager
async def client_under_test(
    carrier: str, revision: str, script: Script, /, *, check: bool = True, **options: Any
) -> AsyncIterator[tuple[Client, WirePeer]]:
    """A real Client of ours, not yet opened, whose server is `script`, run in this process.

    Over stdio the client starts a real child, which only relays its streams to this process.
    """
    peers: list[WirePeer] = []
    scripts: set[asyncio.Task[None]] = set()

    async def serve(channel: Channel) -> None:
        peer = WirePeer(channel, revision, "server")
        peers.append(peer)
        await channel.open(peer)
        task = asyncio.get_running_loop().create_task(_play(script, peer))
        scripts.add(task)

    async with _dialled(carrier, serve) as target:
        options.setdefault("verdicts", _no_memory())
        client = Client(target, **options)
        holder = _Peers(peers)
        try:
            yield client, holder  # type: ignore[misc]
        finally:
            await client.close()
            for task in scripts:
                task.cancel()
            await asyncio.gather(*scripts, return_exceptions=True)
            for peer in peers:
                await peer.channel.close()
        if check:
            for peer in peers:
                peer.transcript.check(allow_missing_id=True)
        for task in scripts:
            if not task.cancelled() and task.exception() is not None:
                raise task.exception()  # type: ignore[misc]


class _Peers:
    """The raw servers of one client, one per connection; attributes are those of the newest."""

    def __init__(self, peers: list[WirePeer]) -> None:
        self.all = peers

    def __getattr__(self, name: str) -> Any:
        return getattr(self.all[-1], name)


async def _play(script: Script, peer: WirePeer) -> None:
    try:
        await script(peer)
    except asyncio.CancelledError:
        raise


def _no_memory() -> Any:
    from interlock.protocol.client.probe import Verdicts

    return Verdicts()


@asynccontextmanager
async def _dialled(carrier: str, serve: Callable[[Channel], Awaitable[None]]) -> AsyncIterator[Any]:
    if carrier == "memory":
        opening: set[asyncio.Task[None]] = set()

        def make() -> Channel:
            near, far = memory_pair()
            opening.add(asyncio.get_running_loop().create_task(serve(far)))  # type: ignore[arg-type]
            return near

        yield make
        await asyncio.gather(*opening)
        return
    async with _relay(serve) as address:
        yield Command.of(
            [sys.executable, "-I", "-S", str(HERE / "relay.py"), address]
        )  # nothing but the standard library


@asynccontextmanager
async def _relay(serve: Callable[[Channel], Awaitable[None]]) -> AsyncIterator[str]:
    """Listens on a socket in a temporary folder; each child that connects is a new server to play."""
    import os
    import socket
    import tempfile

    from interlock.transport.stdio.line_channel import LineChannel

    with tempfile.TemporaryDirectory(prefix="interlock-") as folder:
        address = os.path.join(folder, "s")
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(address)
        listening.listen()
        listening.setblocking(False)
        loop = asyncio.get_running_loop()

        async def accept() -> None:
            while True:
                connection, _ = await loop.sock_accept(listening)
                fd = connection.detach()
                await serve(LineChannel(fd, os.dup(fd)))

        accepting = loop.create_task(accept())
        try:
            yield address
        finally:
            accepting.cancel()
            await asyncio.gather(accepting, return_exceptions=True)
            listening.close()
