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
REQUIREMENTS = REPOSITORY / "requirements"
CACHE = REPOSITORY / ".cache" / "interop"
PINS = {
    "mcp1": REQUIREMENTS / "interop-mcp1.txt",
    "mcp2": REQUIREMENTS / "interop-mcp2.txt",
    "fastmcp": REQUIREMENTS / "bench-fastmcp.txt",  # the release the benchmark takes
}
STAMP = "made-for.txt"
UNREACHABLE = "the package registry cannot be reached"
_INSTALL_SECONDS = 300


class RegistryUnreachable(Exception):
    """pip could not install what is pinned; the text is pip's last word."""


def python_of(name: str, pins: Path, cache: Path = CACHE) -> str:
    """The interpreter of the environment `name`, made now if it is not there or was made for other pins."""
    directory = cache / name
    cache.mkdir(parents=True, exist_ok=True)
    python = directory / "bin" / "python"
    wanted = made_for(pins)
    stamp = directory / STAMP
    with _locked(cache / f"{name}.lock"):
        if not stamp.is_file() or stamp.read_text() != wanted:
            shutil.rmtree(directory, ignore_errors=True)
            subprocess.run([sys.executable, "-m", "venv", str(directory)], check=True, stdin=subprocess.DEVNULL)
            _install(str(python), pins)
            stamp.write_text(wanted)  # last: an environment that was left half made has none
    return str(python)


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
    return re.sub(r"\S+://\S+", "…", errors[-1] if errors else text.strip()[-200:])


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Two workers of one test run must not make the same environment at once."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
