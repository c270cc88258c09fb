"""The official SDKs check structured content against the schema we list: they take all that fits and lose none."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SERVER = HERE.parent / "support" / "servers" / "giving.py"
PLACE = {"city": "Graz", "zip": None}


@pytest.mark.parametrize(("peer", "mode"), [("mcp1", "handshake"), ("mcp2", "handshake"), ("mcp2", "stateless")])
def test_the_sdks_take_what_our_tools_give(peer_python, peer, mode):
    command = [peer_python(peer), str(HERE / "peers" / "data_client.py"), mode, sys.executable, str(SERVER)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr[-3000:]
    saw = json.loads(done.stdout)

    def wrapped(value):
        return value if mode == "stateless" else {"result": value}

    assert [call[:3] for call in saw["calls"]] == [
        ["place", PLACE, False],
        ["number", wrapped(7), False],
        ["numbers", wrapped([1, 2]), False],
        ["maybe", wrapped(PLACE), False],
        ["maybe", wrapped(None), False],
        ["even", {"even": 4}, False],
        ["even", None, True],
        ["wrong", None, True],
        ["pair", wrapped([1, "one"]), False],
        ["by_hand", {"a": [1]}, False],
        ["blocks", None, False],
        ["steps", None, False],
        ["growing", wrapped([1, 2]), False],
        ["fail", None, True],
    ]
    assert json.loads(saw["calls"][7][3][0]["text"]) == {"town": "Graz"}  # not lost
    assert saw["prompt"] == ["text", "text", "text", "image", "audio", "resource", "resource", "resource_link"]
