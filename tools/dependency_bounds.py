"""`make lowest`, `make newest`: the tests with the lowest or the newest direct dependencies of pyproject.toml.

Each has an environment of its own (.venv-lowest, .venv-newest) and runs what `make pythons` runs. The newest are asked
for in every run. Further words go to pytest: `make lowest TESTS=tests/transport` runs a part.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from pythons import NEEDED, OTHERS
from test import run_tests

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    bound, *more = sys.argv[1:] or [""]
    if bound not in ("lowest", "newest"):
        sys.exit(f"the first argument must be 'lowest' or 'newest', not {bound!r}")
    python = make_environment(bound)
    print(f"\n=== {bound} dependencies: {', '.join(find_versions(python))}", flush=True)
    return run_tests([python], [*OTHERS, *more], {"PROPERTIES": "0.2"})


def read_dependencies() -> list[Requirement]:
    """The direct dependencies, those of extras included."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    texts = [*project["dependencies"], *(text for extra in project["optional-dependencies"].values() for text in extra)]
    return [Requirement(text) for text in texts]


def lower_bound(dependency: Requirement) -> str:
    found = [each.version for each in dependency.specifier if each.operator == ">="]
    if len(found) != 1:
        raise SystemExit(f"{dependency.name} needs one lower bound (>=) in pyproject.toml")
    return found[0]


def requirements(bound: str) -> list[str]:
    """What pip installs: the dependencies at their bound, and the pinned tools that tests need."""
    wanted: list[str] = []
    for dependency in read_dependencies():
        version = f"=={lower_bound(dependency)}" if bound == "lowest" else str(dependency.specifier)
        wanted.append(f"{dependency.name}{version}" + (f"; {dependency.marker}" if dependency.marker else ""))
    names = {dependency.name for dependency in read_dependencies()}
    pins = (ROOT / "requirements" / "dev.txt").read_text(encoding="utf-8").splitlines()
    return wanted + [pin for pin in pins if pin.startswith(NEEDED) and pin.partition("==")[0] not in names]


def make_environment(bound: str) -> str:
    """The path of its Python."""
    folder = ROOT / f".venv-{bound}"
    inside, stamp = folder / "bin" / "python", folder / "ready"
    wanted = requirements(bound)
    known = stamp.exists() and stamp.read_text(encoding="utf-8") == "\n".join(wanted)
    pip = [str(inside), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if not known:
        subprocess.check_call([sys.executable, "-m", "venv", "--clear", str(folder)])
    if not known or bound == "newest":
        subprocess.check_call([*pip, "--upgrade", *wanted])
    if not known:
        subprocess.check_call([*pip, "--no-build-isolation", "--no-deps", "-e", str(ROOT)])
        stamp.write_text("\n".join(wanted), encoding="utf-8")
    return str(inside)


def find_versions(python: str) -> list[str]:
    """The direct dependencies as they are installed there."""
    names = [dependency.name for dependency in read_dependencies()]
    code = "import sys; from importlib.metadata import version; [print(each, version(each)) for each in sys.argv[1:]]"
    return subprocess.check_output([python, "-c", code, *names], text=True).splitlines()


if __name__ == "__main__":
    sys.exit(main())
