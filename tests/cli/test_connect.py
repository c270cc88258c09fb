"""cli/connect.py: the client that the options describe, and how each failure ends."""

import asyncio
import signal
import subprocess
import sys
import time

import pytest

from interlock.cli import connect
from interlock.cli.connect import OPTIONS, OPTIONS_HELP, can_log_in, client_options, failure_of
from interlock.cli.errors import Failure
from interlock.cli.options import Words
from interlock.cli.state_folder import tokens_folder
from interlock.cli.target import Aim
from interlock.cli.terminal.progress import Progress
from interlock.protocol.client.base import NotOffered
from interlock.revisions.revision import Era
from interlock.wire import errors
from support.command_line import Person, aimed, code_of, demo
from support.http_peer import HttpPeer, http
from support.http_peer import server as http_server
from support.sitting import Sitting

URL, LOCAL = Aim("url", "u", "https://example.com/mcp"), Aim("command", "c", ["x"])


@pytest.fixture(autouse=True)
def a_new_home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def options(aim, **given):
    return client_options(Words([], given), aim, Progress())


def test_every_option_is_in_the_help():
    for name in OPTIONS:
        assert f"  --{name} " in OPTIONS_HELP


def test_a_timeout_is_for_silence_and_for_opening():
    found = options(LOCAL, timeout=5.0)
    assert (found["timeout"].idle, found["connect_timeout"], found["probe_timeout"]) == (5.0, 5.0, 2.5)
    assert options(LOCAL)["probe_timeout"] == 3.0


def test_slow_servers_are_remembered_from_one_command_to_the_next(tmp_path):
    options(LOCAL)["verdicts"].put("t", Era.HANDSHAKE, costly=True)
    assert options(LOCAL)["verdicts"].get("t") is Era.HANDSHAKE
    assert (tmp_path / "interlock" / "eras").is_dir()
    assert "verdicts" not in options(URL)


def test_what_was_tried_is_told_in_the_words_of_the_command_line():
    error = errors.HttpStatus("server/discover: HTTP status 403", 403)
    error.hint = "initialize was tried too and gave: no; pass revision= to try one revision alone"
    told = connect.failure_of(error, opened=False)
    assert "initialize was tried too" in told.hint and "--revision" in told.hint and "revision=" not in told.hint


def test_without_a_terminal_nobody_can_be_asked(monkeypatch):
    assert "elicit" not in options(LOCAL)
    monkeypatch.setattr(connect, "terminal_or_none", Person)
    assert {"elicit", "elicit_url"} <= options(LOCAL).keys()


@pytest.mark.parametrize("option", ["header", "bearer", "auth", "allow-host"])
def test_what_belongs_to_a_url_is_not_for_others(option, monkeypatch):
    monkeypatch.setenv("TOKEN", "t")
    value = {"header": ["a: b"], "bearer": "TOKEN", "auth": "browser", "allow-host": ["h"]}[option]
    with pytest.raises(Failure, match=f"--{option} belongs to a URL"):
        options(LOCAL, **{option: value})
    assert options(URL, **{option: value})


def test_a_login_is_asked_for_only_with_auth_and_kept_tokens_are_used(monkeypatch):
    assert "auth" not in options(URL)
    assert options(URL, auth="paste")["auth"].login == "paste"
    tokens_folder().mkdir(parents=True)
    assert options(URL)["auth"].login is None
    monkeypatch.setenv("TOKEN", "t")
    assert "auth" not in options(URL, bearer="TOKEN"), "a token of one's own counts alone"
    with pytest.raises(Failure, match="browser or paste"):
        options(URL, auth="magic")


@pytest.mark.parametrize(
    ("error", "opened", "code"),
    [
        (errors.AuthRequired("no", 401), False, 6),
        (errors.LoginRequired("no"), False, 6),
        (errors.AuthorizationFailed("no"), True, 6),
        (errors.CallTimeout("x", 1, "idle"), True, 5),
        (errors.SpawnFailed("no"), False, 3),
        (errors.NoCommonRevision("no"), False, 3),
        (errors.HandshakeFailed("no"), False, 3),
        (errors.HttpStatus("no", 404), False, 3),
        (errors.HttpStatus("no", 500), True, 7),
        (errors.ConnectionLost("no"), True, 3),
        (errors.PeerClosed("no"), False, 3),
        (errors.BadResult("no"), True, 7),
        (errors.CannotAsk("no"), True, 4),
        (errors.InvalidParams("no"), True, 4),
        (NotOffered("no"), True, 4),
        (errors.LocalError("no"), True, 2),
    ],
)
def test_each_failure_has_its_code(error, opened, code):
    failure = failure_of(error, opened=opened)
    assert failure.code == code
    assert code == 2 or failure.hint


