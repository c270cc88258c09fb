"""The channel of the custom transport alone: framing, back pressure, and one end that is told once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from interlock.wire.channel import Channel
from interlock.wire.errors import ConnectionEnded, NotOpen
from interlock.wire.limits import DEFAULT_LIMITS, Limits
from support.socket_example import Handlers, example, members_of, raw_peer, socket_path
from support.wire_peer import HANDSHAKE, MODERN


@pytest.fixture
def path() -> Iterator[str]:
    with socket_path() as found:
        yield found


# --- framing ---


async def read_line(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(20):
        return await reader.readuntil(b"\n")


def ping_of(revision: str, id: int, **extra: Any) -> bytes:
    """The cheapest request of a revision."""
    if revision in HANDSHAKE:
        return json.dumps({"jsonrpc": "2.0", "id": id, "method": "ping", **extra}).encode()
    meta = {
        "io.modelcontextprotocol/protocolVersion": revision,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    frame = {"jsonrpc": "2.0", "id": id, "method": "server/discover", "params": {"_meta": meta}, **extra}
    return json.dumps(frame).encode()


@pytest.mark.requirement("TRANSPORT-001", "TRANSPORT-006", "TRANS-CUST-02")
@pytest.mark.parametrize("revision", [HANDSHAKE[-1], *MODERN])
async def test_the_wire_is_one_message_per_line(revision: str, path: str):
    """Bytes written by hand, in chunks that respect no message, and nothing but lines of JSON comes back."""
    async with example.listening(Handlers().server, path):
        reader, writer = await asyncio.open_unix_connection(path)
        text = "é" * 3 + "\u2028 a line separator is no newline"
        sent = b"".join([ping_of(revision, 1, x=text) + b"\n", b"\n \r\n", ping_of(revision, 2) + b"\r\n"])
        for at in range(len(sent)):  # each byte on its own, so also inside of a character
            writer.write(sent[at : at + 1])
            await writer.drain()
        writer.write(ping_of(revision, 3) + b"\n" + ping_of(revision, 4) + b"\n")  # two in one chunk
        answers = [json.loads(await read_line(reader)) for _ in range(4)]
        assert [answer["id"] for answer in answers] == [1, 2, 3, 4]
        assert all(answer["jsonrpc"] == "2.0" and "result" in answer for answer in answers)
        writer.write_eof()
        assert await reader.read() == b""  # not a byte beside the answers
        writer.close()
        await writer.wait_closed()


@pytest.mark.requirement("TRANSPORT-006")
async def test_half_a_line_at_the_end_is_no_message(path: str):
    handlers = Handlers()
    async with example.listening(handlers.server, path):
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(ping_of(HANDSHAKE[0], 1))  # without its newline
        writer.write_eof()
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()


@pytest.mark.parametrize("revision", [HANDSHAKE[-1], *MODERN])
async def test_a_message_over_the_limit_is_refused_and_the_next_one_served(revision: str, path: str):
    small = Limits(message_bytes=2000)
    async with example.listening(Handlers().server, path, limits=small), raw_peer(path, revision) as peer:
        peer.send(ping_of(revision, 1, x="x" * 5000))
        assert (await peer.response(1))["error"]["code"] == -32600
        peer.send(ping_of(revision, 2))
        assert "result" in await peer.response(2)


# --- the duties of a channel ---


class Notes:
    """A receiver that writes down what it is told."""

    def __init__(self) -> None:
        self.messages: list[bytes] = []
        self.ends: list[ConnectionEnded] = []
        self.over = asyncio.Event()

    def received(self, message: bytes) -> None:
        self.messages.append(message)

    def oversized(self, beginning: bytes, size: int) -> None:
        raise AssertionError(f"{size} bytes")

    def ended(self, error: ConnectionEnded) -> None:
        self.ends.append(error)
        self.over.set()


@asynccontextmanager
async def socket_pair(path: str) -> AsyncIterator[tuple[Any, Notes, asyncio.StreamReader, asyncio.StreamWriter]]:
    """A channel that is not opened yet, and the bare other end of its socket."""
    accepted: asyncio.Queue[Any] = asyncio.Queue()
    listener = await asyncio.start_unix_server(lambda reader, writer: accepted.put_nowait((reader, writer)), path)
    channel, notes = example.SocketChannel(path), Notes()
    await channel.open(notes)
    reader, writer = await accepted.get()
    try:
        yield channel, notes, reader, writer
    finally:
        await channel.close()
        writer.close()
        await writer.wait_closed()
        listener.close()


async def test_a_peer_that_does_not_read_is_waited_for(path: str):
    async with socket_pair(path) as (channel, _, reader, _writer):
        message = b"x" * (8 * 1024 * 1024)
        channel.send(message)
        assert channel.backlog > DEFAULT_LIMITS.pressure_bytes
        draining = asyncio.create_task(channel.drain())
        await asyncio.sleep(0)
        assert not draining.done()
        async with asyncio.timeout(60):
            assert await reader.readexactly(len(message) + 1) == message + b"\n"
            await draining
        assert channel.backlog == 0


async def test_the_end_is_told_once_whoever_ends_it(path: str):
    async with socket_pair(path) as (channel, notes, _, writer):
        writer.write(b"one\n\ntwo\nhalf")
        writer.close()
        async with asyncio.timeout(20):
            await notes.over.wait()
        await asyncio.gather(channel.close(), channel.close())
        assert [type(end).__name__ for end in notes.ends] == ["PeerClosed"]
        assert notes.messages == [b"one", b"two"]


async def test_closing_at_once_is_an_end_too(path: str):
    async with socket_pair(path) as (channel, notes, reader, _):
        channel.send(b"last words")
        await channel.close()
        await channel.close()
        assert [type(end).__name__ for end in notes.ends] == ["ConnectionClosed"]
        assert await reader.read() == b"last words\n"


def test_the_channel_has_every_member_of_the_interface():
    for member in members_of(Channel):
        assert hasattr(example.SocketChannel, member), member


def test_a_channel_that_is_not_open_takes_nothing(path: str):
    with pytest.raises(NotOpen):
        example.SocketChannel(path).send(b"{}")
