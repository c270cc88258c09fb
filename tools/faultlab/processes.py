"""What the kernel says about processes (from /proc), and how those of an experiment are found and ended."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable

from .lab import MARK, ROLE

__all__ = [
    "children",
    "cpu_nanoseconds",
    "cpu_seconds",
    "descriptors",
    "end",
    "end_marked",
    "marked",
    "peak_mb",
    "rss_mb",
    "slope_per_100k",
    "state",
    "threads",
    "wait_until",
]

_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICK = os.sysconf("SC_CLK_TCK")


def _read(pid: int, name: str) -> bytes:
    """Empty for a process that is gone or not ours to look at."""
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read()
    except OSError:
        return b""


def _status(pid: int, field: bytes) -> bytes:
    for line in _read(pid, "status").splitlines():
        if line.startswith(field + b":"):
            return line.partition(b":")[2].strip()
    return b""


def _stat(pid: int) -> list[bytes]:
    """The fields after the name, which may hold anything; the first is the state, the second the parent."""
    return _read(pid, "stat").rpartition(b")")[2].split()


def rss_mb(pid: int) -> float:
    fields = _read(pid, "statm").split()
    return int(fields[1]) * _PAGE / 1e6 if fields else 0.0


def peak_mb(pid: int) -> float:
    """The most it ever had, by the kernel's own count: no sample can miss it."""
    found = _status(pid, b"VmHWM")
    return int(found.split()[0]) * 1024 / 1e6 if found else 0.0


def threads(pid: int) -> int:
    return int(_status(pid, b"Threads") or 0)


def descriptors(pid: int) -> int:
    """Of our own process the one that reads the list is not counted."""
    try:
        return len(os.listdir(f"/proc/{pid}/fd")) - (pid == os.getpid())
    except OSError:
        return 0


def cpu_seconds(pid: int) -> float:
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / _TICK if fields else 0.0


def cpu_nanoseconds(pid: int) -> int:
    """Of all its threads, finer than the ticks of `cpu_seconds`."""
    return sum(int(_read(pid, f"task/{thread}/schedstat").split()[0]) for thread in os.listdir(f"/proc/{pid}/task"))


def state(pid: int) -> str:
    """R, S, D, Z, … or an empty string once it is gone."""
    fields = _stat(pid)
    return fields[0].decode() if fields else ""


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def children(pid: int) -> dict[int, str]:
    """The direct children with their states."""
    found = ((child, _stat(child)) for child in _pids())
    return {child: fields[0].decode() for child, fields in found if fields and int(fields[1]) == pid}


def marked(token: str) -> dict[int, str]:
    """Living processes that carry the mark, with their roles, wherever they hang in the tree."""
    wanted = f"{MARK}={token}".encode()
    found: dict[int, str] = {}
    for pid in _pids():
        variables = _read(pid, "environ").split(b"\0")
        if wanted in variables and state(pid) not in ("", "Z", "X"):
            roles = [each for each in variables if each.startswith(ROLE.encode() + b"=")]
            found[pid] = roles[0].partition(b"=")[2].decode() if roles else ""
    return found


def end_marked(token: str) -> int:
    """Kill what an experiment left behind; gives how many there were."""
    return end(marked(token))


def end(pids: Iterable[int]) -> int:
    """Kill processes, one by one by their pids; gives how many there were."""
    count = 0
    for pid in pids:
        count += 1
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return count


def wait_until(holds: Callable[[], bool], seconds: float, every: float = 0.01) -> bool:
    """Look until it holds, at most so long. Blocks; in a coroutine run it in a thread."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(every)
    return True


def slope_per_100k(samples: list[tuple[int, float]]) -> float:
    """The least-squares slope of (units done, value), for 100,000 units."""
    if len(samples) < 2:
        return 0.0
    n = len(samples)
    mean_x = sum(x for x, _ in samples) / n
    mean_y = sum(y for _, y in samples) / n
    spread = sum((x - mean_x) ** 2 for x, _ in samples)
    return 1e5 * sum((x - mean_x) * (y - mean_y) for x, y in samples) / spread if spread else 0.0
