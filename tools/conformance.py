"""`make conformance`: the official suite against our server and our client, over HTTP.

python tools/conformance.py                        both sides, in every revision that has scenarios for them
python tools/conformance.py --spec-version 2025-11-25   one revision
python tools/conformance.py --server               only examples/everything.py under the suite's client
python tools/conformance.py --client               only conformance/client.py under the suite's servers
python tools/conformance.py --scenario caching     one scenario, of whichever side has it
python tools/conformance.py --workers 2            the server in so many processes, which share a file
python tools/conformance.py --keep                 leave what the suite wrote in .cache/conformance-results

Every scenario runs alone. The exit code is 0 when every check of every scenario succeeded, was skipped or only
informs; 1 when anything failed, warned, did not end, ended badly or checked nothing, or when a check only informs with
which an official SDK succeeds; 3 when the suite could not be had and nothing was run. Of the extensions those of
authorization are run, for the client, at the two newest revisions.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from official.install import ROOT, Suite, Unavailable, install
from official.results import Outcome, judge, scenario_names, summary
from official.runs import EXTENSIONS, Runner, ServerGone

NEWEST = "2026-07-28"
SPOKEN = {
    "server": ("2025-03-26", "2025-06-18", "2025-11-25", NEWEST),
    "client": ("2025-03-26", "2025-06-18", "2025-11-25", NEWEST),
}
EXTENDED = ("2025-11-25", NEWEST)  # the suite lists extensions at no revision, and runs them at each when it is told to
OF_STREAMS = ("server-sse-multiple-streams",)  # what it calls is answered with JSON unless the server is told otherwise
MOST_SECONDS = 1500.0  # for everything; scenarios that do not fit are reported as not run
UNAVAILABLE = 3


def main() -> int:
    given = _arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # leave by the door, where our children are ended
    sides = [side for side in ("server", "client") if getattr(given, side)] or ["server", "client"]
    try:
        suite = install(ROOT / ".cache" / "conformance")
        chosen = {(side, version): _chosen(suite, side, version, given) for side, version in _spoken(sides, given)}
    except Unavailable as error:
        print(f"conformance: nothing was run. {error}", file=sys.stderr)
        return UNAVAILABLE
    if not any(chosen.values()):
        version = given.spec_version or "any revision"
        print(f"conformance: there is no scenario {given.scenario!r} at {version}", file=sys.stderr)
        return 2
    folder = _folder(given.keep)
    try:
        text, code = summary(_run(suite, folder, chosen, given.workers))
    finally:
        if not given.keep:
            shutil.rmtree(folder, ignore_errors=True)
    print(f"\n{text}")
    if given.keep:
        print(f"\nwhat the suite wrote is in {folder.relative_to(ROOT)}")
    return code


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="The official conformance suite against our server and client.")
    parser.add_argument("--server", action="store_true", help="only the server's scenarios")
    parser.add_argument("--client", action="store_true", help="only the client's scenarios")
    parser.add_argument("--scenario", metavar="NAME", help="only this one")
    parser.add_argument("--spec-version", metavar="V", help="only this revision")
    parser.add_argument("--workers", metavar="N", type=int, default=1, help="processes of our server")
    parser.add_argument("--keep", action="store_true", help="keep what the suite writes")
    return parser.parse_args()


def _spoken(sides: list[str], given: argparse.Namespace) -> list[tuple[str, str]]:
    """Each side with each revision that it is shown in."""
    told = given.spec_version
    return [(side, version) for side in sides for version in ((told,) if told else SPOKEN[side])]


def _chosen(suite: Suite, side: str, version: str, given: argparse.Namespace) -> list[str]:
    names = [*scenario_names(suite.listing(side, version))]
    if side == "client" and version in EXTENDED:
        names += [name for name in EXTENSIONS if name not in names]
    return [name for name in names if given.scenario in (None, name)]


def _folder(keep: bool) -> Path:
    if not keep:
        return Path(tempfile.mkdtemp(prefix="conformance-"))
    folder = ROOT / ".cache" / "conformance-results"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def _run(suite: Suite, folder: Path, chosen: dict[tuple[str, str], list[str]], workers: int) -> list[Outcome]:
    deadline = time.monotonic() + MOST_SECONDS
    found: list[Outcome] = []
    for (side, version), names in chosen.items():
        if names:
            (folder / version).mkdir(exist_ok=True)
            runner = Runner(suite, folder / version, version, workers)
            run = _run_server if side == "server" else _run_client
            found += run(runner, deadline, names, version)
    return found


def _run_server(runner: Runner, deadline: float, names: list[str], version: str) -> list[Outcome]:
    streamed = [name for name in names if name in OF_STREAMS]
    plain = _serve_for(runner, deadline, [name for name in names if name not in OF_STREAMS], version)
    return plain + _serve_for(runner, deadline, streamed, version, "--always-stream")


def _serve_for(runner: Runner, deadline: float, names: list[str], version: str, *options: str) -> list[Outcome]:
    found: list[Outcome] = []
    if not names:
        return found
    try:
        with runner.serve(*options) as served:
            for name in names:
                served.check()
                found.append(_one(runner.server_scenario, deadline, f"server {version}", name, served.url))
    except ServerGone as error:
        print(f"conformance: {error}", file=sys.stderr)
        found += [_not_run(f"server {version}", name, "our server is gone") for name in names[len(found) :]]
    return found


def _run_client(runner: Runner, deadline: float, names: list[str], version: str) -> list[Outcome]:
    return [_one(runner.client_scenario, deadline, f"client {version}", name) for name in names]


def _one(run: Callable[..., Outcome], deadline: float, side: str, name: str, *more: str) -> Outcome:
    if time.monotonic() > deadline:
        return _not_run(side, name, "no time was left")
    started = time.monotonic()
    outcome = replace(run(name, *more), side=side)
    verdict = "ok" if outcome.good else ", ".join(outcome.problems)
    print(f"{side} {name}: {verdict} ({time.monotonic() - started:.1f} s)", flush=True)
    return outcome


def _not_run(side: str, name: str, why: str) -> Outcome:
    found = judge(side, name, [], code=0)
    return Outcome(side, name, found.counts, [f"not run: {why}"])


if __name__ == "__main__":
    sys.exit(main())
