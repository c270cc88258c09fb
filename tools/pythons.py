"""`make pythons`: the tests with every other Python found here.

make pythons                         interpreters of this machine, and of the folders `make debian-pythons` has made
make pythons ONLY="3.15"             of one version, or of several
make pythons ARGUMENTS="-x tests/wire"             with arguments for pytest

Of each minor version the oldest is used, since a newer one has the same features and fewer defects; the one that `make
test` uses is left out. The runs leave out what says nothing new about a Python: the peers' environments, the second
carrier of tests that run over both (child processes have tests of their own, which stay), and of a test's many cases
four in five: every test runs with every Python, every case with one. A run that fails, or runs no test, fails; a
version that is not found is not missed.
"""

from __future__ import annotations

import argparse
import glob
import os
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from debian import SUITES, Unusable, enter, find_pythons, make_folder
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
    "tests/test_pythons_tool.py",
)
OTHERS = [*(f"--ignore={path}" for path in ONCE), "-k", "not stdio]", "--every", "5"]
VERSIONS = ("3.11", "3.12", "3.13", "3.14", "3.15")
PROBE = "import sys, venv, ensurepip; print('.'.join(map(str, sys.version_info[:3])))"
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


class Python(NamedTuple):
    """An interpreter: its whole version, its path, and, where it is one of Debian's folders, the way into it."""

    version: str
    path: str
    enter: tuple[str, ...] = ()
    suite: str = ""

    @property
    def minor(self) -> str:
        return ".".join(self.version.split(".")[:2])


def main() -> int:
    given, more = parse_arguments()
    for suite in given.debian:
        make_folder(suite)
    found = find_in_debian(given.debian) if given.debian else find_other_pythons()
    wanted = [python for python in found if not given.only or {python.minor, python.version} & set(given.only)]
    if not wanted and (given.debian or given.only):
        print("pythons: no such Python was found", file=sys.stderr)
        return 1
    for python in wanted:
        print(f"\n=== Python {python.version} {python.suite}".rstrip(), flush=True)
        command = [*python.enter, environment(python)]
        if code := run_tests(command, [*OTHERS, *more], {"PROPERTIES": "0.2"}):
            return code
    return 0


def parse_arguments() -> tuple[argparse.Namespace, list[str]]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], metavar="VERSION", help="3.15, or 3.15.2")
    parser.add_argument("--debian", action="append", default=[], choices=SUITES, help="only there; made if missing")
    return parser.parse_known_args()


def find_other_pythons() -> list[Python]:
    """Of each minor version the oldest, in order, unless it is the running one."""
    running = probe([sys.executable])
    return [python for python in choose_oldest([*find_here(), *find_in_debian(SUITES)]) if python.version != running]


def choose_oldest(found: list[Python]) -> list[Python]:
    """One of each minor version, by numbers (3.9 is older than 3.11); of equals the first."""
    chosen: dict[str, Python] = {}
    for python in sorted(found, key=lambda python: [int(part) for part in python.version.split(".")]):
        chosen.setdefault(python.minor, python)
    return list(chosen.values())


def find_here() -> list[Python]:
    """The working interpreters of this machine, on PATH or among pyenv's."""
    pyenv = os.path.join(os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv"), "versions", "*", "bin")
    folders = [*os.environ.get("PATH", "").split(os.pathsep), *glob.glob(pyenv)]
    paths = {os.path.join(folder, f"python{version}") for folder in folders for version in VERSIONS if folder}
    return [Python(version, path) for path in sorted(paths) if (version := probe([path]))]


def find_in_debian(suites: Collection[str]) -> list[Python]:
    """The interpreters in the folders of these suites, as far as they exist."""
    found = [(suite, name, tuple(enter(suite))) for suite, name in find_pythons() if suite in suites]
    return [Python(version, name, way, suite) for suite, name, way in found if (version := probe([*way, name]))]


def probe(command: list[str]) -> str | None:
    """The whole version of an interpreter; nothing where it does not work or cannot make environments."""
    try:
        return subprocess.run([*command, "-c", PROBE], check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def environment(python: Python) -> str:
    """The path of a Python with the pins of requirements/dev.txt that tests need, made once per change of them."""
    folder = ROOT / "-".join(filter(None, (".venv", python.version, python.suite)))
    inside, stamp = folder / "bin" / "python", folder / "ready"
    pins = [line for line in (ROOT / "requirements" / "dev.txt").read_text().splitlines() if line.startswith(NEEDED)]
    wanted = "\n".join(pins)
    if not stamp.exists() or stamp.read_text() != wanted:
        pip = [*python.enter, str(inside), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.check_call([*python.enter, python.path, "-m", "venv", "--clear", str(folder)])
        subprocess.check_call([*pip, *pins])
        subprocess.check_call([*pip, "--no-build-isolation", "--no-deps", "-e", str(ROOT)])
        stamp.write_text(wanted)
    return str(inside)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Unusable as reason:
        sys.exit(f"pythons: {reason}")
