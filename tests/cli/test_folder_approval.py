"""cli/folder_approval.py: what the files of a folder name is shown before it starts, at a real (pseudo) terminal."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from interlock.cli.folder_approval import approve_entry
from interlock.client.config.entries import read_config
from support.sitting import SRC, Sitting

SERVER = """
from pathlib import Path
from interlock import Server
Path("started").touch()
server = Server("house")

@server.tool
def add(a: int, b: int) -> int:
    return a + b

server.run()
"""
CALL = ["-m", "interlock", "call", "house", "add", "a=20", "b=22"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    home, here = tmp_path / "home", tmp_path / "here"
    home.mkdir()
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("TOKEN", "token-of-mine")
    for moved in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(moved, raising=False)
    Path("house.py").write_text(SERVER)
    write()
    return here


def write(**env):
    entry = {"command": sys.executable, "args": ["house.py"], "env": {"PYTHONPATH": str(SRC), "KEY": "${TOKEN}", **env}}
    Path(".mcp.json").write_text(json.dumps({"mcpServers": {"house": entry}}))


async def call(*answers):
    """What is on the screen; each answer is given to a question."""
    async with Sitting(*CALL) as sitting:
        for answer in answers:
            await sitting.sees("[y] yes, once, [a] yes, always, [n] no: ")
            sitting.type(f"{answer}\n")
        await sitting.process.wait()
        await sitting.ends()
    return sitting.seen, sitting.process.returncode


async def test_it_is_shown_in_full_and_started_after_a_yes(folder):
    seen, code = await call("n")
    assert code == 2 and not Path("started").exists()
    for text in ("house: from ", "/.mcp.json", sys.executable, '[1] "house.py"', "variable KEY from ${TOKEN}"):
        assert text in seen.replace("\r\n    ", ""), text
    assert "decide which code runs: PYTHONPATH" in seen.replace("\r\n    ", "") and "token-of-mine" not in seen
    seen, code = await call("y")
    assert code == 0 and seen.rstrip().endswith("42") and Path("started").exists()


async def test_the_answer_is_kept_until_anything_changes(folder):
    seen, code = await call("a")
    assert code == 0
    seen, code = await call()
    assert code == 0 and "May this be done" not in seen
    without = subprocess.run([sys.executable, *CALL], capture_output=True, text=True, env=environment(), check=True)
    assert without.stdout == "42\n" and "house: from " in without.stderr
    for change in (lambda: write(KEY="${HOME}"), lambda: Path("house.py").write_text(f"{SERVER}# changed")):
        change()
        seen, code = await call("n")
        assert code == 2 and "What changed:" in seen


async def test_inputs_are_asked_for_after_a_yes_and_nothing_looked_up_is_shown_or_logged(folder):
    args = ["house.py", "${TOKEN}", "${input:key}"]
    entry = {"command": sys.executable, "args": args, "env": {"PYTHONPATH": str(SRC)}}
    inputs = [{"id": "key", "type": "promptString", "description": "a key", "password": True}]
    Path(".vscode").mkdir()
    Path(".vscode/mcp.json").write_text(json.dumps({"servers": {"house": entry}, "inputs": inputs}))
    Path(".mcp.json").unlink()
    async with Sitting(*CALL) as sitting:
        await sitting.sees("[n] no: ")
        assert "value of the input" not in sitting.seen
        sitting.type("n\n")
        await sitting.process.wait()
        await sitting.ends()
    assert "value of the input" not in sitting.seen and sitting.process.returncode == 2
    async with Sitting(*CALL) as sitting:
        await sitting.sees("[n] no: ")
        sitting.type("y\n")
        await sitting.sees("value of the input key (a key): ")
        sitting.type("typed-secret\n")
        await sitting.process.wait()
        await sitting.ends()
    assert sitting.process.returncode == 0 and sitting.seen.rstrip().endswith("42")
    assert '[2] "${TOKEN}"' in sitting.seen and '[3] "${input:key}"' in sitting.seen
    [audit] = Path.home().rglob("audit.jsonl")
    for text in (sitting.seen, audit.read_text()):
        assert "token-of-mine" not in text and "typed-secret" not in text
    assert "${input:key}" in audit.read_text()


def test_without_a_terminal_it_is_refused_with_what_to_do(folder):
    ended = subprocess.run([sys.executable, *CALL], capture_output=True, text=True, env=environment(), check=False)
    assert ended.returncode == 2 and not Path("started").exists() and ended.stdout == ""
    assert "is not approved" in ended.stderr and f"name the file: {folder / '.mcp.json'}:house" in ended.stderr
    words = [word if word != "house" else ".mcp.json:house" for word in CALL]
    ended = subprocess.run([sys.executable, *words], capture_output=True, text=True, env=environment(), check=True)
    assert ended.stdout == "42\n"


def environment():
    return {**os.environ, "PYTHONPATH": str(SRC)}


def test_what_changes_after_the_approval_is_not_started(folder, monkeypatch):
    monkeypatch.setattr("interlock.host.gate.gate.Gate.launch", allow)
    entry = approve_entry(read_config(folder / ".mcp.json")["house"])
    assert entry.command().args == (sys.executable, "house.py")
    Path("house.py").write_text("other code")
    with pytest.raises(Exception, match="not what was approved"):
        entry.command()


async def allow(gate, launch):
    """As if the user had said yes."""
