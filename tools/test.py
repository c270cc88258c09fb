"""`make test`: all tests with this Python, the official conformance suite, then every other Python that is here.

The others leave out what says nothing new about them: the peers' environments, the second carrier of tests that run
over both (child processes have tests of their own, which stay), and of a test's many cases four in five: every test
runs with every Python, every case with one.

Fails when a run fails or when no test ran. Only where the registries that hold the suite cannot be reached does it go
on without it, and says so.
"""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ONCE = (  # what speaks about the tests, the tools or other programs, not about Interlock on this Python
    "tests/interop",
    "tests/behaviours/test_manifest.py",
    "tests/support",
    "tests/test_asgi_servers.py",
    "tests/test_conformance_tool.py",
)
OTHERS = [*(f"--ignore={path}" for path in ONCE), "-k", "not stdio]", "--every", "5"]
VERSIONS = ((3, 11), (3, 12), (3, 13))
WORKERS = str(min(8, 2 * (os.cpu_count() or 1)))  # tests wait for processes and sockets about as long as they work
UNAVAILABLE = 3  # how tools/conformance.py ends when nothing could be installed and so nothing was run
NEEDED = (
    "msgspec",
    "uvicorn",
    "httptools",
    "uvloop",
    "aiohttp",
    "cryptography",
    "pytest",
    "pytest-xdist",
    "hypothesis",
    "jsonschema-rs",
    "uritemplate",
    "granian",
    "hypercorn",
    "starlette",
    "fastapi",
    "hatchling",
    "editables",
)


def main() -> int:
    code = run_tests(sys.executable, []) or (0 if sys.argv[1:] else run_suite())
    for version in VERSIONS:
        if code == 0 and version != sys.version_info[:2] and (found := find_python(version)):
            print(f"\n=== Python {version[0]}.{version[1]}", flush=True)
            code = run_tests(environment(found, version), OTHERS, {"PROPERTIES": "0.2"})
    return code


def run_tests(python: str, options: list[str], env: dict[str, str] | None = None) -> int:
    """pytest's exit code; 5 (nothing collected) is a failure like any other."""
    words = [python, "-m", "pytest", "-q", "-n", WORKERS, "--dist", "worksteal", *options, *sys.argv[1:]]
    return subprocess.call(words, cwd=ROOT, env={**os.environ, **(env or {})})


def run_suite() -> int:
    """The official suite over HTTP: our authorization server, then our server and our client beside each other."""
    print("\n=== the official conformance suite", flush=True)
    code = subprocess.call(_tool("authorization.py"), cwd=ROOT)  # which also installs it
    if code:
        return 0 if code == UNAVAILABLE else code
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


def find_python(version: tuple[int, int]) -> str | None:
    """A working interpreter of that version: on PATH, or among pyenv's."""
    name = f"python{version[0]}.{version[1]}"
    pyenv = os.path.join(os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv"), "versions")
    candidates = [shutil.which(name), *glob.glob(f"{pyenv}/{version[0]}.{version[1]}.*/bin/{name}")]
    return next((path for path in candidates if path and _works(path)), None)


def _works(path: str) -> bool:
    probe = [path, "-c", "import venv, ensurepip"]
    return subprocess.call(probe, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) == 0


def environment(python: str, version: tuple[int, int]) -> str:
    """The path of a Python with the pins of requirements/dev.txt that tests need, made once per change of them."""
    folder = ROOT / f".venv-{version[0]}.{version[1]}"
    inside, stamp = folder / "bin" / "python", folder / "ready"
    pins = [line for line in (ROOT / "requirements" / "dev.txt").read_text().splitlines() if line.startswith(NEEDED)]
    wanted = "\n".join(pins)
    if not stamp.exists() or stamp.read_text() != wanted:
        pip = [str(inside), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.check_call([python, "-m", "venv", str(folder)])
        subprocess.check_call([*pip, *pins])
        subprocess.check_call([*pip, "--no-build-isolation", "--no-deps", "-e", str(ROOT)])
        stamp.write_text(wanted)
    return str(inside)


if __name__ == "__main__":
    sys.exit(main())
