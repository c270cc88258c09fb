"""Every page of docs/, and the README: each block of code runs, and says what stands below it.

Pages that are looked at more closely have a test of their own and stand in `ELSEWHERE`. What a page takes for granted
is made here, by a function with its name.
"""

from __future__ import annotations

import asyncio
import os
import re
import types
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest

import interlock
from interlock import Client, Context, Protection, Server, SyncClient, hash_password
from interlock.auth.jose.signer import new_key as new_signing_key
from interlock.state.sealing import new_key
from interlock.transport import serve_channel
from interlock.transport.memory import memory_pair
from support.pages import CODE, DATA, DOCS, REASONS, ROOT, blocks_of, commands_in, compiled, run_blocks

ELSEWHERE = {
    "authoring.md": "test_authoring_page.py",
    "cli.md": "test_cli_page.py",
    "client.md": "test_client_page.py",
}
LIBRARIES = ("mcp1", "mcp2", "fastmcp")  # whose code tests/interop/test_migrating_pages.py runs


@dataclass
class Seat:
    row: int


def house() -> Server:
    """The server behind every address and command that a page names."""
    server = Server("house")

    @server.tool
    async def report() -> str:
        return "all is well"

    @server.tool
    async def pay(amount: int) -> str:
        return f"paid {amount}"

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    return server


@pytest.fixture
def elsewhere(monkeypatch):
    """Whoever is called by an address, a command or a file answers from memory; nothing is served for good."""
    served = []
    ours = house()

    def client(kind, target, **options):
        for option in ("auth", "headers"):
            options.pop(option, None)
        return kind(target if isinstance(target, Server) else ours, **options)

    monkeypatch.setattr(interlock, "Client", partial(client, Client))
    monkeypatch.setattr(interlock, "SyncClient", partial(client, SyncClient))
    monkeypatch.setattr(Server, "run", lambda self, carrier="stdio", **options: served.append((carrier, options)))
    return served


def asking(folder, monkeypatch):
    server = Server("bookings")

    async def ask_user(question):
        return {"action": "accept", "content": {"row": 7}}

    given = {"server": server, "target": server, "Server": Server, "Context": Context, "Client": Client, "Seat": Seat}
    return given | {
        "charge": lambda flight, seat: "paid",
        "current": new_key(),
        "previous": new_key(),
        "ask_user": ask_user,
        "open_page": ask_user,
        "ask_model": ask_user,
    }


def authorization(folder, monkeypatch):
    (folder / "key.pem").write_text(new_signing_key().reveal())
    monkeypatch.setenv("REPORTER_SECRET", "secret")
    return {"os": os, "Path": Path, "session": types.SimpleNamespace(id_token="token")}


def authorization_server(folder, monkeypatch):
    """`...` is the resource of the first block; further down the page is an issuer that the first ones name."""
    monkeypatch.setenv("ADA_HASH", hash_password("correct horse"))
    monkeypatch.setenv("NOTES_SECRET", "secret")

    def protection(resource, **options):
        return Protection(resource="https://mcp.example.com/mcp" if resource is ... else resource, **options)

    monkeypatch.setattr(interlock, "Protection", protection)
    here = "http://127.0.0.1:8000"
    issuer = interlock.AuthorizationServer(here, resources=[f"{here}/mcp"], scopes=["notes:read"])
    return {"os": os, "Introspection": interlock.Introspection, "issuer": issuer}


def client_config(folder, monkeypatch):
    (folder / ".vscode").mkdir()
    (folder / "claude_desktop_config.json").write_text('{"mcpServers": {"notes": {"command": "notes"}}}')
    (folder / ".vscode" / "mcp.json").write_text('{"servers": {"notes": {"command": "notes"}}}')
    return {}


def custom_transports(folder, monkeypatch):
    """The channel of a client that has gone by the time it is served."""
    ours, theirs = memory_pair()
    asyncio.run(theirs.close())
    given = {"Client": Client, "partial": partial, "SocketChannel": memory_pair, "serve_channel": serve_channel}
    return given | {"server": house(), "channel": ours, "over": asyncio.Event()}


def http_server(folder, monkeypatch):
    from fastapi import FastAPI

    return {"server": house(), "FastAPI": FastAPI}


def with_a_host(folder, monkeypatch):
    from interlock.host.user import ScriptedUser

    for key in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(key, "key")
    return {"server": house(), "user": ScriptedUser(True)}