def test_a_failure_says_its_cause_and_what_the_process_said_last():
    error = errors.PeerClosed("it ended", exit_code=1, stderr="line 1\nTypeError: \x1b[31mno\n")
    error.__cause__ = OSError(2, "No such file")
    told = failure_of(error, opened=False).told()
    assert told.startswith("it ended\n  cause: No such file; the server's process said last:\n    line 1\n")
    assert "    TypeError: \\x1b[31mno" in told and "\x1b" not in told


def test_the_cause_is_what_the_process_wrote_and_the_variables_are_a_hint():
    error = errors.PeerClosed("it ended", exit_code=1, stderr="no such table\n")
    error.withheld = ("SOME_TOKEN",)
    failure = failure_of(error, opened=False)
    assert failure.cause.endswith("no such table") and "SOME_TOKEN" not in failure.cause
    assert failure.hint.endswith("not given: SOME_TOKEN; pass those it needs with --env NAME")


def test_another_attempt_is_told_once():
    error = errors.HttpStatus("server/discover: HTTP status 403: no", 403)
    error.__cause__ = errors.HttpStatus("initialize: HTTP status 404: nothing here", 404)
    error.hint = "initialize was tried too and gave: HTTP status 404: nothing here"
    assert failure_of(error, opened=False).told().count("nothing here") == 1
    error.__cause__ = OSError(2, "No such file")
    assert failure_of(error, opened=False).cause == "No such file"


def test_what_the_message_says_already_is_not_said_again():
    error = errors.SpawnFailed("could not start x: No such file")
    error.__cause__ = OSError(2, "No such file")
    assert "cause" not in failure_of(error, opened=False).told()


def test_a_process_that_ended_at_once_is_quoted_once_and_with_what_helps():
    error = errors.PeerClosed("initialize: it ended", exit_code=1, stderr="it has 2 servers")
    error.__cause__ = errors.PeerClosed("the process ended", exit_code=1, stderr="it has 2 servers")
    told = failure_of(error, opened=False).told()
    assert told.count("it has 2 servers") == 1 and "mend what its process said" in told
    assert "server.run()" in failure_of(errors.PeerClosed("it ended", exit_code=0), opened=False).told()
    assert "try again" in failure_of(errors.PeerClosed("it ended", exit_code=0), opened=True).told()


# --- whole conversations ---


async def test_a_terminal_is_told_what_takes_long():
    silent = "import sys\nprint('banner', flush=True)\nfor _ in sys.stdin: pass"
    async with Sitting("-m", "interlock", "list", "--timeout", "600", "--", sys.executable, "-c", silent) as sitting:
        await sitting.sees("waiting for the server to start and answer: ")
        sitting.process.send_signal(signal.SIGINT)
        assert await sitting.process.wait() == 130


@pytest.mark.parametrize("how", ["paste", "browser", None])
def test_a_login_has_the_terminal_to_itself(how):
    tokens_folder().mkdir(parents=True)
    assert can_log_in(options(URL, **({"auth": how} if how else {}))) is (how is not None)


def test_a_tool_after_the_command_is_told_where_it_belongs(capsys):
    assert code_of("call", "--", "server", "--", "add") == 2
    assert "TOOL … -- COMMAND" in capsys.readouterr().err


def test_a_wrong_option_of_the_client_is_a_usage_error(monkeypatch, capsys):
    aimed(monkeypatch, demo())
    assert code_of("list", "x", "--revision", "1999-01-01") == 2
    assert code_of("list", "x", "--log", "loud") == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_server_that_cannot_be_started_is_code_3(capsys):
    assert code_of("list", "--", "/nowhere/server") == 3
    told = capsys.readouterr()
    assert told.out == "" and told.err.startswith("interlock list: could not start '/nowhere/server'")
    assert "Traceback" not in told.err and "  hint: " in told.err


