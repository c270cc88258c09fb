"""docs/cli.md: every command of the page runs and prints what the page shows."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from interlock.cli import connect
from interlock.cli.commands import run_reload
from interlock.cli.commands.run import load_server
from interlock.cli.doctor import checks
from interlock.cli.errors import CODES
from interlock.cli.main import COMMANDS
from support.command_line import aimed, code_of

PAGE = Path(__file__).resolve().parents[1] / "docs" / "cli.md"
TEXT = PAGE.read_text(encoding="utf-8")
SESSIONS = re.findall(r"```console\n(.*?)```", TEXT, re.S)
STEPS = [
    (command, shown)
    for session in SESSIONS
    for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", session, re.M)
]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with the page's own server, and no configuration of anybody."""
    [server] = re.findall(r"```python\n# server.py\n(.*?)```", TEXT, re.S)
    (tmp_path / "server.py").write_text(server, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setitem(sys.modules, "server", sys)  # whatever is loaded as that is gone afterwards


@pytest.mark.parametrize(("command", "shown"), STEPS, ids=[command for command, _ in STEPS])
def test_a_command_prints_what_the_page_shows(command, shown, here, capsys, monkeypatch):
    monkeypatch.setattr(checks, "SLOW_OPENING", 60.0)  # however busy this machine is
    monkeypatch.setattr(checks, "SLOW_ANSWER", 60.0)
    monkeypatch.setattr(checks, "was_stopped", lambda command, took: False)
    program, *words = shlex.split(command)
    assert program == "interlock"
    if words[0] != "doctor":  # which is about the process, too; for the others memory is enough
        aimed(monkeypatch, load_server("server.py"))
    code = code_of(*words)
    told = capsys.readouterr()
    printed = told.out + told.err + (f"[exit code {code}]\n" if code else "")
    wanted = re.escape(shown).replace("…", "[^\n]*")
    assert re.fullmatch(wanted, printed), printed


def test_there_are_sessions_and_all_of_them_are_run():
    assert len(SESSIONS) >= 5 and sum(session.count("$ interlock ") for session in SESSIONS) == len(STEPS)


def test_the_codes_are_those_of_the_code():
    table = re.findall(r"^\| (\d+) \| (.*) \|$", TEXT, re.M)
    assert {int(code): meaning for code, meaning in table} == CODES


def test_the_commands_are_named():
    mine = {"run", "list", "call", "read", "prompt", "complete", "listen", "shell", "doctor"}
    assert mine <= COMMANDS.keys()
    for word in mine:
        assert re.search(rf"^\| `{word} ", TEXT, re.M), word


def test_the_numbers_are_those_of_the_code():
    assert f"{run_reload.LOOK_SECONDS} s" in TEXT and f"{run_reload.MOST_FILES:,} Python files" in TEXT
    for option in re.findall(r"`(--[a-z-]+)", TEXT):
        assert option.removeprefix("--") in ALL_OPTIONS, option


ALL_OPTIONS = {
    *connect.OPTIONS,
    *("http", "reload", "drain", "connections", "connections-per-address", "health", "no-health", "workers", "state"),
    *("log-level", "port", "allow", "origin", "output", "count", "for", "strict", "always-stream", "heartbeat-timeout"),
    "forwarded-allow-ips",
}
