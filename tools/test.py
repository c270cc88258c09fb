"""`make test`: all tests with this Python, then the official conformance suite.

Fails when a run fails or when no test ran. Where the registries that hold the suite cannot be reached, it goes on
without the suite and prints why; where `CI` is `true`, it fails. `make pythons` runs the tests with the other Pythons.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORKERS = str(min(8, 2 * (os.cpu_count() or 1)))  # tests wait for processes and sockets about as long as they work
UNAVAILABLE = 3  # how tools/conformance.py ends when nothing could be installed and so nothing was run


def main() -> int:
    return run_tests([sys.executable], sys.argv[1:]) or (0 if sys.argv[1:] else run_suite())


def run_tests(python: list[str], options: list[str], env: dict[str, str] | None = None) -> int:
    """pytest's exit code; 5 (nothing collected) is a failure like any other."""
    words = [*python, "-m", "pytest", "-q", "-n", WORKERS, "--dist", "worksteal", *options]
    return subprocess.call(words, cwd=ROOT, env={**os.environ, **(env or {})})


def run_suite() -> int:
    """The official suite over HTTP: our authorization server, then our server and our client beside each other."""
    print("\n=== the official conformance suite", flush=True)
    code = subprocess.call(_tool("authorization.py"), cwd=ROOT)  # which also installs it
    if code:
        return 0 if code == UNAVAILABLE and os.environ.get("CI") != "true" else code
    with tempfile.TemporaryFile("w+") as said:
        client = subprocess.Popen(_tool("conformance.py", "--client"), cwd=ROOT, stdout=said, stderr=said)
        try:
            code = subprocess.call(_tool("conformance.py", "--server"), cwd=ROOT)
            code = client.wait() or code
        finally:
            client.terminate()  # nothing, where it has ended
        said.seek(0)
        print(said.read(), flush=True)
    return code


def _tool(name: str, *words: str) -> list[str]:
    return [sys.executable, str(ROOT / "tools" / name), *words]


if __name__ == "__main__":
    sys.exit(main())
