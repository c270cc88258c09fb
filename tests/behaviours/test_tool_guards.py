"""What the specification demands of every server that has tools: limited calls and outputs that were looked at."""

from __future__ import annotations

import pytest

from interlock import Client, Rate, RateLimits, Server
from interlock.testing import MemoryClient
from support.http_socket import served
from support.wire_peer import ALL, MODERN

FEW = Rate(0.001, 3)  # three at once, and the next one a quarter of an hour later


def guarded(**facts):
    server = Server("guarded", **facts)

    @server.tool
    async def look(text: str = "seen") -> dict[str, str]:
        return {"text": text}

    return server


async def outcomes(client, count):
    return [(await client.call_tool("look")).is_error for _ in range(count)]


@pytest.mark.requirement("TOOLS-33", "TOOLS-031")
@pytest.mark.parametrize("revision", ALL)
async def test_calls_are_limited_where_the_author_says_so(revision):
    server = guarded(rate_limits=RateLimits(calls=FEW, local=True))
    async with MemoryClient(server, revision=revision) as client:
        assert await outcomes(client, 5) == [False, False, False, True, True]
        refused = await client.call_tool("look")
        assert "Try again in" in refused.text and refused.structured is None
        assert [tool.name for tool in await client.list_tools()] == ["look"]  # only calls are limited


@pytest.mark.requirement("TOOLS-031")
@pytest.mark.parametrize("revision", MODERN)
async def test_calls_over_http_are_limited_also_where_local_ones_are_not(revision):
    app = guarded(rate_limits=RateLimits(calls=FEW)).asgi()
    async with served(app) as port, Client(f"http://127.0.0.1:{port}/mcp", revision=revision) as client:
        assert await outcomes(client, 4) == [False, False, False, True]


@pytest.mark.requirement("TOOLS-34", "TOOLS-032")
@pytest.mark.parametrize("revision", ALL)
async def test_every_output_passes_what_the_author_puts_in_its_way(revision):
    def sanitize(name, result):
        text = result["content"][0]["text"].replace("<script>", "")
        return {**result, "content": [{"type": "text", "text": f"{name}: {text}"}], "structuredContent": {"text": ""}}

    async with MemoryClient(guarded(sanitize=sanitize), revision=revision) as client:
        result = await client.call_tool("look", {"text": "<script>x"})
        assert result.text == 'look: {"text":"x"}'
        assert result.structured == ({"text": ""} if revision >= "2025-06-18" else None)
        assert "<script>" not in "".join(str(frame) for frame in client.transcript.frames("server"))
