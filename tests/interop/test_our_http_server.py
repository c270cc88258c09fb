"""The client of the official SDK over HTTP: it must see what it sees over stdio, where every part is looked at."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.wire_peer import MODERN

HERE = Path(__file__).parent
SERVER = str(HERE.parent / "support" / "servers" / "basic.py")
OWN = {
    "exit status",  # of a process
    "notices",  # come in the order in which streams are read
    # both are asked at once, on another connection than the one whose end cancels: either may be noticed first
    "stopped by cancelling",
    "stopped by timeout",
}


@pytest.fixture
def address() -> Iterator[str]:
    """Our server on a free port."""
    command = [sys.executable, "-m", "interlock", "run", SERVER, "--http", "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    try:
        line = process.stderr.readline()  # type: ignore[union-attr]
        yield re.findall(r"http://\S+", line)[0]
    finally:
        process.terminate()
        process.communicate(timeout=30)


def saw(python: str, mode: str, status: Path, *target: str) -> dict[str, Any]:
    command = [python, str(HERE / "peers" / "mcp2_client.py"), mode, str(status), *target]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def without_references(told: Any) -> Any:
    """Failures that are kept from clients have a number of their own each."""
    return json.loads(re.sub(r"reference [0-9a-f]{8}", "reference", json.dumps(told)))


@pytest.mark.parametrize("mode", [*MODERN, "auto"])
def test_it_sees_over_http_what_it_sees_over_stdio(
    peer_python: Callable[[str], str], tmp_path: Path, address: str, mode: str
):
    python = peer_python("mcp2")
    pipe = saw(python, mode, tmp_path / "a", sys.executable, SERVER)
    web = saw(python, mode, tmp_path / "b", address)
    assert web["revision"] == MODERN[-1]
    assert web.keys() == pipe.keys()
    different = {
        name: (without_references(web[name]), without_references(pipe[name]))
        for name in pipe.keys() - OWN
        if without_references(web[name]) != without_references(pipe[name])
    }
    assert different == {}
