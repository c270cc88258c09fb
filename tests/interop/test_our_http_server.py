"""The client of the official SDK over HTTP: it must see what it sees over stdio, where every part is looked at."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interop.environments import PEERS
from interop.told import our_server, served, story
from support.wire_peer import HANDSHAKE, MODERN

SERVER = str(Path(__file__).parents[1] / "support" / "servers" / "basic.py")
OWN = {
    "exit status",  # of a process
    "notices",  # come in the order in which streams are read
    # both are asked at once, on another connection than the one whose end cancels: either may be noticed first
    "stopped by cancelling",
    "stopped by timeout",
}


def without_references(told: Any) -> Any:
    """Failures that are kept from clients have a number of their own each."""
    return json.loads(re.sub(r"reference [0-9a-f]{8}", "reference", json.dumps(told)))


@pytest.mark.parametrize("mode", [*HANDSHAKE[1:], *MODERN, "auto"])
def test_it_sees_over_http_what_it_sees_over_stdio(peer_python: Callable[[str], str], tmp_path: Path, mode: str):
    client = [peer_python("mcp2"), str(PEERS / "mcp2_client.py"), mode]
    pipe = story([*client, str(tmp_path / "a"), sys.executable, SERVER])
    with served([*our_server(SERVER), "--http", "--port", "0"], tmp_path / "said") as address:
        web = story([*client, str(tmp_path / "b"), address])
    assert web["revision"] == (MODERN[-1] if mode == "auto" else mode)
    assert web.keys() == pipe.keys()
    different = {
        name: (without_references(web[name]), without_references(pipe[name]))
        for name in pipe.keys() - OWN
        if without_references(web[name]) != without_references(pipe[name])
    }
    assert different == {}
