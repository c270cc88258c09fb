"""cli/commands/shell.py: lines in, what they do out; the editor with a real (pseudo) terminal."""

import asyncio
import io
import json
import os
import pty
import re
import select
import subprocess
import sys
import time

import pytest

from interlock import Client, Server
from interlock.cli.commands import shell as module
from interlock.cli.commands.shell import Shell, history_file
from interlock.cli.target import Aim
from interlock.cli.terminal.line_editor import keep_history
from interlock.cli.terminal.progress import Progress
from interlock.client.sync.loop_thread import LoopThread
from interlock.wire.errors import ConnectionLost
from support.command_line import code_of, demo
from support.sitting import Sitting


@pytest.fixture
def at_demo(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(module, "aim_of", lambda words, own: own.clear() or Aim("command", "demo", demo()))


def script(monkeypatch, *lines):
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
    return code_of("shell", "x")


def test_lines_are_done_one_after_the_other(at_demo, monkeypatch, capsys):
    lines = "call add a=40 b=2", "", "read logo://big", "prompt review language=c", "complete review language=pe"
    assert script(monkeypatch, *lines) == 0
    assert capsys.readouterr().out == "42\n(logo://big: image/png, 16 bytes)\nuser: Review c\nperl\n"


def test_what_it_says_of_the_server_moves_no_cursor(at_demo, monkeypatch, capsys):
    assert script(monkeypatch, "info", "list tools", "help") == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown and "(no instructions)" in shown and "add(a: integer, b: integer = 1)" in shown
    assert "  call     TOOL [KEY=VALUE …]" in shown


@pytest.mark.parametrize(
    ("line", "code", "told"),
    [
        ("jump", 2, "there is no 'jump' here"),
        ("call", 2, "call TOOL [KEY=VALUE …] run a tool"),
        ("list tolls", 2, "list [tools|"),
        ("call 'x", 2, "No closing quotation"),
        ("call ad", 4, "did you mean add?"),
        ("read nothing://here", 4, "! "),
        ("call fail", 1, ""),
    ],
)
def test_a_line_that_fails_is_told_and_the_last_code_is_the_scripts(line, code, told, at_demo, monkeypatch, capsys):
    assert script(monkeypatch, line) == code
    assert told in capsys.readouterr().err
    assert script(monkeypatch, line, "call add a=1") == 0, "the shell goes on"


def test_quit_ends_it(at_demo, monkeypatch, capsys):
    assert script(monkeypatch, "quit", "call add a=1") == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(("words", "told"), [(["--json", "x"], "a shell has no --json"), ([], "which server?")])
def test_mistakes_are_said(words, told, capsys):
    assert code_of("shell", *words) == 2
    assert told in capsys.readouterr().err


def test_a_server_that_cannot_be_reached_is_code_3(capsys):
    assert code_of("shell", "--", "/nowhere/server") == 3
    assert "could not start" in capsys.readouterr().err


@pytest.fixture
def shell():
    thread, client = LoopThread(), Client(demo())
    thread.join(id(client), client.close)
    made = Shell(client, Progress(), thread.run)
    made.open(client.open())
    yield made
    thread.run(client.close())
    thread.leave(id(client))


@pytest.mark.parametrize(
    ("name", "prompt"),
    [("notes-2.x", "notes-2.x> "), ("[y] yes, once, [n] no: ", "server> "), ("you> rm", "server> "), ("ж", "server> ")],
)
def test_a_servers_name_cannot_be_taken_for_a_line_of_ours(name, prompt):
    thread, client = LoopThread(), Client(Server(name, version="1\nMay this be done?"))
    thread.join(id(client), client.close)
    made = Shell(client, Progress(), thread.run)
    made.open(client.open())
    try:
        assert made.prompt == prompt
        first, _, rest = made.greeting.partition("\n")
        shown = name if prompt == f"{name}> " else f'"{name.strip()}"'
        assert first.startswith(f'{shown} "1 May this be done?" · ')
        assert rest.startswith("help ") and "\n" not in rest
    finally:
        thread.run(client.close())
        thread.leave(id(client))


def test_suggestions_come_from_the_server_and_failures_are_silent(shell, monkeypatch):
    assert shell.suggestions("prompt review language=py") == ["language=python"]

    async def fails(client, line):
        raise ConnectionLost("gone")

    async def hangs(client, line):
        await asyncio.sleep(60)

    monkeypatch.setattr(module, "candidates", fails)
    assert shell.suggestions("call ") == []
    monkeypatch.setattr(module, "_SUGGEST_SECONDS", 0.05)
    monkeypatch.setattr(module, "candidates", hangs)
    assert shell.suggestions("call ") == []


def test_ctrl_c_gives_up_the_call_and_not_the_shell(shell, monkeypatch, capsys):
    run = shell._run

    def interrupted(work):
        work.close()
        raise KeyboardInterrupt

    monkeypatch.setattr(shell, "_run", interrupted)
    assert shell.do("call add a=1") == 130
    monkeypatch.setattr(shell, "_run", run)
    assert shell.do("call add a=1") == 0
    assert capsys.readouterr() == ("2\n", "(given up)\n")


def test_history_is_kept_in_a_file_of_ones_own(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    class Editor:
        def set_history_length(self, lines):
            assert lines == 1000

        def write_history_file(self, path):
            assert os.stat(path).st_mode & 0o777 == 0o600
            with open(path, "w") as file:
                file.write("call add a=1\n")

    keep_history(Editor(), history_file())
    assert history_file().read_text() == "call add a=1\n"


class Screen:
    """What a person at a terminal sees, up to what is waited for."""

    def __init__(self, fd):
        self._fd, self._seen = fd, ""

    def until(self, text, seconds=60.0):
        end = time.monotonic() + seconds
        while text not in self._seen:
            ready, _, _ = select.select([self._fd], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"{text!r} did not come; there was: {self._seen!r}"
            self._seen += os.read(self._fd, 4096).decode()
        before, _, self._seen = self._seen.partition(text)
        return before + text

    def type(self, text):
        os.write(self._fd, text.encode())


SERVER = """
from interlock import Context, Server
server = Server("books")

@server.tool
async def borrow(ctx: Context) -> str:
    form = {"type": "object", "properties": {"weeks": {"type": "integer", "default": 2}}}
    answer = await ctx.elicit("How long?", form)
    return f"for {answer['weeks']} weeks"

@server.prompt
def recommend(genre: str) -> str:
    return f"Recommend a {genre}."

@server.completion(prompt="recommend", argument="genre")
def genres(value: str, known: dict[str, str]) -> list[str]:
    return ["novel"]
"""


def test_a_person_at_a_terminal(tmp_path):
    """History, completion, a question and its answer, and the end: with the real editor, in a process of its own."""
    path = tmp_path / "server.py"
    path.write_text(SERVER)
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "interlock", "shell", str(path)]
    env = {**os.environ, "XDG_STATE_HOME": str(tmp_path), "TERM": "dumb", "INPUTRC": os.devnull}
    process = subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, env=env, start_new_session=True)
    try:
        screen = Screen(ours)
        screen.until("books> ")
        screen.type("call bor\t\n")
        screen.until('answer for "weeks" [2]: ')
        screen.type("3\n")
        screen.until("for 3 weeks")
        screen.until("books> ")
        screen.type("prompt rec\tgenre=n\t\n")
        assert "novel" in screen.until("user: Recommend a novel.")
        screen.until("books> ")
        screen.type("\x04")
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)
        os.close(theirs)
    kept = (tmp_path / "interlock" / "history").read_text()
    assert re.search(r"call borrow *\n", kept)


