"""Real child processes for tests: small servers written for one test, and whether a process is still there."""

from __future__ import annotations

import asyncio
import os
import sys
import textwrap
from pathlib import Path
from typing import Any

from interlock import Client, Command
from interlock.protocol.client.probe import Verdicts
from support.wire_peer import WAIT

__all__ = ["TELLS_PID", "alive", "client_of", "command_of", "exited", "group_of", "words", "write_server"]

MINI = Path(__file__).with_name("mini_server.py")
TELLS_PID = """
plain = answer
def answer(request):
    if request.get("method") == "tools/list":
        return result(request, {"tools": [{"name": "pid", "inputSchema": {"type": "object"}}]})
    plain(request)
serve(answer)
"""


def write_server(folder: Path, body: str, name: str = "server.py") -> Path:
    """A server program: the mini server and `body`, which ends with `serve()` unless it says how to."""
    path = folder / name
    body = textwrap.dedent(body)
    if "serve(" not in body and "# no loop" not in body:
        body += "\nserve()\n"
    path.write_text(MINI.read_text(encoding="utf-8") + "\n" + body, encoding="utf-8")
    return path


def command_of(path: Path, *arguments: str, **options: Any) -> Command:
    # -S and -E: neither site packages nor PYTHON* variables are wanted, and it starts faster.
    return Command.of([sys.executable, "-S", "-E", str(path), *arguments], **options)


def client_of(
    folder: Path, body: str = "", *, name: str = "server.py", revision: Any = "2025-11-25", **options: Any
) -> Client:
    """A client, not yet open, of a server written for it. Options of `Command` go there."""
    own = {key: options.pop(key) for key in list(options) if key in Command.__struct_fields__}
    options.setdefault("verdicts", Verdicts())
    options.setdefault("keepalive", None)
    return Client(command_of(write_server(folder, body, name), **own), **options)


def alive(pid: int) -> bool:
    """Does it run? A zombie does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
    except OSError:
        return False
    return state not in (b"Z", b"X")


async def exited(pid: int) -> None:
    """Wait, by the kernel's notice and within bounds, until a process that need not be our child has ended."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    loop = asyncio.get_running_loop()
    gone = asyncio.Event()
    loop.add_reader(fd, gone.set)
    try:
        async with asyncio.timeout(WAIT):
            await gone.wait()
    except TimeoutError:
        raise AssertionError(f"process {pid} is still there") from None
    finally:
        loop.remove_reader(fd)
        os.close(fd)


def group_of(pid: int) -> int:
    return os.getpgid(pid)


def words(path: Path) -> list[str]:
    """What a child has noted."""
    return path.read_text().split() if path.exists() else []
