"""cli/main.py: words in, an exit code out."""

import subprocess
import sys

import pytest

from interlock.cli import main as module
from interlock.cli import run as run_module
from interlock.cli.main import USAGE, main
from interlock.version import __version__


@pytest.mark.parametrize("words", [["-h"], ["--help"], ["help"], ["help", "run"], ["run", "-h"], ["run", "--help"]])
def test_help_is_printed(words, capsys):
    main(words)
    assert capsys.readouterr().out == USAGE


@pytest.mark.parametrize("words", [["version"], ["--version"]])
def test_the_version_is_printed(words, capsys):
    main(words)
    assert capsys.readouterr().out == f"interlock {__version__}\n"


@pytest.mark.parametrize("words", [[], ["run"], ["run", "a.py", "b.py"], ["walk"], ["version", "please"], [""]])
def test_a_wrong_word_is_code_2_and_the_usage_on_stderr(words, capsys):
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    told = capsys.readouterr()
    assert told.out == "" and told.err.endswith(USAGE)
    unknown = [word for word in words[:1] if word != "run"]
    assert ("no command" in told.err) == bool(unknown)


def test_run_runs_its_target_and_gives_its_code(monkeypatch):
    ran = []

    def run(target, options):
        ran.append((target, options))
        return 7

    monkeypatch.setattr(run_module, "run", run)
    with pytest.raises(SystemExit) as caught:
        main(["run", "server.py:notes"])
    assert (caught.value.code, ran) == (7, [("server.py:notes", [])])


def test_run_hands_its_options_on(monkeypatch):
    ran = []
    monkeypatch.setattr(run_module, "run", lambda target, options: ran.append((target, options)) or 0)
    with pytest.raises(SystemExit):
        main(["run", "server.py", "--http", "--port", "0"])
    assert ran == [("server.py", ["--http", "--port", "0"])]


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
