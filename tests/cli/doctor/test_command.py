"""cli/doctor/command.py: findings on the screen and as JSON, and the exit code."""

import asyncio
import json
import logging
import os
import sys

import pytest

from interlock import Server
from interlock.cli.doctor import command as doctor
from interlock.cli.doctor.checks import Finding
from interlock.cli.doctor.command import finding_lines
from interlock.cli.doctor.lint import Remark
from interlock.cli.state_folder import tokens_folder
from interlock.cli.target import Aim
from support.command_line import code_of, demo
from support.http_peer import HttpPeer, http


@pytest.fixture
def at(monkeypatch):
    def put(server):
        monkeypatch.setattr(doctor, "aim_of", lambda words, own: own.clear() or Aim("command", "demo", server))

    return put


def test_a_server_with_warnings_is_code_0_and_with_strict_1(at, capsys):
    at(demo())
    assert code_of("doctor", "x") == 0
    shown = capsys.readouterr().out
    assert shown.startswith("interlock doctor demo\n\nok    target     demo\nok    connection opened")
    assert "\nwarn  tools      5 in " in shown and "say: no description\n" in shown
    assert shown.rstrip().splitlines()[-1].startswith("no faults, ") and "\x1b" not in shown
    assert code_of("doctor", "--strict", "x") == 1


def test_json_is_one_document(at, capsys):
    at(demo())
    assert code_of("doctor", "x", "--json") == 0
    told = capsys.readouterr()
    found = json.loads(told.out)
    assert (found["target"], found["state"], told.err) == ("demo", "warn", "")
    assert {"step": "target", "state": "ok", "said": "demo", "todo": "", "remarks": []} in found["findings"]


def test_a_fault_is_code_1_and_nobody_is_logged_at(capsys):
    before = list(logging.getLogger("interlock.client").handlers)
    assert code_of("doctor", "--", "no-such-program") == 1
    told = capsys.readouterr()
    assert "fail  target     there is no program 'no-such-program' on PATH" in told.out
    assert told.out.endswith("\n1 fault, no warnings\n") and told.err == ""
    assert logging.getLogger("interlock.client").handlers == before


def test_only_a_missing_login_is_code_6(at, monkeypatch, capsys):
    at(Server("s"))

    class Turned:
        wants_login = True

        def __init__(self, *_):
            pass

        async def run(self):
            return [Finding("connection", "ok", "x"), Finding("auth", "fail", "it wants a token", "log in")]

    monkeypatch.setattr(doctor, "Checkup", Turned)
    assert code_of("doctor", "x") == 6


@pytest.mark.parametrize(("words", "told"), [([], "which server?"), (["x.py", "y"], "there is no file 'x.py'")])
def test_mistakes_are_said(words, told, capsys):
    assert code_of("doctor", *words) == 2
    assert told in capsys.readouterr().err


def test_one_target_at_a_time(tmp_path, capsys):
    path = tmp_path / "server.py"
    path.write_text("")
    assert code_of("doctor", str(path), "more") == 2
    assert "one TARGET at a time, and 'more' is more" in capsys.readouterr().err


def test_a_finding_is_lines_with_what_to_do():
    finding = Finding("tools", "fail", "3 in 0 s", "mend", [Remark("fail", "a", "bad", "better")] * 22)
    lines = finding_lines(finding)
    assert lines[:4] == [
        "fail  tools      3 in 0 s",
        "                  → mend",
        "      fail  a: bad",
        "                  → better",
    ]
    assert lines[-1] == "      … and 2 more (--json has all of them)" and len(lines) == 2 + 40 + 1


def test_states_are_coloured_where_that_is_wanted():
    assert finding_lines(Finding("a", "ok", "b"), colour=True) == ["\x1b[32mok  \x1b[0m  a          b"]


@pytest.mark.parametrize("keeps_tokens", [False, True])
async def test_a_server_that_wants_a_login_is_code_6_whether_tokens_are_kept_or_not(
    keeps_tokens, tmp_path, monkeypatch
):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    if keeps_tokens:
        tokens_folder().mkdir(parents=True, mode=0o700)

    def script(request, stream):
        return http(404) if request.verb == "GET" else http(401, b"", "WWW-Authenticate: Bearer")

    async with HttpPeer(script) as peer:
        words = ("-m", "interlock", "doctor", peer.url)
        process = await asyncio.create_subprocess_exec(sys.executable, *words, stdout=-1, stderr=-1, env={**os.environ})
        out, err = await process.communicate()
    assert process.returncode == 6, (out, err)
    assert b"fail  auth" in out and b"1 fault" in out


def test_a_silent_server_is_waited_for_as_long_as_the_help_says(at, monkeypatch):
    at(Server("s"))
    seen = []

    class Silent:
        wants_login = False

        def __init__(self, aim, options, tell):
            seen.append((options["connect_timeout"], options["timeout"].idle))

        async def run(self):
            return []

    monkeypatch.setattr(doctor, "Checkup", Silent)
    assert code_of("doctor", "x") == 0 and code_of("doctor", "x", "--timeout", "7") == 0
    assert seen == [(60.0, 60.0), (7.0, 7.0)] and "silent (60)" in doctor.HELP
