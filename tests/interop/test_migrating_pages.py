"""The halves of docs/migrating_sdk.md and docs/migrating_fastmcp.md that are written with another library."""

from __future__ import annotations

import subprocess

import pytest

from support.pages import DOCS, blocks_of

ENDS = {
    "migrating_sdk.md": "",
    "migrating_fastmcp.md": "import asyncio\nasyncio.run(test_buy())\n",
}


@pytest.mark.parametrize(("page", "library"), [("migrating_sdk.md", "mcp2"), ("migrating_fastmcp.md", "fastmcp")])
def test_their_code_runs_with_their_library(page, library, peer_python, tmp_path):
    blocks = [block for block in blocks_of(DOCS / page) if block.library is not None]
    assert len(blocks) >= 2 and {block.library for block in blocks} == {library}
    program = "\n\n".join(block.text for block in blocks) + ENDS[page] + "\nprint('ran')\n"
    (tmp_path / "page.py").write_text(program, encoding="utf-8")
    words = [peer_python(library), "-W", "ignore", "page.py"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.stdout.splitlines()[-1:] == ["ran"], done.stderr
