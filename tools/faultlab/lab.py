"""What an experiment is given (a seed, a dose, a folder, a way to start servers) and the rows it gives back."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from interlock import Command

__all__ = ["Lab", "Problems", "Row", "ErrorLog", "MARK", "ROLE", "ROOT", "SERVERS"]

ROOT = Path(__file__).resolve().parents[2]
SERVERS = Path(__file__).parent / "servers"
MARK = "FAULTLAB"  # in the environment of every process an experiment starts, and of what those start
ROLE = "FAULTLAB_ROLE"
_SPOKEN_EVERY = 5.0  # seconds between two lines of progress
_SHOWN = 4  # problems of one row that are told in full


@dataclass
class Row:
    """One line of the table."""

    experiment: str
    dose: str
    result: str
    verdict: str
    """pass, FAIL, or info where nothing was promised."""
    seed: int


class Problems:
    """What went against the promise: counted by kind, the first ones kept in words."""

    def __init__(self) -> None:
        self.count = 0
        self._first: list[str] = []

    def add(self, text: str) -> None:
        self.count += 1
        if len(self._first) < _SHOWN and text not in self._first:
            self._first.append(text)

    def require(self, holds: bool, text: str) -> None:
        if not holds:
            self.add(text)

    def told(self) -> str:
        more = f" (and {self.count - len(self._first)} more)" if self.count > len(self._first) else ""
        return "; ".join(self._first) + more


class Lab:
    def __init__(self, name: str, seed: int, *, quick: bool, folder: Path) -> None:
        self.name = name
        self.seed = seed
        self.quick = quick
        self.folder = folder
        self.random = Random(f"{seed}/{name}")
        self.token = folder.name
        self.rows: list[Row] = []
        self._spoken = time.monotonic()

    def dose(self, full: int, quick: int) -> int:
        return quick if self.quick else full

    def say(self, text: str) -> None:
        """A line of progress, unless there was one a moment ago."""
        now = time.monotonic()
        if now - self._spoken >= _SPOKEN_EVERY:
            self._spoken = now
            print(f"        {self.name}: {text}", flush=True)

    def row(self, check: str, dose: str, result: str, problems: Problems | None) -> None:
        """Report one check: empty problems are a pass, None says that nothing was promised."""
        verdict = "info" if problems is None else "FAIL" if problems.count else "pass"
        if problems is not None and problems.count:
            result = f"{problems.told()}. {result}"
        result = " ".join(result.split()).replace(f"{ROOT}/", "").replace(str(self.folder), "(folder)")
        row = Row(f"{self.name}: {check}", dose, result, verdict, self.seed)
        self.rows.append(row)
        # At once: should the experiment have to be ended, what it found so far is kept.
        (self.folder / "rows.json").write_text(json.dumps([vars(row) for row in self.rows]))
        print(f"  {verdict}  {row.experiment} ({dose}): {result}", flush=True)

    # --- what it starts ---------------------------------------------------------------------------

    def marks(self, role: str, **more: str) -> dict[str, str]:
        """The variables by which a process and what it starts are found again."""
        return {MARK: self.token, ROLE: role, **more}

    def served(self, script: str) -> list[str]:
        """The command line of one of our servers."""
        return [sys.executable, "-m", "interlock", "run", str(SERVERS / script)]

    def plain(self, script: str, *arguments: str) -> list[str]:
        """The command line of a script that runs by itself."""
        return [sys.executable, str(SERVERS / script), *arguments]

    def command(self, args: Sequence[str], *, patience: float = 2.0, **more: str) -> Command:
        """How our Client starts it; `patience` before it is terminated, and again before it is killed."""
        env = self.marks("server", **more)
        return Command.of(args, env=env, close_seconds=patience, terminate_seconds=patience)


class ErrorLog(logging.Handler):
    """Collects what our own process logs at ERROR, which no experiment here expects."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.problems = Problems()
        for name in ("interlock", "asyncio"):
            logger = logging.getLogger(name)
            logger.addHandler(self)
            logger.propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        cause = record.exc_info[1] if record.exc_info else None
        told = record.getMessage().partition("\n")[0][:160]
        self.problems.add(f"{told} ({cause!r:.120} in {_place(cause)})" if cause else told)


def _place(error: BaseException) -> str:
    """Where it was raised: file and function."""
    trace, place = error.__traceback__, "?"
    while trace is not None:
        code = trace.tb_frame.f_code
        place, trace = f"{Path(code.co_filename).name} {code.co_name}", trace.tb_next
    return place
