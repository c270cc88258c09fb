"""Keeps cores from resting while one call in a hundred decides.

A virtual machine that has nothing to do gives its core back to the host, and the call that comes next waits until it
has it again, for milliseconds now and then. The kernel can be told not to do so with any core (PM QoS: whoever holds
this file open with a 0 in it wants to be woken at once), where it has a way to wait without giving them away. Elsewhere
a program that gives way to everything else keeps the server's core busy: every call then pays for taking it over.
"""

import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import sleep

from driver import CORES, clean_environment, on_server_core

WANTED = Path("/dev/cpu_dma_latency")
_STATES = Path("/sys/devices/system/cpu")
_AT_ONCE = struct.pack("i", 0)
_LOOK_SECONDS = 0.05
_KEEPS_AWAKE = """
import os, sys
while os.getppid() == int(sys.argv[1]):
    for _ in range(1_000_000):
        pass
"""


@contextmanager
def server_core_awake() -> Iterator[str]:
    """How that is done; empty: the system does not let us, and nothing changes."""
    if CORES is None:
        yield ""
        return
    with _told_to_wait() as waits:
        if waits:
            yield "by the kernel"
            return
    with _kept_busy() as busy:
        yield "by a program that gives way" if busy else ""


@contextmanager
def _told_to_wait() -> Iterator[bool]:
    """Does the core wait at work from now on? Seen, not believed: not every machine listens."""
    try:
        wanted = os.open(WANTED, os.O_WRONLY)
    except OSError:
        yield False
        return
    try:
        yield _is_heard(wanted)
    finally:
        os.close(wanted)  # and what it wanted is forgotten


def _is_heard(wanted: int) -> bool:
    """Some kernels wait at work for a moment in any case: it must be most of the time."""
    try:
        os.write(wanted, _AT_ONCE)
    except OSError:
        return False
    before = _waited_at_work()
    sleep(_LOOK_SECONDS)
    return _waited_at_work() - before > _LOOK_SECONDS * 1e6 / 2


def _waited_at_work() -> int:
    """Microseconds that the server's core has waited without resting."""
    assert CORES is not None
    state = _STATES / f"cpu{CORES[1]}" / "cpuidle" / "state0"
    try:
        return int((state / "time").read_text()) if (state / "name").read_text().strip() == "POLL" else 0
    except (OSError, ValueError):
        return 0


@contextmanager
def _kept_busy() -> Iterator[bool]:
    if not hasattr(os, "SCHED_IDLE"):
        yield False
        return
    with on_server_core():
        child = subprocess.Popen([sys.executable, "-c", _KEEPS_AWAKE, str(os.getpid())], env=clean_environment())
    try:
        yield _gives_way(child)
    finally:
        child.kill()
        child.wait()


def _gives_way(child: subprocess.Popen[bytes]) -> bool:
    """From now on it runs when nothing else wants to, or not at all."""
    try:
        os.sched_setscheduler(child.pid, os.SCHED_IDLE, os.sched_param(0))
    except OSError:
        child.kill()
        return False
    return True
