"""The command line: a table of commands, each in a module of its own that is imported when its word is said.

`interlock run` is on every host's launch path: it must not pay for the others. A command is added by one line of
`COMMANDS` and a module in this folder with `HELP` (examples first) and `command(words) -> exit code`; a module that
raises `Failure` is told to the user here.
"""

from __future__ import annotations

import gc
import os
import sys
from contextlib import suppress
from importlib import import_module
from typing import Any

from .errors import CODES, INTERRUPTED, USAGE, Failure

__all__ = ["main", "COMMANDS", "overview"]

COMMANDS: dict[str, tuple[str, str, str]] = {
    # the word: its module, what follows it, what it does
    "run": ("commands.run", "FILE[:OBJECT] [--http]", "serve a Server over stdio or HTTP"),
    "chat": (
        "chat.command",
        "[TARGET …] [--model …]",
        "talk with a model that uses servers, in charge of what it does",
    ),
    "list": ("commands.list", "TARGET [tools …]", "what a server offers"),
    "call": ("commands.call", "TARGET TOOL [KEY=VALUE …]", "run a tool"),
    "read": ("commands.read", "TARGET URI", "what a resource holds"),
    "prompt": ("commands.prompt", "TARGET NAME [KEY=VALUE …]", "what a prompt says"),
    "complete": ("commands.complete", "TARGET PROMPT KEY=TYPED", "what the server suggests for an argument"),
    "shell": ("commands.shell", "TARGET", "all of these line by line, with history and completion"),
    "doctor": ("doctor.command", "TARGET", "what is wrong with a server, and what to do"),
    "listen": ("commands.listen", "TARGET [tools|URI …]", "what changes, as it happens"),
    "new": ("commands.new", "NAME", "make a small project that passes its own tests"),
    "install": ("install.command", "FILE[:OBJECT] --to PROGRAM", "put a server into the list of a program"),
    "uninstall": ("install.uninstall", "NAME --to PROGRAM", "take it out again"),
    "cost": ("commands.cost", "TARGET", "what its tools cost a model, in tokens"),
}
_FIRST = """\
examples:
  interlock run server.py                    serve the one Server in server.py over stdio
  interlock run server.py --http --port 0    over HTTP, on any free port, which is printed
  interlock list server.py                   what it offers
  interlock call server.py add a=1 b=2       use one of its tools
  interlock doctor https://example.com/mcp   why a server does not work
"""


def overview() -> str:
    """What `interlock help` prints."""
    rows = [(f"{word} {follows}", does) for word, (_, follows, does) in COMMANDS.items()]
    rows += [("version", "print the version"), ("help [COMMAND]", "print this, or all about one command")]
    lines = [f"  interlock {left:34} {right}" for left, right in rows]
    codes = [f"  {code:<4} {meaning}" for code, meaning in CODES.items()]
    return "\n".join([_FIRST, "commands:", *lines, "", "exit codes:", *codes, ""])


def main(arguments: list[str] | None = None) -> None:
    """Run one command; a process that fails ends with one of the codes of `failing.CODES`."""
    words = sys.argv[1:] if arguments is None else arguments
    _escape_output(sys.stdout)
    try:
        code = _act(words)
        sys.stdout.flush()
    except Failure as failure:
        from .terminal.output import note  # a command that succeeds starts without it

        note(f"interlock {words[0]}: {failure.told()}")  # it may quote a server: broken before the terminal does
        code = failure.code
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:  # who reads us has read enough, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left is not flushed into an error
        code = INTERRUPTED
    if code:
        sys.exit(code)


def _escape_output(stdout: Any) -> None:
    """A locale without some letter must not end the command."""
    if not (stdout.encoding or "utf-8").lower().startswith("utf"):
        with suppress(AttributeError, OSError):  # a stream of the caller's own, or one that changed under Python
            stdout.reconfigure(errors="backslashreplace")


def _act(words: list[str]) -> int:
    match words:
        case ["version" | "--version"]:
            from ..version import __version__

            print(f"interlock {__version__}")
        case ["-h" | "--help" | "help"]:
            print(overview(), end="")
        case ["help", word] if word in COMMANDS:
            print(_module(word).HELP, end="")
        case [word, *rest] if word in COMMANDS:
            return _command(_module(word), rest)
        case _:
            return _unknown(words)
    return 0


def _command(module: Any, words: list[str]) -> int:
    options = words[: words.index("--")] if "--" in words else words  # what follows `--` is another program's
    if "-h" in options or "--help" in options:
        print(module.HELP, end="")
        return 0
    return module.command(words)


def _module(word: str) -> Any:
    """Modules are no garbage: to look for some while they are loaded would only delay the first call."""
    looking = gc.isenabled()
    gc.disable()
    try:
        return import_module(f".{COMMANDS[word][0]}", __package__)
    finally:
        if looking:
            gc.enable()


def _unknown(words: list[str]) -> int:
    """Names the nearest word: a mistyped one is the usual case."""
    told = [word for word in words if word != "help"][:1]
    if not told:
        print(overview(), end="", file=sys.stderr)
        return USAGE
    if told[0] in ("version", "--version"):
        print(f"interlock: {told[0]} takes no words", file=sys.stderr)
        return USAGE
    from difflib import get_close_matches  # only who mistypes pays for it

    near = get_close_matches(told[0], [*COMMANDS, "version", "help"], 1)
    hint = f"did you mean `interlock {near[0]}`?" if near else "`interlock help` shows all commands"
    print(f"interlock: {Failure(f'there is no command {told[0]!r}', hint=hint).told()}", file=sys.stderr)
    return USAGE
