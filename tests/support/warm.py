"""Servers as processes that need not start from nothing: `interlock run FILE` in a fork of one that has imported it.

Each is a real process behind real pipes. Left out is only the tenth of a second in which Python starts and imports
what it has imported a thousand times; that has tests of its own, which start what users start.

    channel = WarmChannel(path)          # within a session that holds `nursery()`
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
_door: socket.socket | None = None
_parent: subprocess.Popen[bytes] | None = None


# --- here -------------------------------------------------------------------------------------------


@contextmanager
def nursery() -> Iterator[None]:
    """The process that forks, as long as this lasts."""
    global _door, _parent
    from interlock.transport.stdio.child_process import Command

    _door, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    words = [sys.executable, "-P", __file__, str(far.fileno())]
    env = {**Command.of(words).environment(), "PYTHONPATH": str(ROOT / "src")}
    _parent = subprocess.Popen(words, pass_fds=[far.fileno()], stdin=subprocess.DEVNULL, env=env, cwd=ROOT)
    far.close()
    try:
        yield
    finally:
        _door.close()
        _door = None
        _parent.wait(30)
        _parent = None


def parent_pid() -> int | None:
    """The process that forks, where there is one."""
    return _parent.pid if _parent is not None else None


def available() -> bool:
    """Somebody holds a nursery; where processes have no handles nobody does."""
    return _door is not None


def start(path: Path, streams: tuple[int, int, int], variables: Mapping[str, str]) -> int:
    """A new process with these standard streams, and these variables in its environment; its handle."""
    assert _door is not None
    words = [str(path), *(f"{name}={value}" for name, value in variables.items())]
    socket.send_fds(_door, ["\0".join(words).encode()], streams)
    _, handles, _, _ = socket.recv_fds(_door, 16, 1)
    return handles[0]


class Process:
    """What `start` gave, and the file that its stderr is."""

    def __init__(self, path: Path, variables: Mapping[str, str]) -> None:
        stdin, self.write_fd = os.pipe()
        self.read_fd, stdout = os.pipe()
        self._stderr = os.memfd_create("stderr")
        self._said: str | None = None
        self._handle = start(path, (stdin, stdout, self._stderr), variables)
        os.close(stdin)
        os.close(stdout)

    def stderr(self) -> str:
        if self._said is None:
            return os.pread(self._stderr, os.fstat(self._stderr).st_size, 0).decode(errors="replace")
        return self._said

    async def end(self) -> None:
        """Its input is closed: wait, terminate, wait, kill. A second time is nothing."""
        if self._said is not None:
            return
        for number in (signal.SIGTERM, signal.SIGKILL, None):
            if await self._gone(5):
                break
            assert number is not None, "a killed process is still there"
            signal.pidfd_send_signal(self._handle, number)
        self._said = self.stderr()
        os.close(self._handle)
        os.close(self._stderr)

    async def _gone(self, seconds: float) -> bool:
        loop, exited = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._handle, exited.set)
        try:
            async with asyncio.timeout(seconds):
                await exited.wait()
        except TimeoutError:
            return False
        finally:
            loop.remove_reader(self._handle)
        return True


# --- there ------------------------------------------------------------------------------------------


def main() -> None:
    door = socket.socket(fileno=int(sys.argv[1]))
    _import_all()
    gc.freeze()  # no child looks through all of this again when it ends
    while True:
        words, streams, _, _ = socket.recv_fds(door, 16_384, 3)
        if not words:
            return
        _reap()
        child = os.fork()
        if child == 0:
            door.close()
            _become(*words.decode().split("\0"), streams=streams)
            return
        handle = os.pidfd_open(child)
        socket.send_fds(door, [b"started"], [handle])
        for fd in (handle, *streams):
            os.close(fd)


def _import_all() -> None:
    import interlock
    import interlock.cli.commands.run
    import interlock.transport.stdio.server

    for name in interlock.__all__:
        getattr(interlock, name)


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def _become(path: str, *variables: str, streams: list[int]) -> None:
    """The process that `python -m interlock run PATH` would be."""
    from interlock.cli.main import main as interlock

    os.setsid()
    for number, fd in enumerate(streams):
        os.dup2(fd, number)
        os.close(fd)
    os.environ.update(word.split("=", 1) for word in variables)
    sys.path.insert(0, os.getcwd())
    sys.argv = ["interlock", "run", path]
    interlock()


if __name__ == "__main__":
    main()
