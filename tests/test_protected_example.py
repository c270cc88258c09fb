"""examples/protected.py: both servers in one application, and nobody in without a token."""

from __future__ import annotations

import importlib.util

from support.asgi import begin, call_tool, post
from support.examples import EXAMPLES


def example():
    spec = importlib.util.spec_from_file_location("protected", EXAMPLES / "protected.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def test_the_example_serves_both_and_asks_for_a_token():
    app = example().protected(8000, "correct horse").asgi()
    assert (await post(app, call_tool("whoami")).answer()).status == 401
    for path, member in (
        ("/.well-known/oauth-protected-resource/mcp", "authorization_servers"),
        ("/.well-known/oauth-authorization-server", "token_endpoint"),
    ):
        talk = await begin(app, None, method="GET", path=path, headers=[(b"host", b"127.0.0.1:8000")]).answer()
        assert talk.status == 200 and member in talk.json
