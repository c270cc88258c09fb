"""The table at the end, for the terminal and for docs/faults.md."""

from __future__ import annotations

import os
import platform
import subprocess
from collections import Counter
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from textwrap import wrap

import interlock

from .experiments import EXPERIMENTS
from .lab import ROOT, Row

__all__ = ["Run", "document", "headline", "repeat_lines", "table"]

_HEAD = ("experiment", "dose", "result", "verdict", "seed")
_WIDEST = (44, 34, 90, 7, 9)  # of the columns on a terminal


@dataclass
class Run:
    rows: list[Row]
    seed: int
    quick: bool
    only: list[str]
    seconds: float


def headline(run: Run) -> str:
    verdicts = Counter(row.verdict for row in run.rows)
    plan = "quick" if run.quick else "full"
    told = f"{verdicts['pass'] + verdicts['FAIL']} checks, "
    told += f"{verdicts['FAIL']} failed" if verdicts["FAIL"] else "all passed"
    if verdicts["info"]:
        told += f"; {verdicts['info']} only told (info)"
    return f"{told}. Plan {plan}, {', '.join(run.only)}; {run.seconds:.0f} s. {_versions()}."


def _versions() -> str:
    return (
        f"Interlock {interlock.__version__}{_commit()}, Python {platform.python_version()}, "
        f"msgspec {version('msgspec')}, {platform.system()}, {os.cpu_count()} cores"
    )


def _commit() -> str:
    """What was broken: the commit, and whether the sources differ from it."""
    try:
        commit = subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, text=True).strip()
        changed = subprocess.check_output(["git", "status", "--short", "src"], cwd=ROOT, text=True).strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
    return f" ({commit}{' with changes' if changed else ''})"


def _cells(row: Row) -> tuple[str, str, str, str, str]:
    return row.experiment, row.dose, row.result, row.verdict, str(row.seed)


def table(run: Run) -> str:
    """Fixed columns; what is too wide goes on below."""
    lines: list[str] = []
    for cells in (_HEAD, tuple("-" * width for width in _WIDEST), *map(_cells, run.rows)):
        parts = [wrap(cell, width) or [""] for cell, width in zip(cells, _WIDEST, strict=True)]
        for number in range(max(map(len, parts))):
            here = [part[number] if number < len(part) else "" for part in parts]
            lines.append("  ".join(text.ljust(width) for text, width in zip(here, _WIDEST, strict=True)).rstrip())
    return "\n".join(lines)


def repeat_lines(run: Run) -> list[str]:
    """One command for each experiment that failed."""
    failed = dict.fromkeys(row.experiment.partition(":")[0] for row in run.rows if row.verdict == "FAIL")
    option = " --quick" if run.quick else ""
    return [f"to repeat: .venv/bin/python tools/faults.py --only {name} --seed {run.seed}{option}" for name in failed]


_INTRODUCTION = """\
# Faults

Written by `python tools/faults.py --write`; do not edit by hand.

Every experiment runs in a process of its own, over pipes, memory and loopback only, with random choices drawn from the
seed.
A failed figure is printed, not dropped. Timing is the machine's own: the seed repeats the choices, not the scheduler.

How to repeat: `make faults`, or `.venv/bin/python tools/faults.py --seed SEED [--quick] [--only NAMES]`.
"""

