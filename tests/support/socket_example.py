"""The custom transport of examples/, loaded, and what its tests share."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from interlock import Client, Context, Server
from support.wire_peer import WirePeer

__all__ = ["EXAMPLE", "Handlers", "dialled", "example", "members_of", "raw_peer", "socket_path"]

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "custom_transport.py"


def load_example() -> Any:
    spec = importlib.util.spec_from_file_location("custom_transport", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


example = load_example()


@contextmanager
def socket_path() -> Iterator[str]:
    """Not pytest's tmp_path: the path of a Unix socket must fit into about a hundred bytes."""
    with tempfile.TemporaryDirectory(prefix="interlock-") as folder:
        yield os.path.join(folder, "s")


def dialled(path: str, **options: Any) -> Client:
    """A client over the socket. What it learns about the server's era is its own."""
    return Client(example.dial(path), **options)


@asynccontextmanager
async def raw_peer(path: str, revision: str, **options: Any) -> AsyncIterator[WirePeer]:
    """A client made of frames, over the channel of the example."""
    channel = example.SocketChannel(path, **options)
    peer = WirePeer(channel, revision, "client")
    await channel.open(peer)
    try:
        yield peer
    finally:
        await channel.close()


class Handlers:
    """A server whose handlers can be watched and held from the test."""

    def __init__(self) -> None:
        self.server = Server("watched", version="1")
        self.running, self.stopped, self.let_go = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.server.tool(self.hold)
        self.server.tool(self.steps)
        self.server.tool(self.change)
        self.here = True

    async def hold(self) -> str:
        """Runs until it is let go or cancelled."""
        self.running.set()
        try:
            await self.let_go.wait()
        finally:
            self.stopped.set()
        return "let go"

    async def steps(self, ctx: Context) -> str:
        await ctx.progress(1)
        return "done"

    async def change(self) -> str:
        """Take a tool away, or bring it back."""
        self.here = not self.here
        if self.here:
            self.server.tool(self.steps)
        else:
            self.server.remove_tool("steps")
        return "changed"


def members_of(protocol: Any) -> list[str]:
    return [name for name in vars(protocol) if not name.startswith("_")]