ASKS_ALWAYS = """
import json, sys
def send(**members):
    print(json.dumps({"jsonrpc": "2.0", **members}), flush=True)
def ask(id):
    form = {"type": "object", "properties": {"typed": {"type": "string"}}, "required": ["typed"]}
    send(id=id, method="elicitation/create", params={"message": id, "requestedSchema": form})
info = {"name": "nosy", "version": "1"}
results = {
    "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info},
    "tools/list": {"tools": [{"name": "wait", "inputSchema": {"type": "object"}}]},
    "tools/call": {"content": [{"type": "text", "text": "called"}]},
}
for line in sys.stdin:
    message = json.loads(line)
    match message.get("method"):
        case "notifications/initialized":
            ask("before")
        case "tools/call":
            ask("during")
            send(id=message["id"], result=results["tools/call"])
        case None:
            open(sys.argv[1], "a").write(line)
        case method if "id" in message:
            known = results.get(method)
            send(id=message["id"], **({"result": known} if known else {"error": {"code": -32601, "message": ""}}))
"""


async def test_a_server_never_gets_what_is_typed_at_the_prompt(tmp_path):
    """It asks before the first command, and asks in a call that it answers at once: what follows belongs to us."""
    server, answers = tmp_path / "server.py", tmp_path / "answers"
    server.write_text(ASKS_ALWAYS)
    words = "-m", "interlock", "shell", "--no-history", "--", sys.executable, str(server), str(answers)
    async with Sitting(*words, INPUTRC=os.devnull) as person:
        await person.sees("the server asked a question")
        person.type("call wait\n")
        await person.sees("called")
        await person.sees("nosy> ")
        person.type("call login password=secret\n")
        await person.sees("no tool 'login'")
        await person.sees("nosy> ")
        person.type("\x04")
        assert await person.process.wait() == 0
    given = {answer["id"]: answer["result"] for answer in map(json.loads, answers.read_text().splitlines())}
    assert given == {"before": {"action": "cancel"}, "during": {"action": "cancel"}}
