"""The environments that the peers run in: one per peer below .cache/interop, made anew when its pins change."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.append(str(REPOSITORY / "tools"))

from official import install  # noqa: E402 - it lives among the tools

PEERS = Path(__file__).resolve().parent / "peers"
REQUIREMENTS = REPOSITORY / "requirements"
CACHE = REPOSITORY / ".cache" / "interop"
PINS = {
    "mcp1": REQUIREMENTS / "interop-mcp1.txt",
    "mcp1-6": REQUIREMENTS / "interop-mcp1-6.txt",
    "mcp1-9": REQUIREMENTS / "interop-mcp1-9.txt",
    "mcp2": REQUIREMENTS / "interop-mcp2.txt",
    "fastmcp": REQUIREMENTS / "bench-fastmcp.txt",  # the release the benchmark takes
    "smolagents": REQUIREMENTS / "interop-smolagents.txt",
}
STAMP = "made-for.txt"
UNREACHABLE = "the package registry cannot be reached"
PIN_MISTAKES = ("EUSAGE", "EINTEGRITY")  # npm's words for pins that are wrong, with which nothing should be skipped
_INSTALL_SECONDS = 300


class RegistryUnreachable(Exception):
    """pip or npm could not install what is pinned; the text is its last word."""


def python_of(name: str, pins: Path, cache: Path = CACHE) -> str:
    """The interpreter of the environment `name`, made now if it is not there or was made for other pins."""
    directory = cache / name
    cache.mkdir(parents=True, exist_ok=True)
    python = directory / "bin" / "python"
    wanted = made_for(pins)
    stamp = directory / STAMP
    with locked(cache / f"{name}.lock"):
        if not stamp.is_file() or stamp.read_text() != wanted:
            shutil.rmtree(directory, ignore_errors=True)
            subprocess.run([sys.executable, "-m", "venv", str(directory)], check=True, stdin=subprocess.DEVNULL)
            _install(str(python), pins)
            stamp.write_text(wanted)  # last: an environment that was left half made has none
    return str(python)


def node_project(cache: Path = CACHE, pinned: Path = PEERS) -> tuple[str, Path]:
    """Node, and the folder with the packages of the TypeScript peers; made now if they are not there as pinned."""
    home = cache / "typescript"
    cache.mkdir(parents=True, exist_ok=True)
    wanted = f"{install.NODE}\n{(pinned / 'package-lock.json').read_text()}"
    stamp = home / STAMP
    with locked(cache / "typescript.lock"):
        if not stamp.is_file() or stamp.read_text() != wanted:
            shutil.rmtree(home, ignore_errors=True)
            home.mkdir()
            _get_packages(home, pinned)
            stamp.write_text(wanted)
    return str(install.Node(home).node), home / "project"


def script_in(project: Path, name: str) -> str:
    """A script of the peers, copied into the project: a module finds its packages from where it lies."""
    fresh = project / f"{os.getpid()}-{name}"
    shutil.copy(PEERS / name, fresh)
    return str(fresh.replace(project / name))  # at once: another worker may be reading it


def _get_packages(home: Path, pinned: Path) -> None:
    try:
        install.get_packages(install.get_node(home), pinned, home / "project", "the JavaScript packages")
    except install.Unavailable as reason:
        told = home / "project" / "install.log"  # all of it: the reason is only the end
        if told.is_file() and any(mistake in told.read_text() for mistake in PIN_MISTAKES):
            raise
        raise RegistryUnreachable(_without_addresses(str(reason))) from None


def made_for(pins: Path) -> str:
    """What an environment is good for: these pins under this Python."""
    return f"{sys.version}\n{pins.read_text()}"


def unavailable(reason: RegistryUnreachable, environment: Mapping[str, str] = os.environ) -> NoReturn:
    """Without a registry there are no peers: skipped at home, a failure where everything must have run."""
    told = f"{UNREACHABLE}: {reason}"
    if environment.get("CI") == "true":
        pytest.fail(told, pytrace=False)
    pytest.skip(told)


def _install(python: str, pins: Path) -> None:
    command = [python, "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]
    try:
        subprocess.run(
            [*command, "--retries", "2", "-r", str(pins)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_INSTALL_SECONDS,
            check=True,
        )
    except subprocess.TimeoutExpired:
        raise RegistryUnreachable(f"pip took more than {_INSTALL_SECONDS} s") from None
    except subprocess.CalledProcessError as failed:
        raise RegistryUnreachable(_last_error(failed.stderr)) from None


def _last_error(text: str) -> str:
    """pip's last complaint, without the addresses of the machine it was made on."""
    errors = [line for line in text.splitlines() if line.startswith("ERROR")]
    return _without_addresses(errors[-1] if errors else text.strip()[-200:])


def _without_addresses(text: str) -> str:
    return re.sub(r"\S+://\S+", "…", text)


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Two workers of one test run must not make the same thing at once. False: somebody does, and it is not waited."""
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
        else:
            yield True
