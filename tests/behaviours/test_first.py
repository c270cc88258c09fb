import pytest

from support.wire_peer import ALL, CARRIERS, client_under_test, server_under_test


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", ALL)
async def test_one_author_function_answers(carrier, revision):
    async with server_under_test(carrier, revision) as peer:
        result = await peer.result("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})
        assert result["content"] == [{"type": "text", "text": "3"}]
        await peer.result("tools/list", {})
        await peer.result("tools/call", {"name": "blocks", "arguments": {}})
        await peer.result("resources/read", {"uri": "note://one"})
        await peer.result("prompts/get", {"name": "greet", "arguments": {"name": "Ada"}})


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", ALL)
async def test_client(carrier, revision):
    async def script(peer):
        while True:
            frame = await peer.receive()
            if frame["method"] == "server/discover":
                if revision == "2026-07-28":
                    result = {
                        "resultType": "complete",
                        "supportedVersions": [revision],
                        "capabilities": {"tools": {}},
                        "ttlMs": 0,
                        "cacheScope": "private",
                    }
                    peer.send({"jsonrpc": "2.0", "id": frame["id"], "result": result})
                else:
                    peer.send({"jsonrpc": "2.0", "id": frame["id"], "error": {"code": -32601, "message": "no"}})
            elif frame["method"] == "initialize":
                result = {
                    "protocolVersion": revision,
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "s", "version": "1"},
                }
                peer.send({"jsonrpc": "2.0", "id": frame["id"], "result": result})
            elif frame["method"] == "tools/call":
                result = {"content": [{"type": "text", "text": "hi"}]}
                if revision == "2026-07-28":
                    result["resultType"] = "complete"
                peer.send({"jsonrpc": "2.0", "id": frame["id"], "result": result})

    async with client_under_test(carrier, revision, script, check=False) as (client, peer):
        await client.open()
        assert client.revision == revision
        assert (await client.call_tool("x")).text == "hi"
