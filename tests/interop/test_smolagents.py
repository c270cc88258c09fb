"""smolagents as a client of our server. It refuses a server if the schema of any tool lacks `properties`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from interop.environments import PEERS
from interop.told import our_server, served, story

SERVER = str(Path(__file__).parents[1] / "support" / "servers" / "no_arguments.py")


@pytest.fixture
def client(peer_python, tmp_path):
    return [peer_python("smolagents"), str(PEERS / "smolagents_client.py"), str(tmp_path / "status")]


def check_tools(seen):
    assert seen["inputs"].keys() == {"count", "describe", "echo"}
    assert seen["inputs"]["count"] == seen["inputs"]["describe"] == {}
    assert seen["inputs"]["echo"]["text"]["type"] == "string"
    assert seen["count"] == {"count": 3}
    assert seen["describe"] == "0 arguments"
    assert seen["echo"] == "hé"


def test_tools_without_arguments_over_stdio(client):
    seen = story([*client, sys.executable, SERVER])
    check_tools(seen)
    assert seen["exit status"] == "0"


def test_tools_without_arguments_over_http(client, tmp_path):
    with served([*our_server(SERVER), "--http", "--port", "0"], tmp_path / "stderr") as address:
        check_tools(story([*client, address]))
