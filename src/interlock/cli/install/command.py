"""`interlock install FILE --to PROGRAM`: put a server into the list that a program keeps, and leave the rest alone.

The file of the program is edited as text at one place and replaced as a whole; values of variables are never shown.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from ...client.config.parser import ConfigError
from ...wire.escaping import display
from ..errors import USAGE, Failure
from ..options import Kind, Words, read_words
from ..programs import PROGRAMS, Program, Surroundings
from ..terminal.output import as_json, note, plain, say
from .atomic_file import change_file, read_whole
from .json_edit import masked, set_member, value_at

__all__ = ["HELP", "Place", "command", "here", "name_for", "place_of", "show"]

HELP = """\
examples:
  interlock install server.py --to claude-desktop             start server.py from Claude Desktop
  interlock install server.py --to cursor --env API_KEY       with the value that API_KEY has here, or that is asked for
  interlock install server.py --to vscode --project           for everybody who opens this folder
  interlock install --url https://example.com/mcp --name docs --to zed
  interlock install server.py --to json                       print the entry, for any other program

usage: interlock install FILE[:OBJECT] --to PROGRAM     a Server in a Python file, started by this Python
       interlock install --url URL --name NAME --to PROGRAM     a server that runs elsewhere
           --to PROGRAM    claude-desktop, claude-code, cursor, vscode, windsurf, zed, or json: print it
           --name NAME     what the program calls it (else the name of the Server, or of the file)
           --env NAME      give it this variable: as it is set here, else asked for; once for each
           --project       into the file of this folder, not of this user; variables by name, not by value
           --config FILE   into this file
           --replace       also when there is another server of that name
           --dry-run       show what would change, change nothing
           --no-check      do not import FILE first to see whether it can be served

`interlock uninstall NAME --to PROGRAM` takes it out again.
"""
_TEXTS, _FLAGS = ("to", "name", "url", "config"), ("project", "replace", "dry-run", "no-check")
OPTIONS: dict[str, Kind] = {**dict.fromkeys(_TEXTS, "text"), **dict.fromkeys(_FLAGS, "flag"), "env": "texts"}
_NAME = r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}"
_VARIABLE = r"[A-Za-z_][A-Za-z0-9_]{0,199}"
_TOO_COMMON = ("server", "main", "app", "mcp", "__init__", "__main__")  # file names that say nothing
_MOST_SOURCE = 1024 * 1024
_IMPORT_TIMEOUT = 60.0  # seconds; the programs that start servers wait about as long
_LOAD = "import sys; from interlock.cli.commands.run import check_target; sys.exit(check_target(sys.argv[1]))"


class Place(msgspec.Struct, frozen=True):
    """One program's list."""

    program: Program
    file: Path

    @property
    def where(self) -> str:
        return display(str(self.file), 300)


def command(words: list[str]) -> int:
    said = read_words(words, OPTIONS)
    name, file = _names(said)
    if file and not said.flag("no-check"):
        _check_imports(file, said)
    if said.options.get("to") == "json" and "config" not in said.options:
        entry = _entry(_ANY, said, file)
        say(as_json({_ANY.member: {name: entry}}))
        return 0
    place = place_of(said, here())
    try:
        return _install(place, said, name, _entry(place.program, said, file))
    except ConfigError as error:
        raise Failure(str(error)) from error


_ANY = Program("any program", "", reference="${{{}}}", after="name the file to your program")


def _install(place: Place, said: Words, name: str, entry: dict[str, Any]) -> int:
    path, before = (place.program.member, name), read_whole(place.file)
    _check_free(place, before, path, entry, said)
    if said.flag("dry-run"):
        show(place, before, set_member(before, path, entry, place.where), path)
        return 0
    if said.flag("project"):
        place.file.parent.mkdir(parents=True, exist_ok=True)
    if change_file(place.file, lambda text: _set(place, text, path, entry, said)):
        say(f"{name} is in {place.where}")
        note(f"next: {place.program.after}")
    else:
        say(f"{name} was in {place.where} already")
    return 0


def _set(place: Place, text: str, path: Sequence[str], entry: dict[str, Any], said: Words) -> str:
    """Judged again, in case that another program wrote meanwhile."""
    _check_free(place, text, path, entry, said)
    found = value_at(text, path, place.where)
    return text if found == entry else set_member(text, path, entry, place.where)


def _check_free(place: Place, text: str, path: Sequence[str], entry: dict[str, Any], said: Words) -> None:
    found = value_at(text, path, place.where)
    if found is not None and found != entry and not said.flag("replace"):
        hint = "--replace puts this one in its place; --name gives it another name"
        raise Failure(f"{place.where} has another server {path[-1]!r}", hint=hint)


def show(place: Place, before: str, after: str, path: Sequence[str]) -> None:
    """A diff without values that are not ours and without those of variables."""
    old, new = (masked(text, path, place.where).splitlines() for text in (before, after))
    lines = [*unified_diff(old, new, place.where, place.where, lineterm="", n=2)]
    for line in lines:
        say(plain(line))
    note("nothing was changed" if lines else f"{path[-1]} is there already: nothing would change")


# --- what is installed ---


def _names(said: Words) -> tuple[str, str]:
    """The name of the entry, and FILE[:OBJECT] with its whole path; nothing for a server by URL."""
    if (len(said.own) == 1) == ("url" in said.options) or len(said.own) > 1 or said.command is not None:
        raise Failure("this takes one FILE[:OBJECT], or --url", code=USAGE, hint="interlock help install")
    file = _whole_path(said.own[0]) if said.own else ""
    name = said.options.get("name", name_for(file) if file else "")
    if not re.fullmatch(_NAME, name):
        hint = "--name NAME: letters, digits, - and _, at most 64"
        raise Failure(f"{display(name, 80)!r} is no name for a server", code=USAGE, hint=hint)
    return name, file


