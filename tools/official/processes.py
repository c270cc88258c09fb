"""Child processes that are bounded in time and take everything they started along when they go."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["Child", "GENTLE_SECONDS"]

GENTLE_SECONDS = 5.0  # between the polite signal and the other one


class Child:
    """A process in a session of its own: ending it ends its whole group, and nothing else."""

    def __init__(self, command: Sequence[str], output: Path, *, env: Mapping[str, str], cwd: Path) -> None:
        with output.open("wb") as file:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env=dict(env),
                cwd=cwd,
                start_new_session=True,
            )
        self.output = output

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *error: Any) -> None:
        self.end()

    @property
    def running(self) -> bool:
        """Looked at without reaping: as long as the leader is there, its number is its group's and nobody else's."""
        if self._process.returncode is not None:
            return False
        return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

    def wait(self, seconds: float) -> int | None:
        """The exit code, or None if it had to be ended. Either way nothing of it is left."""
        deadline = time.monotonic() + seconds
        while self.running and time.monotonic() < deadline:
            time.sleep(0.02)
        in_time = not self.running
        self.end()
        return self._process.returncode if in_time else None

    def end(self) -> None:
        """End the group, gently first where it still runs. Idempotent."""
        if self._process.returncode is not None:
            return
        if self.running:
            self._signal(signal.SIGTERM)
            deadline = time.monotonic() + GENTLE_SECONDS
            while self.running and time.monotonic() < deadline:
                time.sleep(0.02)
        self._signal(signal.SIGKILL)  # the leader is not reaped yet, so the number of the group is still ours
        self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        try:
            os.killpg(self._process.pid, number)
        except (ProcessLookupError, PermissionError):
            pass  # nobody is left in it; some systems say so of a group that holds only its dead leader

    def tail(self, lines: int = 15) -> str:
        return "\n".join(self.output.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])
