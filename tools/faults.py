"""Break Interlock on purpose and check what it promises.

python tools/faults.py                     everything, below ten minutes on two idle cores
python tools/faults.py --quick             small doses, below one minute
python tools/faults.py --only kills,fuzz   some experiments
python tools/faults.py --seed 7            the same choices again
python tools/faults.py --write             also rewrite docs/faults.md

Ends with 1 if anything failed. Each experiment runs in a process of its own, over pipes, memory and loopback only.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

from faultlab import report
from faultlab.experiments import EXPERIMENTS
from faultlab.lab import ROOT, ErrorLog, Lab, Problems, Row
from faultlab.processes import end_marked

MOST_SECONDS = 400.0  # for one experiment, which is then ended and has failed
MOST_SECONDS_QUICK = 90.0


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names or any(name not in EXPERIMENTS for name in names):
        raise argparse.ArgumentTypeError(f"choose from {', '.join(EXPERIMENTS)}")
    return names


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Break Interlock on purpose and check what it promises.")
    parser.add_argument("--quick", action="store_true", help="small doses")
    parser.add_argument("--only", type=_names, default=list(EXPERIMENTS), metavar="NAMES", help=", ".join(EXPERIMENTS))
    parser.add_argument("--seed", type=int, default=None, help="for all random choices; chosen if not given")
    parser.add_argument("--write", action="store_true", help="rewrite docs/faults.md")
    parser.add_argument("--inside", choices=list(EXPERIMENTS), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> int:
    given = _arguments()
    if given.inside:
        _inside(Lab(given.inside, given.seed, quick=given.quick, folder=given.folder))
        return 0
    seed = given.seed if given.seed is not None else int.from_bytes(os.urandom(3), "big")
    started = time.monotonic()
    rows = [row for name in given.only for row in _experiment(name, seed, quick=given.quick)]
    run = report.Run(rows, seed, given.quick, given.only, time.monotonic() - started)
    print(f"\n{report.headline(run)}\n\n{report.table(run)}\n")
    for line in report.repeat_lines(run):
        print(line)
    if given.write:
        (ROOT / "docs" / "faults.md").write_text(report.document(run), encoding="utf-8")
        print("\nwrote docs/faults.md")
    return int(any(row.verdict == "FAIL" for row in rows))


def _experiment(name: str, seed: int, *, quick: bool) -> list[Row]:
    """Run it in a process of its own, so that its baselines are its own and its end is in our hands."""
    print(f"{name} (seed {seed}) …", flush=True)
    with tempfile.TemporaryDirectory(prefix="faultlab-", ignore_cleanup_errors=True) as folder:
        words = ["--inside", name, "--seed", str(seed), "--folder", folder, *(["--quick"] if quick else [])]
        process = subprocess.Popen([sys.executable, str(Path(__file__).resolve()), *words], start_new_session=True)
        try:
            process.wait(MOST_SECONDS_QUICK if quick else MOST_SECONDS)
            told = f"ended with code {process.returncode}" if process.returncode else ""
        except subprocess.TimeoutExpired:
            told = "did not end in time"
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.wait()
            end_marked(Path(folder).name)
        found = Path(folder, "rows.json")
        rows = [Row(**row) for row in json.loads(found.read_text())] if found.exists() else []
    if told or not rows:
        rows.append(Row(name, "-", told or "gave no result", "FAIL", seed))
        print(f"  FAIL  {name}: {rows[-1].result}", flush=True)
    return rows


def _inside(lab: Lab) -> None:
    """One experiment; what it broke in our own process is a row too."""
    errors = ErrorLog()
    try:
        EXPERIMENTS[lab.name](lab)
    except Exception as error:
        traceback.print_exc()
        problems = Problems()
        problems.add(f"the experiment itself failed: {type(error).__name__}: {error}")
        lab.row("unfinished", "-", "see the traceback above", problems)
    gc.collect()  # exceptions that nobody retrieved are told when their task goes
    if errors.problems.count:
        lab.row("log of the client's process", "-", "nothing at ERROR was expected", errors.problems)


if __name__ == "__main__":
    sys.exit(main())
