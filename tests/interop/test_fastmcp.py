"""FastMCP, which stands on the official SDK 2.x, as a server and as a client: the daily things in both eras."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from interlock import Client
from interlock.protocol.client.probe import Verdicts
from interop.environments import PEERS
from interop.test_our_client import VISITS
from interop.told import story
from support.wire_peer import HANDSHAKE, MODERN

SERVER = Path(__file__).parents[1] / "support" / "servers" / "basic.py"
BOTH = (HANDSHAKE[-1], MODERN[-1])


@pytest.fixture
def server_command(peer_python):
    return [peer_python("fastmcp"), str(PEERS / "fastmcp_server.py")]


@pytest.mark.parametrize("revision", BOTH)
async def test_our_client(server_command, revision):
    wanted = None if revision in MODERN else revision  # the newest one is found without being named

    def elicit(params):
        return {"action": "accept", "content": {"seat": "4A"}}

    async with Client(server_command, revision=wanted, verdicts=Verdicts(), elicit=elicit) as client:
        assert client.revision == revision
        assert (client.server_info.name, client.server_info.version) == ("peer", "4.3")
        for visit in VISITS:
            await visit(client)
        asked = await client.call_tool("ask_seat")
        # FastMCP itself cannot ask in the stateless era.
        assert asked.is_error if revision in MODERN else asked.text == "accept 4A"


@pytest.mark.parametrize(("mode", "revision"), [("legacy", HANDSHAKE[-1]), ("auto", MODERN[-1])])
def test_our_server(peer_python, tmp_path, mode, revision):
    script = str(PEERS / "fastmcp_client.py")
    saw = story([peer_python("fastmcp"), script, mode, str(tmp_path / "status"), sys.executable, str(SERVER)])
    assert saw["revision"] == revision
    assert "blocks" in {tool["name"] for tool in saw["tools"]}
    assert [each["uri"] for each in saw["resources"]] == ["note://one", "note://bytes"]
    assert saw["read text"][0]["text"] == "the first note"
    assert saw["read nothing"]["error"]["code"] == (-32602 if revision in MODERN else -32002)
    assert saw["greet"]["messages"][0]["content"]["text"] == "Greet Ada, who is fine."
    assert saw["record"]["structuredContent"] == {"answer": 42}
    kinds = [block["type"] for block in saw["blocks"]["content"]]
    assert kinds == ["text", "image", "audio", "resource", "resource_link"]
    assert saw["fail tool"]["content"] == [{"type": "text", "text": "out of paper"}]
    assert saw["progress of steps"] == [[step, 3, f"step {step}"] for step in (1, 2, 3)]
    assert ["error", {"said": "error"}] in saw["logs"]
    assert saw["stopped by cancelling"]["content"] == [{"type": "text", "text": "True"}]
    assert saw["asked"] == ["Who?"]
    assert saw["exit status"] == "0"
