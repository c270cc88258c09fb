"""A server of ours with a sleeping child of its own. It writes into the ledger, takes its time, and dies when told."""

import asyncio
import os
import signal
import subprocess
import time

from interlock import Server

server = Server("fragile", version="1")
book = os.open(os.environ.get("FAULTLAB_LEDGER", os.devnull), os.O_WRONLY | os.O_APPEND)
# The sleeper ends by itself, should everything else fail. In a session of its own it has left our group.
sleeper = subprocess.Popen(
    ["sleep", "120"],
    env={**os.environ, "FAULTLAB_ROLE": "grandchild"},
    start_new_session=os.environ.get("FAULTLAB_SLEEPER") == "session",
)


@server.tool
async def who() -> dict[str, int]:
    """The pids of this process and of its child."""
    return {"pid": os.getpid(), "child": sleeper.pid}


@server.tool
async def work(nonce: str, seconds: float) -> str:
    """One entry in the ledger, then some time."""
    os.write(book, nonce.encode() + b"\n")
    await asyncio.sleep(seconds)
    return nonce


@server.tool
def block(seconds: float) -> str:
    """A plain function, so it blocks a thread."""
    time.sleep(seconds)
    return "done"


@server.tool
async def die(manner: str) -> str:
    """End this process at once: by an exit code or by a signal."""
    if manner.startswith("SIG"):
        os.kill(os.getpid(), getattr(signal, manner))
    os._exit(int(manner))
