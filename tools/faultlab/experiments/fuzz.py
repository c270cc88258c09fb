"""Bad bytes to a stdio server: it lives, stays small, and answers every good request among them."""

from __future__ import annotations

import json
import re
import time
from typing import Any

from ..frames import call
from ..lab import Lab, Problems
from ..mutate import Mutator
from ..pipe import PipedServer
from ..processes import peak_mb, rss_mb

__all__ = ["run"]

_BLOCK = 200  # lines between two canaries
_ANSWER = 10.0  # seconds for a canary
_GROWTH = 64.0  # MB
_RAISED = re.compile(r"[A-Za-z_][\w.]*(Error|Exception|Exit|Interrupt)\b")


def run(lab: Lab) -> None:
    lines = lab.dose(200_000, 10_000)
    problems = Problems()
    with PipedServer(lab.served("plain.py"), lab.marks("server"), lab.folder / "stderr") as server:
        fuzz = _Fuzz(lab, server, problems)
        fuzz.canary(0)
        base = rss_mb(server.pid)
        for number in range(1, lines // _BLOCK + 1):
            lab.say(f"{number * _BLOCK:,} of {lines:,} lines")
            if not fuzz.block(number):
                break
        grown, peak = rss_mb(server.pid) - base, peak_mb(server.pid) - base
        problems.require(server.alive, "the server died")
        problems.require(peak <= _GROWTH, f"RSS rose by {peak:.0f} MB")
        problems.require(server.close() == 0, "the server did not exit with 0")
        errors = server.errors()
    for complaint in complaints(errors):
        problems.add(f"stderr: {complaint}")
    result = f"{fuzz.answered} of {fuzz.canaries} canaries answered (slowest {fuzz.slowest * 1000:.0f} ms), "
    result += f"{fuzz.bytes / 1e6:.0f} MB sent, {fuzz.frames:,} other answers, all frames; "
    result += f"RSS {grown:+.1f} MB, at its peak {peak:+.1f} MB"
    lab.row("random and mutated lines", f"{fuzz.lines:,} lines, a canary every {_BLOCK}", result, problems)


def complaints(errors: str) -> list[str]:
    """Each kind of exception that got out, as its heading and its last line: no paths."""
    found: dict[str, None] = {}
    heading = ""
    for line in errors.splitlines():
        if line.startswith(("! ", "Exception in", "Task exception", "Future exception")):
            heading = line[:100]
        elif _RAISED.match(line):
            found[f"{heading!r} raised {line[:160]}"] = None
    return list(found)


class _Fuzz:
    def __init__(self, lab: Lab, server: PipedServer, problems: Problems) -> None:
        self._server, self._problems, self._random = server, problems, lab.random
        self._mutator = Mutator(lab.random)
        self.lines = self.bytes = self.frames = self.canaries = self.answered = 0
        self.slowest = 0.0

    def block(self, number: int) -> bool:
        """Bad lines, then a canary; False when it was not answered."""
        for _ in range(_BLOCK):
            line = self._mutator.line()
            self._server.send(line)
            self.lines += 1
            self.bytes += len(line) + 1
        return self.canary(number)

    def canary(self, number: int) -> bool:
        a, b = self._random.randrange(1000), self._random.randrange(1000)
        self.canaries += 1
        self._server.send(call(f"canary {number}", "add", {"a": a, "b": b}))
        started = time.monotonic()
        while time.monotonic() - started < _ANSWER and not self._server.over:
            for line in self._server.turn(0.5):
                frame = self._frame(line)
                if frame.get("id") == f"canary {number}":
                    self.slowest = max(self.slowest, time.monotonic() - started)
                    return self._right(frame, a + b)
        self._problems.add(f"canary {number} was not answered ({'it died' if self._server.over else 'silence'})")
        return False

    def _right(self, frame: dict[str, Any], total: int) -> bool:
        content = frame.get("result", {}).get("content", [{}])
        right = content[0].get("text") == str(total)
        self._problems.require(right, f"a canary was answered {json.dumps(frame)[:200]}")
        self.answered += right
        return right

    def _frame(self, line: bytes) -> dict[str, Any]:
        """Whatever it says must be a frame, or an array of them."""
        self.frames += 1
        try:
            frame = json.loads(line)
        except ValueError:
            frame = None
        for each in frame if isinstance(frame, list) else [frame]:
            if not isinstance(each, dict) or each.get("jsonrpc") != "2.0":
                self._problems.add(f"it said {line[:160]!r}")
        return frame if isinstance(frame, dict) else {}
