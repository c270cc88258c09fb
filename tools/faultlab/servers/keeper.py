"""A server of ours whose tool writes each nonce into the ledger before it returns."""

import asyncio
import os

from interlock import Server

server = Server("keeper", version="1")
path = os.environ["FAULTLAB_LEDGER"]
book = open(path, "ab", buffering=1 << 16)  # noqa: SIM115 - open as long as the process
direct = os.open(path, os.O_WRONLY | os.O_APPEND)


@server.tool
async def keep(nonce: str) -> str:
    """Buffered: for counting, not for crashes."""
    book.write(nonce.encode() + b"\n")
    return nonce


@server.tool
async def keep_synced(nonce: str) -> str:
    """On the disk before the answer."""
    os.write(direct, nonce.encode() + b"\n")
    os.fsync(direct)
    return nonce


@server.tool
async def flush() -> str:
    """Everything that is buffered goes into the file."""
    book.flush()
    return "flushed"


@server.tool
async def tasks() -> int:
    """How many tasks live in this process, the one of this call included."""
    return len(asyncio.all_tasks())