def _check_imports(file: str, said: Words) -> None:
    """Import FILE as the program will, in a process of its own: an entry that cannot start is refused here."""
    asked_for_later = {_checked(name): "" for name in said.texts("env")}
    words = [sys.executable, "-P", "-c", _LOAD, file]
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**asked_for_later, **os.environ},
            timeout=_IMPORT_TIMEOUT,
        )
    except subprocess.TimeoutExpired:
        hint = "remove what it waits for at import, or pass --no-check"
        raise Failure(f"{display(file, 300)} did not import within {_IMPORT_TIMEOUT:g} s", hint=hint) from None
    if done.returncode:
        told = plain(done.stderr.decode("utf-8", "replace").strip()[-2000:]) or f"exit code {done.returncode}"
        hint = "fix it, or pass --no-check to install it as it is"
        raise Failure(f"{display(file, 300)} cannot be served", cause=told.replace("\n", "\n    "), hint=hint)


def _whole_path(target: str) -> str:
    if os.path.isfile(target):
        return os.path.abspath(target)
    path, colon, which = target.rpartition(":")
    if colon and which.isidentifier() and os.path.isfile(path):
        return f"{os.path.abspath(path)}:{which}"
    raise Failure(f"there is no file {display(target, 200)!r}", code=USAGE)


def name_for(file: str) -> str:
    """What the one Server in the file is called, read and not run; else the name of the file, or of its folder."""
    path = Path(file if os.path.isfile(file) else file.rpartition(":")[0])
    called = _servers_in(path)
    by_place = path.parent.name if path.stem.lower() in _TOO_COMMON else path.stem
    found = called.pop() if len(called) == 1 else by_place
    return re.sub(r"[^A-Za-z0-9_-]+", "-", found).strip("-_")[:64]


def _servers_in(path: Path) -> set[str]:
    try:
        source = path.read_bytes()
        tree = ast.parse(source if len(source) <= _MOST_SOURCE else b"")
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    calls = [each for each in ast.walk(tree) if isinstance(each, ast.Call)]
    made = [each for each in calls if ast.unparse(each.func).rpartition(".")[2] == "Server"]
    names = [each.args[0] if each.args else _keyword(each, "name") for each in made]
    return {each.value for each in names if isinstance(each, ast.Constant) and isinstance(each.value, str)}


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((each.value for each in call.keywords if each.arg == name), None)


def _entry(program: Program, said: Words, file: str) -> dict[str, Any]:
    if file:
        # -P: no module is taken from the folder that the program happens to start it in
        words = [sys.executable, "-P", "-m", "interlock", "run", file]
        return program.by_command(words, _variables(program, said))
    if said.texts("env"):
        raise Failure("--env belongs to a FILE", code=USAGE)
    entry = program.by_url(_address(said.options["url"]))
    if entry is None:
        hint = "add it in its settings, under Connectors"
        raise Failure(f"{program.title} starts servers from this file and takes no addresses there", hint=hint)
    return entry


def _address(url: str) -> str:
    try:
        found = urlsplit(url)
        fits = found.scheme in ("http", "https") and bool(found.hostname) and url.isprintable() and " " not in url
    except ValueError:
        fits = False
    if not fits:
        raise Failure(f"--url {display(url, 200)!r} is no http(s) URL", code=USAGE)
    return url


def _variables(program: Program, said: Words) -> dict[str, str]:
    """Values go into a file of the user's own alone; what is printed or shared gets references."""
    names = said.texts("env")
    if program is not _ANY and not said.flag("project"):
        return {name: _value(name, os.environ) for name in names}
    if names and program.reference is None:
        hint = "set them in the file of the user: leave --project out"
        raise Failure(f"{program.title} has no way to name a variable in a file that is shared", hint=hint)
    return {name: (program.reference or "").format(_checked(name)) for name in names}


def _checked(name: str) -> str:
    if not re.fullmatch(_VARIABLE, name):
        hint = "--env NAME; its value is read here or asked for, because a command line is seen by others"
        raise Failure(f"{display(name.partition('=')[0], 60)!r} is no name of a variable", code=USAGE, hint=hint)
    return name


def _value(name: str, environ: Mapping[str, str]) -> str:
    if _checked(name) in environ:
        return environ[name]
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Failure(f"{name} is not set, and there is no terminal to ask on", code=USAGE, hint=f"export {name}")
    from getpass import getpass  # few ask

    return getpass(f"{name}: ", sys.stderr)


# --- where ---


def here() -> Surroundings:
    return Surroundings(sys.platform, Path.home(), os.environ, Path.cwd())


def place_of(said: Words, around: Surroundings) -> Place:
    """The list that was meant; an error where the program is not there."""
    word = said.options.get("to")
    program = _ANY if word == "json" else PROGRAMS.get(word or "")
    if program is None or word is None:
        told = "which program?" if word is None else f"there is no program {display(word, 60)!r}"
        raise Failure(told, code=USAGE, hint=f"--to {', '.join(PROGRAMS)} or json")
    if "config" in said.options:
        return Place(program, Path(said.options["config"]).expanduser().absolute())
    of_project = said.flag("project")
    found = program.place(around, of_project=of_project)
    if found is None:
        raise Failure(f"{program.title} has no file for a project", code=USAGE, hint="leave --project out")
    if not of_project and not program.is_there(around):
        told = f"{program.title} is not installed for this user: nothing of it is at {display(str(found), 300)}"
        raise Failure(told, hint="--config FILE, if it keeps its file elsewhere")
    return Place(program, found)
