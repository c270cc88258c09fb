"""`make pythons`: the tests with every other Python that is here.

They leave out what says nothing new about them: the peers' environments, the second carrier of tests that run over both
(child processes have tests of their own, which stay), and of a test's many cases four in five: every test runs with
every Python, every case with one. A Python that is not here is not missed; a run that fails, or runs no test, fails.
"""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
import sys
from pathlib import Path

from test import run_tests

ROOT = Path(__file__).resolve().parent.parent
ONCE = (  # what speaks about the tests, the tools or other programs, not about Interlock on this Python
    "tests/interop",
    "tests/behaviours/test_manifest.py",
    "tests/support",
    "tests/test_asgi_servers.py",
    "tests/test_conformance_tool.py",
    "tests/test_docs_pages.py",
    "tests/test_docs_tool.py",
)
OTHERS = [*(f"--ignore={path}" for path in ONCE), "-k", "not stdio]", "--every", "5"]
VERSIONS = ((3, 11), (3, 12), (3, 13))
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
    code = 0
    for version in VERSIONS:
        if code == 0 and version != sys.version_info[:2] and (found := find_python(version)):
            print(f"\n=== Python {version[0]}.{version[1]}", flush=True)
            code = run_tests(environment(found, version), OTHERS, {"PROPERTIES": "0.2"})
    return code


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
