"""examples/login.py, and the page about authorization: what they show is what happens."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

import interlock
from support.auth_peer import GuardedPeer
from support.examples import loaded
from support.http_peer import server

PAGE = Path(__file__).resolve().parents[1] / "docs" / "authorization.md"
TOOLS = {"tools": [{"name": "report", "inputSchema": {"type": "object"}}], "ttlMs": 0, "cacheScope": "private"}


async def test_the_example_logs_in_once_and_lists_tools(tmp_path, capsys):
    main = loaded("login.py").main
    async with GuardedPeer(server(tools_list=TOOLS)) as host:
        words = [host.url, "--tokens", str(tmp_path / "t")]
        assert await main([*words, "--headless"]) == 1
        assert "Nobody is logged in" in capsys.readouterr().out
        for _ in range(2):
            assert await main(words, login=host.login, redirect_uri="http://127.0.0.1:1/cb") == 0
            assert capsys.readouterr().out == "report: \n"
        assert len(host.visits) == 1
        assert await main([*words, "--headless"]) == 0
        host.issuer.more = {"code_challenge_methods_supported": ["plain"]}
        host.revoked.add("access-1")
        host.issuer.refreshes.clear()
        assert await main(words) == 1
        assert "No token: the authorization server does not say" in capsys.readouterr().out


def calls_in(page: str) -> list[ast.Call]:
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) >= 3
    trees = [
        ast.parse("async def page():\n" + "".join(f"    {line}\n" for line in block.splitlines())) for block in blocks
    ]
    return [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]


def test_every_call_on_the_page_has_words_that_exist():
    found = 0
    for call in calls_in(PAGE.read_text(encoding="utf-8")):
        kind = getattr(interlock, call.func.id, None) if isinstance(call.func, ast.Name) else None
        if kind is not None:
            names = inspect.signature(kind).parameters
            assert {keyword.arg for keyword in call.keywords} <= set(names), ast.unparse(call)
            found += 1
    assert found >= 5


@pytest.mark.parametrize("kind", ["OAuth", "ClientCredentials", "EnterpriseManaged", "WorkloadIdentity"])
def test_every_plan_is_on_the_page(kind):
    assert f"`{kind}(" in PAGE.read_text(encoding="utf-8")