def test_debug_shows_the_rest(capsys, monkeypatch):
    monkeypatch.setattr(connect, "hold_logs", lambda debug: None)
    assert code_of("list", "--debug", "--", "/nowhere/server") == 3
    assert "Traceback" in capsys.readouterr().err


def test_a_silent_server_is_code_5(capsys):
    words = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    assert code_of("list", "--timeout", "0.3", "--", *words) == 5
    assert "hint: --timeout SECONDS waits longer; interlock doctor" in capsys.readouterr().err


def test_ctrl_c_ends_a_call_with_130(monkeypatch, capsys):
    server = demo()

    @server.tool
    async def interrupt() -> str:
        def press() -> None:
            raise KeyboardInterrupt

        asyncio.get_running_loop().call_soon(press)
        await asyncio.sleep(60)
        return ""

    aimed(monkeypatch, server)
    assert code_of("call", "x", "interrupt") == 130
    assert "Traceback" not in capsys.readouterr().err


def test_what_the_server_logs_is_shown_beside_the_result(monkeypatch, capsys):
    aimed(monkeypatch, demo())
    assert code_of("call", "x", "walk", "steps=1", "--log", "warning") == 0
    told = capsys.readouterr()
    assert told.out == "there\n" and "warning: walked" in told.err


def test_a_question_is_answered_on_the_terminal(monkeypatch, capsys):
    aimed(monkeypatch, demo())
    monkeypatch.setattr(connect, "terminal_or_none", lambda: Person("", "rain"))
    assert code_of("call", "x", "borrow") == 0
    assert capsys.readouterr().out == "2 weeks: rain\n"


def test_a_question_without_a_terminal_is_refused(monkeypatch, capsys):
    aimed(monkeypatch, demo())
    assert code_of("call", "x", "borrow") == 4
    assert "run it in a terminal" in capsys.readouterr().err


async def talked(script, act, **given):
    """A conversation with a scripted endpoint, from the options to the end."""
    async with HttpPeer(script) as peer:
        aim = Aim("url", peer.url, peer.url)
        return await connect._talk(aim, options(aim, **given), act, Progress()), peer


async def test_a_url_is_spoken_to_with_its_headers(monkeypatch):
    async def act(client, progress):
        return len(await client.list_tools())

    monkeypatch.setenv("TOKEN", "t")
    tools = {"tools": [{"name": "t", "inputSchema": {"type": "object"}}], "ttlMs": 0, "cacheScope": "private"}
    found, peer = await talked(http_server(tools_list=tools), act, bearer="TOKEN", header=["X-Team: blue"])
    assert found == 1
    assert {request.header("authorization") for request in peer.requests} == {"Bearer t"}
    assert {request.header("x-team") for request in peer.requests} == {"blue"}


@pytest.mark.parametrize(("status", "code"), [(401, 6), (404, 3), (500, 3)])
async def test_a_url_that_turns_us_away_has_a_code(status, code):
    with pytest.raises(Failure) as caught:
        await talked(lambda request, stream: http(status), None)
    assert caught.value.code == code and caught.value.hint


async def test_kept_tokens_ask_nobody_and_a_login_that_is_wanted_is_code_6():
    tokens_folder().mkdir(parents=True, mode=0o700)
    with pytest.raises(Failure) as caught:
        await talked(lambda request, stream: http(401 if request.verb == "POST" else 404), None)
    assert caught.value.code == 6


SLOW = """
import asyncio
from pathlib import Path
from interlock import Server
server = Server("slow")

@server.tool
async def wait() -> str:
    Path(__file__).with_suffix(".begun").touch()
    await asyncio.sleep(600)
    return ""
"""


def test_ctrl_c_at_a_real_process_ends_it_and_its_server(tmp_path):
    path = tmp_path / "slow.py"
    path.write_text(SLOW)
    words = [sys.executable, "-m", "interlock", "call", str(path), "wait"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        end = time.monotonic() + 60
        while not path.with_suffix(".begun").exists():
            assert time.monotonic() < end and process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert (process.stdout.read(), process.stderr.read()) == ("", "")
    finally:
        process.kill()
        process.communicate()
