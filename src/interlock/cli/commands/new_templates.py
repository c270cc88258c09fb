"""The files of a new project, as `interlock new` writes them. `@NAME@` is its name, `@INTERLOCK@` a requirement."""

from __future__ import annotations

__all__ = ["FILES"]

_SERVER = '''\
"""@NAME@: an MCP server. `interlock run server.py` serves it over stdio, with `--http` over HTTP."""

from dataclasses import dataclass

from interlock import Server, ToolError

server = Server("@NAME@", version="0.1.0", instructions="Counts words. Texts are kept until the server ends.")
texts: dict[str, str] = {}


@dataclass
class Counts:
    words: int
    characters: int


@server.tool
async def keep(name: str, text: str) -> Counts:
    """Keep a text under a name, and count it.

    Args:
        name: What to call it; a text of that name is replaced.
        text: The text itself.
    """
    if not name.isidentifier():
        raise ToolError(f"{name!r} is no name for a text: use letters, digits and _")
    texts[name] = text
    server.resource_changed(f"text://{name}")
    return Counts(len(text.split()), len(text))


@server.resource("text://{name}", mime_type="text/plain")
async def text(name: str) -> str:
    """A text that was kept."""
    if name not in texts:
        raise ToolError(f"There is no text {name!r}; there are {sorted(texts)}")
    return texts[name]


@server.prompt
async def shorten(name: str, words: str = "50") -> str:
    """Ask for a text in fewer words."""
    return f"Say the following in {words} words:\\n\\n{await text(name)}"
'''

_TESTS = '''\
"""The server as a client sees it, in memory: no process, no port."""

import pytest
from interlock import SyncClient

from server import server


@pytest.fixture
def client():
    with SyncClient(server) as client:
        yield client


def test_a_text_is_counted_and_kept(client):
    counted = client.call_tool("keep", {"name": "poem", "text": "one two\\nthree"})
    assert counted.structured == {"words": 3, "characters": 13}
    assert client.read_resource("text://poem")[0].text == "one two\\nthree"


def test_a_wrong_name_is_said_to_the_model(client):
    answer = client.call_tool("keep", {"name": "no name", "text": ""})
    assert answer.is_error and "is no name for a text" in answer.text


def test_the_prompt_holds_the_text(client):
    client.call_tool("keep", {"name": "poem", "text": "one two"})
    [message] = client.get_prompt("shorten", {"name": "poem", "words": "1"}).messages
    assert message.content.text == "Say the following in 1 words:\\n\\none two"
'''

_PROJECT = """\
[project]
name = "@NAME@"
version = "0.1.0"
description = "An MCP server."
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["@INTERLOCK@"]

[dependency-groups]
dev = ["pytest"]

[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[tool.setuptools]
py-modules = ["server"]

[tool.pytest.ini_options]
pythonpath = ["."]
"""

_README = """\
# @NAME@

An MCP server with one tool, one resource template and one prompt. Change them in `server.py`.

    python -m pytest                                   # its tests
    interlock run server.py --http                     # serve it on http://127.0.0.1:8000/mcp
    interlock install server.py --to claude-desktop    # start it from a program; see interlock help install

Python 3.11 or newer, with `interlock` and `pytest` installed.
"""

FILES = {
    "server.py": _SERVER,
    "test_server.py": _TESTS,
    "pyproject.toml": _PROJECT,
    "README.md": _README,
    ".gitignore": "__pycache__/\n.pytest_cache/\n.venv/\n*.egg-info/\n",
}
