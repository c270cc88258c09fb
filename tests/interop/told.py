"""What a process of a peer's tells, and the servers over HTTP that say where they are: how the tests start both."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import interlock
from interop.environments import locked
from support.leaks import keep_process

_SOURCE = str(Path(interlock.__file__).resolve().parents[1])
Story = dict[str, Any]
_START_SECONDS = 60
_STORY_SECONDS = 100


def our_python() -> list[str]:
    """Python with the code that is tested, in the command itself: SDKs give a child few variables."""
    return ["env", f"PYTHONPATH={_SOURCE}", sys.executable]


def our_server(file: str) -> list[str]:
    return [*our_python(), "-m", "interlock", "run", file]


def foreign_environment() -> dict[str, str]:
    """Ours, without the path of our code: it is no business of a peer's interpreter."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def story(command: Sequence[str]) -> dict[str, Any]:
    """What the client of a peer saw of a server: the last word of a process that ends by itself, and well."""
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_STORY_SECONDS,
        env=foreign_environment(),
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


class ToldOnce:
    """Stories by their names, each told once for all workers of a test run.

    While another worker tells the one that is wanted, this one tells the rest: sooner or later somebody reads it.
    """

    def __init__(self, folders: pytest.TempPathFactory, what: str, stories: Mapping[str, Callable[[], Story]]) -> None:
        folder = folders.getbasetemp()
        self._folder = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
        self._what = what
        self._stories = stories

    def __call__(self, wanted: str) -> Story:
        kept = self._kept(wanted)
        with locked(kept.with_suffix(".lock"), wait=False) as free:
            if free:
                self._tell(wanted)
        for name in self._stories:
            if not kept.exists():
                self._tell_meanwhile(name)
        with locked(kept.with_suffix(".lock")):
            self._tell(wanted)  # it may have failed over there: let it fail here
        return json.loads(kept.read_text())

    def _tell(self, name: str) -> None:
        kept = self._kept(name)
        if not kept.exists():
            kept.write_text(json.dumps(self._stories[name]()))

    def _tell_meanwhile(self, name: str) -> None:
        with locked(self._kept(name).with_suffix(".lock"), wait=False) as free:
            if free:
                with suppress(
                    Exception, pytest.skip.Exception, pytest.fail.Exception
                ):  # who wants it will see for himself
                    self._tell(name)

    def _kept(self, name: str) -> Path:
        return self._folder / f"{re.sub(r'[^a-z0-9.-]+', '-', f'{self._what} {name}')}.json"


@contextmanager
def served(command: Sequence[str], said: Path, *, lasting: bool = False) -> Iterator[str]:
    """A server over HTTP, by the address that it says on stderr; `said` is the file for that.

    `lasting`: it serves several tests, so that none of them has left it."""
    with said.open("wb") as file:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=file, env=foreign_environment()
        )
    if lasting:
        keep_process(process.pid)
    try:
        yield _address(process, said)
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def breaking(address: str, word: str, said: Path) -> AbstractContextManager[str]:
    """Another address of the same server, behind a wire that breaks once; `said` tells what it saw."""
    relay = Path(__file__).parent / "cutting_relay.py"
    return served([sys.executable, str(relay), str(urlsplit(address).port), word], said)


def _address(process: subprocess.Popen[bytes], said: Path) -> str:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        if found := re.search(r"(http://\S+)\n", said.read_text()):
            return found[1]
        time.sleep(0.02)
    raise AssertionError(f"no address was said: {said.read_text()[-3000:]}")
