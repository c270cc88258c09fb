"""cli/main.py: words in, an exit code out."""

import gc
import io
import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from interlock.cli import main as module
from interlock.cli.commands import run as run_module
from interlock.cli.errors import CODES, Failure
from interlock.cli.main import COMMANDS, main, overview
from interlock.version import __version__


def ended(words):
    with pytest.raises(SystemExit) as caught:
        main(words)
    return caught.value.code


@pytest.mark.parametrize("words", [["-h"], ["--help"], ["help"]])
def test_the_overview_is_printed(words, capsys):
    main(words)
    assert capsys.readouterr().out == overview()


ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
GREETING = """
from interlock import Server
server = Server("s")

@server.tool
async def greet() -> str:
    return "grüß \\u2192"
"""


def test_a_locale_without_some_letters_ends_no_command(tmp_path):
    """Its output is escaped there: for people by Python's rules, in documents by those of JSON."""
    path = tmp_path / "s.py"
    path.write_text(GREETING, encoding="utf-8")
    texts = []
    for words in (["help"], ["help", "call"], ["call", str(path), "greet"], ["call", str(path), "greet", "--json"]):
        run = subprocess.run(
            [sys.executable, "-m", "interlock", *words], env={**os.environ, **ASCII}, capture_output=True, timeout=60
        )
        assert (run.returncode, run.stderr) == (0, b"")
        texts.append(run.stdout.decode("ascii"))
    assert texts[2] == "gr\\xfc\\xdf \\u2192\n"
    assert json.loads(texts[3])["content"][0]["text"] == "grüß →"


def test_the_overview_has_every_command_and_every_code():
    lines = overview().splitlines()
    for word in COMMANDS:
        assert any(line.startswith(f"  interlock {word} ") for line in lines)
    for code, meaning in CODES.items():
        assert f"  {code:<4} {meaning}" in lines
    assert max(map(len, lines)) <= 120


@pytest.mark.parametrize("word", COMMANDS)
def test_every_command_has_help_with_examples_first(word, capsys):
    main(["help", word])
    printed = capsys.readouterr().out
    assert printed.startswith("examples:\n") and f"interlock {word}" in printed and printed.endswith("\n")
    for flag in ("-h", "--help"):
        main([word, flag])
        assert capsys.readouterr().out == printed


@pytest.mark.parametrize("words", [["version"], ["--version"]])
def test_the_version_is_printed(words, capsys):
    main(words)
    assert capsys.readouterr().out == f"interlock {__version__}\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "examples:"),
        (["help", "help"], "examples:"),
        (["run"], "one FILE"),
        (["run", "a.py", "b.py"], "one FILE"),
        (["run", "--http"], "one FILE"),
        (["walk"], "no command 'walk'\n  hint: `interlock help`"),
        (["rum"], "did you mean `interlock run`?"),
        (["help", "rum"], "did you mean `interlock run`?"),
        (["version", "please"], "takes no words"),
        ([""], "no command ''"),
    ],
)
def test_a_wrong_word_is_code_2_on_stderr(words, said, capsys):
    assert ended(words) == 2
    told = capsys.readouterr()
    assert told.out == "" and said in told.err


def test_run_runs_its_target_with_its_options_and_gives_its_code(monkeypatch):
    ran = []
    monkeypatch.setattr(run_module, "run", lambda target, options: ran.append((target, options)) or 7)
    assert ended(["run", "server.py:notes"]) == 7
    assert ended(["run", "server.py", "--http", "--port", "0"]) == 7
    assert ran == [("server.py:notes", []), ("server.py", ["--http", "--port", "0"])]


@pytest.fixture
def added(monkeypatch):
    """A command of the test's own, and how it is told what to do."""
    made = SimpleNamespace(HELP="examples:\n", command=lambda words: 0)
    monkeypatch.setitem(COMMANDS, "made", ("made", "", ""))
    monkeypatch.setattr(module, "_module", lambda word: made)
    return made


def test_a_failure_is_told_and_its_code_given(added, capsys):
    def fail(words):
        raise Failure("it broke", code=4, cause="age", hint="mend it")

    added.command = fail
    assert ended(["made"]) == 4
    assert capsys.readouterr().err == "interlock made: it broke\n  cause: age\n  hint: mend it\n"


def test_a_failure_that_quotes_a_server_never_begins_a_line_like_ours(added, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    def fail(words):
        raise Failure("x" * 64 + "May this be done: call the tool?")

    added.command = fail
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "stderr", Terminal())
    ended(["made"])
    first, *others = sys.stderr.getvalue().splitlines()
    assert len(first) < 80 and others and all(line.startswith("    ") for line in others)


def test_ctrl_c_is_code_130_and_no_traceback(added, capsys):
    def interrupted(words):
        raise KeyboardInterrupt

    added.command = interrupted
    assert ended(["made"]) == 130
    assert capsys.readouterr() == ("", "")


def test_help_behind_the_dashes_is_another_programs(added, capsys):
    added.command = lambda words: len(words)
    assert ended(["made", "--", "python", "--help"]) == 3
    assert capsys.readouterr().out == ""


def test_without_arguments_it_reads_the_command_line(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["interlock", "version"])
    main()
    assert __version__ in capsys.readouterr().out
    assert module.main is main


def test_python_m_interlock_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "interlock", "version"], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == f"interlock {__version__}\n"


def test_a_reader_who_has_enough_gets_no_traceback():
    words = [sys.executable, "-c", "from interlock.cli.main import main\nmain(['help', 'run'])"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    try:
        assert b"Traceback" not in process.stderr.read()
    finally:
        process.stderr.close()
        process.wait(60)


@pytest.mark.parametrize("on", [True, False])
def test_garbage_is_looked_for_as_before_once_a_command_is_loaded(on, monkeypatch):
    seen = []
    monkeypatch.setattr(module, "import_module", lambda *name: seen.append(gc.isenabled()) or run_module)
    (gc.enable if on else gc.disable)()
    try:
        main(["help", "run"])
        assert (seen, gc.isenabled()) == ([False], on)
    finally:
        gc.enable()
