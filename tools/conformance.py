"""`make conformance`: the official suite against our server and our client, over HTTP.

python tools/conformance.py                        both sides, newest revision
python tools/conformance.py --server               only examples/everything.py under the suite's client
python tools/conformance.py --client               only conformance/client.py under the suite's servers
python tools/conformance.py --scenario caching     one scenario, of whichever side has it
python tools/conformance.py --keep                 leave what the suite wrote in .cache/conformance-results

Every scenario runs alone. The exit code is 0 when every check of every scenario succeeded, was skipped or only
informs; 1 when anything failed, warned, did not end, ended badly or checked nothing; 3 when the suite could not be had
and nothing was run. Scenarios of authorization (auth/…) are not run: they belong to a part that does not exist yet.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from official.install import ROOT, Suite, Unavailable, install
from official.results import Outcome, judge, scenario_names, summary
from official.runs import Runner, ServerGone

NEWEST = "2026-07-28"
MOST_SECONDS = 1500.0  # for everything; scenarios that do not fit are reported as not run
UNAVAILABLE = 3


def main() -> int:
    given = _arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # leave by the door, where our children are ended
    sides = [side for side in ("server", "client") if getattr(given, side)] or ["server", "client"]
    try:
        suite = install(ROOT / ".cache" / "conformance")
        chosen = {side: _chosen(suite, side, given) for side in sides}
    except Unavailable as error:
        print(f"conformance: nothing was run. {error}", file=sys.stderr)
        return UNAVAILABLE
    if not any(chosen.values()):
        print(f"conformance: there is no scenario {given.scenario!r} at {given.spec_version}", file=sys.stderr)
        return 2
    folder = _folder(given.keep)
    try:
        text, code = summary(_run(Runner(suite, folder, given.spec_version), chosen))
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
    parser.add_argument("--spec-version", default=NEWEST, metavar="V", help=f"{NEWEST} unless told")
    parser.add_argument("--keep", action="store_true", help="keep what the suite writes")
    return parser.parse_args()


def _chosen(suite: Suite, side: str, given: argparse.Namespace) -> list[str]:
    names = scenario_names(suite.listing(side, given.spec_version))
    return [name for name in names if not name.startswith("auth/") and given.scenario in (None, name)]


def _folder(keep: bool) -> Path:
    if not keep:
        return Path(tempfile.mkdtemp(prefix="conformance-"))
    folder = ROOT / ".cache" / "conformance-results"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def _run(runner: Runner, chosen: dict[str, list[str]]) -> list[Outcome]:
    deadline = time.monotonic() + MOST_SECONDS
    found: list[Outcome] = []
    if names := chosen.get("server"):
        try:
            with runner.serve() as served:
                for name in names:
                    served.check()
                    found.append(_one(runner.server_scenario, deadline, "server", name, served.url))
        except ServerGone as error:
            print(f"conformance: {error}", file=sys.stderr)
            found += [_not_run("server", name, "our server is gone") for name in names[len(found) :]]
    found += [_one(runner.client_scenario, deadline, "client", name) for name in chosen.get("client", [])]
    return found


def _one(run: Callable[..., Outcome], deadline: float, side: str, name: str, *more: str) -> Outcome:
    if time.monotonic() > deadline:
        return _not_run(side, name, "no time was left")
    started = time.monotonic()
    outcome = run(name, *more)
    verdict = "ok" if outcome.good else ", ".join(outcome.problems)
    print(f"{side} {name}: {verdict} ({time.monotonic() - started:.1f} s)", flush=True)
    return outcome


def _not_run(side: str, name: str, why: str) -> Outcome:
    found = judge(side, name, [], code=0)
    return Outcome(side, name, found.counts, [f"not run: {why}"])


if __name__ == "__main__":
    sys.exit(main())