_WHAT = {
    "soak": "Calls in both eras pipelined on one stdio connection, each with a nonce that the tool writes into a file "
    "before it answers. Told ok means exactly one entry, and the answer carries its own request's nonce. Passes with "
    "RSS growing by at most 1 MB per 100,000 calls after a warm-up of 5 %, descriptors and threads constant.",
    "kills": "The server is killed while calls of our Client are pending or while it starts. Every call ends with its "
    "answer or a `ConnectionEnded`, the next call works on a new server, no zombie, no process of the old tree is "
    "left after 2 s, and a call told unknown ran at most once, one told not sent never.",
    "host": "A process that uses our Client is killed. Its server must be gone within 2 s, by the end of its stdin "
    "alone. Grandchildren are only reported: nobody is left who could end them.",
    "cancels": "Calls cancelled before they start, while they run and as they complete, by our Client and by raw "
    "`notifications/cancelled`. In memory no answer may follow the cancellation at all; over stdio none may follow "
    "the answer to a later request. Afterwards nothing is pending, and there are as many tasks as before.",
    "noise": "Tools of ours print, write to descriptor 1 and start programs that do. A foreign server mixes lines of "
    "junk into its answers.",
    "fuzz": "Random bytes and mutated frames to a stdio server, with a good request (the canary) every 200 lines.",
    "numbers": "Numbers that take long to read (`1e300`, `5e-324`, and made-up ones): a server or a client spends at "
    "most five times the CPU on them that it spends on as many bytes of `1.5`.",
    "growth": "Clients open and close, again and again; what they used must be given back, and nothing may be done "
    "when there is nothing to do.",
    "slow": "Peers that do not read, for a while or ever.",
    "aborts": "A server over HTTP whose clients go away: after each single byte of a request, while their call runs, "
    "and in the middle of an answer or a stream; and requests that are broken, or whole and wrong. What did not come "
    "whole never runs, wrong requests get the status that is promised and nothing else, the log stays empty, and "
    "requests, handlers, tasks and descriptors come back to what they were.",
    "loris": "Clients over HTTP that take their time, with the server's patience shortened: silent ones and heads and "
    "bodies that come byte by byte are cut off with 408 or without a word, readers that come late get everything in "
    "order, readers that never come are cut off, and meanwhile others are served.",
    "crowd": "Thousands of idle streams at once over HTTP, each watching a resource of its own. Passes with at most "
    "30 kB of RSS for a stream of change notices, 45 kB for a session with its GET stream; every one gets its comments "
    "and its own changes, nobody gets another's. When their clients have gone, all memory is free again; Python keeps "
    "the pages, so a second crowd of the same size must find room in them.",
    "stops": "SIGTERM while callers and streams are busy: what was begun is answered, what was refused or not answered "
    "never ran, streams end with their results, and the process exits with 0 in time.",
    "stores": "Two processes append to streams in one SQLite file; one of them is killed, again and again, and a third "
    "one reads along. No acknowledged event is lost, doubled, out of order or in another stream, and nobody hangs.",
    "workers": "Two workers at one port with one SQLite file, sessions of 2025-06-18 that call without a pause, and "
    "kill -9 of one worker, again and again. Whoever was cut, or went away, comes back with `Last-Event-ID`, wherever "
    "that leads, and reads to the answer or to the error that the worker is gone; then everything once more. No event "
    "that was seen is lost, doubled, out of order or of another call, every session lives, nothing hangs, all of it "
    "within 60 s.",
    "pauses": "The same workers, one of which stands still for longer than its lease and then goes on: it is stopped "
    "by SIGSTOP, or a handler blocks its event loop. A client that hears nothing for half a second asks elsewhere, "
    "keeps its first connection open, and afterwards asks twice more from the first event on. Then kill -9 of one "
    "worker while the wall clock of all of them is set back by an hour. Each call has one outcome on all connections "
    "together (0 double), every call that can be asked for has one within 30 s (0 lost), and no event is lost or "
    "doubled.",
    "cycles": "Clients of every carrier open, call and close, blocking and supervised ones too; tasks, threads, "
    "descriptors, children, objects and RSS are what they were, and the process is idle afterwards.",
    "hostile": "Foreign servers on every carrier that are killed, stall, talk nonsense, answer twice, flood or ask at "
    "one step of the conversation, drawn by the seed from all combinations. Every call ends with an answer or a typed "
    "error, far below 20 s where its deadline is 0.5 s; a right answer that came is taken; nothing stays behind.",
}


def document(run: Run) -> str:
    rows = [" | ".join(cell.replace("|", "\\|") or " " for cell in _cells(row)) for row in run.rows]
    what = [f"- **{name}**: {_WHAT[name]}" for name in EXPERIMENTS]
    parts = [
        _INTRODUCTION,
        f"Measured on {date.today().isoformat()}: {headline(run)}\n",
        "| " + " | ".join(cell or " " for cell in _HEAD) + " |",
        "|" + " --- |" * len(_HEAD),
        *(f"| {row} |" for row in rows),
        "\n## What each does\n",
        *what,
    ]
    again = repeat_lines(run)
    if again:
        parts += ["\n## Failed\n", *(f"- `{line.partition(': ')[2]}`" for line in again)]
    return "\n".join(parts) + "\n"
