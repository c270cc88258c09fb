"""A transport of your own: MCP over a Unix socket, with the framing of stdio.

    python examples/custom_transport.py                 serve and call, in one process
    python examples/custom_transport.py serve PATH      serve until Ctrl-C
    python examples/custom_transport.py call PATH       call the server that listens there

The whole transport is `SocketChannel`: the interface `interlock.wire.channel.Channel`, which carries messages and
knows nothing of MCP. Everything else (ids, cancellation, deadlines, revisions, who may say what) stands behind the
`Receiver` that it is opened with, on both sides. docs/custom_transports.md explains what each method owes.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from functools import partial

from interlock import Client, Context, Server
from interlock.transport import (
    DEFAULT_LIMITS,
    ConnectionClosed,
    ConnectionEnded,
    ConnectionLost,
    Duplex,
    Limits,
    LineFramer,
    NotOpen,
    Oversized,
    PeerClosed,
    Receiver,
    serve_channel,
)
from interlock.wire.exchange import Handler

CHUNK = 65536
CLOSE_WITHIN = 2.0  # seconds that a close waits for the peer to take what was said last
GRACE = 1.0  # seconds that running requests get when the server goes

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class SocketChannel:
    """One end of a Unix socket, as a `Channel`: newline-delimited messages in both directions.

    A client gives the `path` to connect to; a server gives the `streams` of a connection it accepted.
    """

    def __init__(self, path: str = "", *, streams: Streams | None = None, limits: Limits = DEFAULT_LIMITS) -> None:
        self._path = path
        self._streams = streams
        self._framer = LineFramer(limits.message_bytes)
        self._receiver: Receiver | None = None
        self._reading: asyncio.Task[None] | None = None

    # --- connecting and reading ---

    async def open(self, receiver: Receiver) -> None:
        """Connect, then hand every message to `receiver.received`, from a task of our own."""
        if self._streams is None:
            try:
                self._streams = await asyncio.open_unix_connection(self._path)
            except OSError as error:
                raise ConnectionLost(f"cannot connect to {self._path}: {error.strerror}") from error
        self._receiver = receiver
        self._reading = asyncio.create_task(self._read(self._streams[0], receiver))

    async def _read(self, reader: asyncio.StreamReader, receiver: Receiver) -> None:
        try:
            while chunk := await reader.read(CHUNK):
                self._deliver(chunk, receiver)
        except OSError as error:
            self._end(ConnectionLost(f"the socket broke: {error.strerror or error}"))
        else:
            self._end(PeerClosed("the peer closed the socket"))

    def _deliver(self, chunk: bytes, receiver: Receiver) -> None:
        """Whole lines only: a chunk may hold half a message, or three."""
        for line in self._framer.feed(chunk):
            if isinstance(line, Oversized):
                receiver.oversized(line.beginning, line.size)
            elif line.strip():
                receiver.received(line)

    # --- writing ---

    def send(self, message: bytes) -> int | None:
        """Take one message; never block. What the peer does not read yet waits in the writer's buffer."""
        if self._streams is None:
            raise NotOpen("the channel is not open")
        self._streams[1].write(message + b"\n")
        return None  # asyncio forgets what it could not write when a socket breaks: nothing is promised

    @property
    def delivered(self) -> int | None:
        """Unknown, see `send`. Calls that a broken connection fails then say so: `error.sent is None`."""
        return None

    @property
    def backlog(self) -> int:
        """Bytes taken but not yet handed on; beyond a limit the connection is ended as lost."""
        return self._streams[1].transport.get_write_buffer_size() if self._streams else 0

    async def drain(self) -> None:
        """Wait until the backlog is small again."""
        if self._streams is not None:
            try:
                await self._streams[1].drain()
            except OSError:
                pass  # it broke meanwhile: the reading task tells the receiver

    # --- the end ---

    def _end(self, error: ConnectionEnded) -> None:
        """Let go of the socket and tell the receiver why, once, whoever ended it."""
        if self._streams is not None:
            self._streams[1].close()  # what was taken is still written
        receiver, self._receiver = self._receiver, None
        if receiver is not None:
            receiver.ended(error)

    async def close(self) -> None:
        """End it: idempotent, bounded in time, from any task."""
        self._end(ConnectionClosed("the connection was closed"))
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])
        if self._streams is not None:
            await self._closed(self._streams[1])

    async def _closed(self, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(CLOSE_WITHIN):
                await writer.wait_closed()
        except TimeoutError:
            writer.transport.abort()  # the peer does not read
        except OSError:
            pass  # it was broken already


@asynccontextmanager
async def listening(
    handler: Handler, path: str, *, limits: Limits = DEFAULT_LIMITS, grace: float = GRACE
) -> AsyncGenerator[None]:
    """Serve `handler` (a `Server` is one) to everybody who connects to `path`, while the block runs.

    Each connection is a client of its own. At the end no further one is accepted, what runs gets `grace` seconds,
    and all connections are closed.
    """
    connections: dict[asyncio.Task[None], asyncio.Event] = {}

    def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not listener.is_serving():
            writer.close()  # it came while we were leaving
            return
        over = asyncio.Event()
        channel = SocketChannel(streams=(reader, writer), limits=limits)
        connection = serve_channel(handler, channel, limits=limits, on_end=over.set)
        task = asyncio.create_task(serve_until(connection, over, grace))
        connections[task] = over
        task.add_done_callback(connections.pop)

    listener = await asyncio.start_unix_server(accepted, path)
    os.chmod(path, 0o600)  # whoever may connect is LOCAL, as trusted as the owner of the process
    try:
        yield
    finally:
        listener.close()
        for over in connections.values():
            over.set()
        await asyncio.gather(*connections)
        await listener.wait_closed()
        with suppress(FileNotFoundError):
            os.unlink(path)


async def serve_until(connection: Duplex, over: asyncio.Event, grace: float) -> None:
    """One client, until it goes or we do."""
    try:
        await connection.open()
        await over.wait()
        await connection.settle(grace)
    finally:
        await connection.close()


def dial(path: str) -> partial[SocketChannel]:
    """What a `Client` is pointed at: something that makes a fresh channel for every attempt to connect."""
    return partial(SocketChannel, path)


# --- the demonstration ---

server = Server("socket", version="1")


@server.tool
async def count(to: int, ctx: Context) -> str:
    """Count, and tell how far it is."""
    for number in range(1, to + 1):
        await ctx.progress(number, to)
    return f"counted to {to}"


async def serve(path: str) -> None:
    async with listening(server, path):
        print(f"listening on {path}", flush=True)
        await asyncio.Event().wait()


async def call(path: str) -> None:
    async with Client(dial(path)) as client:
        print(f"connected to {client.server_info.name}, speaking {client.revision}")
        result = await client.call_tool("count", {"to": 3}, on_progress=lambda done, total, _: print(f"{done}/{total}"))
        print(result.text)


async def demonstrate() -> None:
    with tempfile.TemporaryDirectory() as folder:  # a folder only we may enter
        path = os.path.join(folder, "mcp.sock")
        async with listening(server, path):
            await call(path)


def main(arguments: list[str]) -> int:
    match arguments:
        case []:
            work = demonstrate()
        case ["serve", path]:
            work = serve(path)
        case ["call", path]:
            work = call(path)
        case _:
            print(__doc__)
            return 2
    try:
        asyncio.run(work)
    except KeyboardInterrupt:
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