GIVEN = {
    "asking.md": asking,
    "authorization.md": authorization,
    "authorization_server.md": authorization_server,
    "chat.md": with_a_host,
    "client_config.md": client_config,
    "custom_transports.md": custom_transports,
    "deployment.md": None,
    "host_questions.md": with_a_host,
    "http_client.md": lambda folder, monkeypatch: {"Client": interlock.Client},
    "http_server.md": http_server,
    "index.md": None,
    "migrating_fastmcp.md": None,
    "migrating_sdk.md": None,
    "programs.md": None,
    "revisions.md": None,
    "security.md": None,
    "session.md": None,
    "state.md": lambda folder, monkeypatch: {"key": new_key()},
    "supervision.md": None,
    "sync_client.md": None,
    "conformance.md": None,
}
REAL = (
    "index.md",
    "programs.md",
    "session.md",
    "revisions.md",
    "migrating_sdk.md",
    "migrating_fastmcp.md",
)  # nothing is replaced


@pytest.mark.parametrize("name", [name for name in GIVEN if (DOCS / name).is_file()])
def test_the_code_of_a_page_runs(name, tmp_path, monkeypatch, request):
    if name not in REAL:
        request.getfixturevalue("elsewhere")
    given = GIVEN[name]
    names = {"__name__": "page", **(given(tmp_path, monkeypatch) if given is not None else {})}
    run_page(DOCS / name, names, tmp_path, monkeypatch)


def test_the_code_of_the_readme_runs(tmp_path, monkeypatch, capsys):
    server, client = blocks_of(ROOT / "README.md")
    (tmp_path / "server.py").write_text(server.text)
    run_page(ROOT / "README.md", {"__name__": "page"}, tmp_path, monkeypatch)
    assert "print" in client.text


def run_page(path, names, folder, monkeypatch):
    monkeypatch.chdir(folder)
    source = str(Path(interlock.__file__).parents[1])
    monkeypatch.setenv("PYTHONPATH", source)  # of the children, too
    (folder / "examples").symlink_to(ROOT / "examples")
    run_blocks(blocks_of(path), names, folder, {**os.environ, "HOME": str(folder), "PYTHONDONTWRITEBYTECODE": "1"})


# --- what holds for all pages ---

PAGES = sorted(path for path in DOCS.glob("*.md") if path.name != "api.md")  # which is written by a tool


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_block_is_of_a_known_kind_and_compiles(path):
    for block in blocks_of(path):
        assert block.language in (*CODE, *DATA), block.place
        if block.mark is not None:
            assert block.reason in REASONS or block.library in LIBRARIES, f"{block.place}: {block.mark}"
        if block.language == "python":
            compiled(block)
        if block.language == "console":
            assert commands_in(block)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_what_a_page_names_is_there(path):
    """Files of the repository, and pages and headings that it leads to."""
    text = path.read_text(encoding="utf-8")
    for named in re.findall(
        r"`((?:tests/[\w/]+|(?:tests|tools|examples|bench|docs|requirements|conformance)/[\w/-]+\.\w+))`", text
    ):
        assert (ROOT / named).exists(), named
    for target, heading in re.findall(r"\]\((?!https?:)([\w./-]*)#?([\w-]*)\)", text):
        page = DOCS / target if target else path
        assert page.is_file() or target == "api.md", target
        assert not heading or heading in headings_of(page), f"{target}#{heading}"


def headings_of(page):
    found = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w -]", "", title.lower()).strip().replace(" ", "-") for title in found}


def test_pages_with_tests_of_their_own_have_them():
    for page, test in ELSEWHERE.items():
        assert (DOCS / page).is_file() and f'"{page}"' in (ROOT / "tests" / test).read_text()


DEEP = re.compile(r"^\s*from (interlock\.[\w.]+) import (\([^)]*\)|.*)$", re.MULTILINE)


def test_what_pages_import_is_exported():
    """Type checkers refuse a name that a module only imports itself."""
    found, files = 0, [ROOT / "README.md", *sorted(DOCS.glob("*.md")), *sorted((ROOT / "examples").glob("*.py"))]
    for file in files:
        for module, names in DEEP.findall(file.read_text(encoding="utf-8")):
            for name in re.findall(r"\w+", re.sub(r"#.*| as \w+", "", names)):
                found += 1
                assert name in import_module(module).__all__, f"{file.name}: {module} does not export {name}"
    assert found > 10
