"""The host dies without a word: its server must notice by the end of its stdin."""

from __future__ import annotations

import os
import select
import subprocess
import time
from statistics import median

from ..lab import Lab, Problems
from ..processes import end_marked, marked, wait_until

__all__ = ["run"]

_STATES = ("idle", "async call", "blocking call")
_GONE = 2.0
_WATCHED = 5.0  # seconds until we stop watching a server that stays
_READY = 20.0


def run(lab: Lab) -> None:
    rounds = lab.dose(20, 3)
    for number, state in enumerate(_STATES):
        share = len(range(number, rounds, len(_STATES)))
        _kill_hosts(lab, state, share)


def _kill_hosts(lab: Lab, state: str, times: int) -> None:
    problems = Problems()
    seconds: list[float] = []
    orphans = 0
    for _ in range(times):
        lab.say(f"{state}, {len(seconds)} of {times}")
        host = _start(lab, state)
        roles = sorted(marked(lab.token).values())
        problems.require(roles == ["grandchild", "host", "server"], f"started {roles}")
        started = time.monotonic()
        host.kill()
        host.wait()
        wait_until(lambda: "server" not in marked(lab.token).values(), _WATCHED)
        seconds.append(time.monotonic() - started)
        left = list(marked(lab.token).values())
        orphans += left.count("grandchild")
        if seconds[-1] > _GONE:
            problems.add(
                f"a server {'lived on' if 'server' in left else f'took {seconds[-1]:.1f} s'} (bound {_GONE:g} s)"
            )
        end_marked(lab.token)
    over = f" (watched for {_WATCHED:g} s)" if max(seconds) > _WATCHED else ""
    result = f"servers gone after {median(seconds):.2f} s (median), {max(seconds):.2f} s (most){over}; "
    result += f"{orphans} of {times} grandchildren lived on (reported only)"
    lab.row(f"SIGKILL of the host, {state}", f"{times} hosts", result, problems)


def _start(lab: Lab, state: str) -> subprocess.Popen[bytes]:
    host = subprocess.Popen(
        lab.plain("host.py", state),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        env={**os.environ, **lab.marks("host")},
    )
    assert host.stdout is not None
    ready, _, _ = select.select([host.stdout], [], [], _READY)
    if not ready or host.stdout.readline().strip() != b"ready":
        host.kill()
        raise RuntimeError("the host did not start")
    host.stdout.close()
    return host
