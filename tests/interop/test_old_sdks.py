"""Our client finds servers on early releases of the official Python SDK, which know nothing of `server/discover`."""

from __future__ import annotations

import pytest

from interlock import Client
from interlock.client.era_cache import EraCache
from interlock.wire.errors import PeerClosed
from interop.environments import PEERS


@pytest.fixture
def visit(peer, peer_python, tmp_path):
    """Connect, use a tool, and lose the server; how often it was started for that, and what the error quotes."""
    starts = tmp_path / "starts"
    command = [peer_python(peer), str(PEERS / "old_server.py"), str(starts)]

    async def find(revision):
        starts.write_text("")
        async with Client(command, verdicts=EraCache(tmp_path / "eras")) as client:
            assert client.revision == revision
            assert (await client.call_tool("echo", {"text": "hi"})).text == "hi"
            with pytest.raises(PeerClosed) as left:
                await client.call_tool("leave")
            assert left.value.exit_code == 7
            return len(starts.read_text()), left.value.stderr

    return find


@pytest.mark.parametrize("peer", ["mcp1-6"])
async def test_one_that_never_answers_is_found_and_remembered(visit):
    """Its reader has crashed and it ends with the next message it gets: `initialize`, which a second start answers."""
    assert (await visit("2024-11-05"))[0] == 2
    assert (await visit("2024-11-05"))[0] == 1


@pytest.mark.parametrize("peer", ["mcp1-9"])
async def test_what_the_probe_made_one_write_is_not_quoted(visit):
    starts, stderr = await visit("2025-03-26")
    assert starts == 1
    assert stderr.endswith("leaving now")
    assert "server/discover" not in stderr and "validation error" not in stderr
