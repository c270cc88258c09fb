"""What a test may not leave: descriptors and processes, in synchronous tests as in others.

Linux only, where /proc lists both; elsewhere nothing is found. The process that runs the tests adopts orphans
(`PR_SET_CHILD_SUBREAPER`), so that a process that left its group and lost its parent is still found below it.
"""

from __future__ import annotations

import ctypes
import gc
import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support import warm

__all__ = ["adopt_orphans", "find_processes", "keep_process", "no_leaks"]

GRACE = 10.0  # seconds in which a process that is ending may end
_PR_SET_CHILD_SUBREAPER = 36
_kept: set[int] = set()  # processes that a fixture of several tests started and will end


def adopt_orphans() -> None:
    """Let descendants that lose their parent become children of this process."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


@contextmanager
def no_leaks() -> Iterator[None]:
    """Fails when there are more open descriptors or other living processes than before."""
    descriptors, processes = _descriptors(), set(find_processes())
    yield
    left = _processes_left(processes)
    for pid in left:
        _kill(pid)  # the next test is not to blame for it
    assert not left, f"processes left behind: {list(left.values())}"
    after = _descriptors()
    if len(after) > len(descriptors):
        gc.collect()  # one that is unreachable closes itself, and warns, which fails the test
        after = _descriptors()
    opened = sorted(after.items() - descriptors.items())
    assert len(after) <= len(descriptors), f"descriptors left open: {opened}"


def keep_process(pid: int) -> None:
    """A fixture of several tests started this process inside of one of them, and ends it itself."""
    _kept.add(pid)


def find_processes() -> dict[int, str]:
    """Living processes that tests answer for, by pid, with their command lines.

    Children of this process, among them orphans, and of the process that forks warm servers. Others have a parent that
    is one of these, or that was there before: what a server of several tests starts is not left by one of them.
    """
    pids = _children(os.getpid())
    if (forks := warm.parent_pid()) is not None:
        pids += _children(forks)
    return {pid: f"{pid}: {_command(pid)}" for pid in pids if pid not in _kept and _is_alive(pid)}


def _processes_left(before: set[int]) -> dict[int, str]:
    end = time.monotonic() + GRACE
    while True:
        left = {pid: command for pid, command in find_processes().items() if pid not in before}
        if not left:
            _reap(before)
        if not left or time.monotonic() > end:
            return left
        _wait_for(min(left), end - time.monotonic())


def _wait_for(pid: int, seconds: float) -> None:
    """Until a process that need not be our child has ended, by the kernel's notice."""

    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return
    try:
        select.select([descriptor], [], [], max(0.0, seconds))
    finally:
        os.close(descriptor)


def _reap(before: set[int]) -> None:
    """Zombies among our children: orphans, whose parents would have done so."""
    for pid in _children(os.getpid()):
        if pid not in before:
            try:
                os.waitpid(pid, os.WNOHANG)
            except OSError:
                pass


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass


def _children(pid: int) -> list[int]:
    """Children of all threads of a process, zombies included."""
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            found += map(int, Path(f"/proc/{pid}/task/{thread}/children").read_bytes().split())
    except OSError:
        pass
    return found


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:200]
    except OSError:
        return "?"


def _descriptors() -> dict[int, str]:
    """Open descriptors of this process, with what they lead to."""
    found: dict[int, str] = {}
    try:
        names = os.listdir("/proc/self/fd")
    except OSError:
        return found
    for name in names:
        try:
            found[int(name)] = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            pass  # the one by which they were listed
    return found
