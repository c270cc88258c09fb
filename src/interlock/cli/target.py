"""TARGET: what a server is named by on the command line, and the target of a client that it leads to.

    https://example.com/mcp       a URL
    server.py, server.py:notes    a file with a Server: started as `interlock run` would
    mcp.json, mcp.json:notes      the one server of a configuration, or the one of that name
    notes                         a name from the configuration files that hosts keep
    -- npx some-server            a command, behind everything else

Nothing is started here. A name that two files give to different servers is refused: what runs is never a matter of
which file was found first. A name alone never means a file of the current folder: what the folder's configurations name
needs the user's approval (folder_approval.py), and a file that holds code its suffix or its path.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from ..client.config.entries import SECTIONS, Config, ConfigError, NoSection, ServerEntry, read_config
from ..client.config.variables import Input
from ..transport.stdio.child_process import Command
from ..wire.escaping import display
from .errors import USAGE, Failure
from .options import Words
from .programs import PROGRAMS, Surroundings
from .terminal.output import note

__all__ = ["Aim", "aim_of", "config_files", "config_in", "headers_of"]

_HINT = (
    "TARGET is a URL, a Python file, a configuration (mcp.json or mcp.json:NAME), a name in one, or -- and a command; "
    "it comes before all other words"
)


_SUFFIXES = (".py", ".pyw", ".json", ".jsonc")


class Aim(msgspec.Struct, frozen=True):
    """What was meant."""

    kind: Literal["url", "command", "file", "config"]
    name: str
    """For messages; it holds no secret."""
    target: Any
    """What a `Client` takes."""

    @property
    def is_remote(self) -> bool:
        return self.kind == "url" or (isinstance(self.target, ServerEntry) and self.target.kind != "stdio")


def aim_of(words: Words, own: list[str], *, asks: bool = True) -> Aim:
    """The target; the first of `own` is taken, unless there is a command after `--`. Without `asks` the user is not
    asked about a server that only the current folder names: a host asks about every start itself."""
    if words.command is not None:
        return _of_command(words, words.command)
    if not own:
        raise Failure("which server?", code=USAGE, hint=_HINT)
    word = own.pop(0)
    try:
        aim = _of_word(words, word, asks)
    except ConfigError as error:
        raise Failure(str(error), code=USAGE) from error
    for option in ("env", "cwd"):
        if option in words.options and not isinstance(aim.target, Command):
            raise Failure(f"--{option} belongs to a command or a file", code=USAGE)
    return aim


def _of_command(words: Words, command: list[str]) -> Aim:
    """A program of others: it sees what it needs, not every variable of this terminal (--env adds some)."""
    target = Command(args=tuple(command), env=_env(words), cwd=words.options.get("cwd"))
    return Aim("command", display(" ".join(command), 100), target)


def _env(words: Words) -> dict[str, str] | None:
    """NAME=VALUE, or NAME for the value that it has here."""
    found: dict[str, str] = {}
    for each in words.texts("env"):
        name, equals, value = each.partition("=")
        if not name or (not equals and name not in os.environ):
            raise Failure(f"--env {name!r}: there is no such variable here", code=USAGE, hint="--env NAME=VALUE")
        found[name] = value if equals else os.environ[name]
    return found or None


def _of_word(words: Words, word: str, asks: bool) -> Aim:
    if word[:8].lower().startswith(("http://", "https://")):
        return Aim("url", display(word.partition("?")[0], 200), word)
    path, which = _file_and_rest(word)
    if path is None:
        return _of_name(words, word, asks)
    if path.lower().endswith((".json", ".jsonc")):
        config = config_in(path, words.texts("allow-folder"))
        return _entry(config[which] if which else _only(config))
    return _of_file(words, path, which)


def _file_and_rest(word: str) -> tuple[str | None, str]:
    """As `interlock run` reads it: a file, or a file, a colon and a name. A bare name is not a file."""
    if _is_path(word) and os.path.isfile(word):
        return word, ""
    path, colon, name = word.rpartition(":")
    if colon and name and _is_path(path) and os.path.isfile(path):
        return path, name
    return None, ""


def _is_path(word: str) -> bool:
    return "/" in word or os.sep in word or word.lower().endswith(_SUFFIXES)


def _of_file(words: Words, path: str, which: str) -> Aim:
    """The author's own file, run by this very Python with what this terminal has, as `interlock run` in it would."""
    name = f"{path}:{which}" if which else path
    full = os.path.abspath(path) + name[len(path) :]
    args = (sys.executable, "-P", "-m", "interlock", "run", full)  # -P: no module is taken from where we happen to be
    target = Command(args=args, env=_env(words), env_policy="inherit", cwd=words.options.get("cwd"))
    return Aim("file", display(name, 200), target)


def _only(config: Config) -> ServerEntry:
    if len(config) == 1:
        return config[next(iter(config))]
    names = ", ".join(f"{config.file}:{display(each, 60)}" for each in [*config][:20])
    hint = f"choose one: {names}" if names else ""
    raise Failure(f"{display(config.file, 300)} has {len(config)} servers", code=USAGE, hint=hint)


def _entry(entry: ServerEntry) -> Aim:
    return Aim("config", f"{display(entry.name, 60)} of {display(entry.file, 200)}", entry)


# --- names ----------------------------------------------------------------------------------------


def config_files(home: Path | None = None, here: Path | None = None) -> dict[Path, bool]:
    """Where hosts keep their servers, this folder's first. True: it is this folder's and not this user's."""
    around = Surroundings(sys.platform, home or Path.home(), os.environ, here or Path.cwd())
    of_folder, of_user = (
        [each.place(around, of_project=of_project) for each in PROGRAMS.values() if each.member in SECTIONS]
        for of_project in (True, False)
    )
    found = [around.project / "mcp.json", *of_folder, *of_user]
    return {place: place not in of_user for place in found if place is not None}


def config_in(path: str | Path, allowed_folders: Iterable[str] = ()) -> Config:
    """A configuration that the user names by its path. Its server is the user's choice; what its `${file:...}` and
    `envFile` read is not: unless it is one of the user's own files, they lead below its folder or an allowed one."""
    own = {place.resolve() for place, of_folder in config_files().items() if not of_folder}
    confined = Path(path).expanduser().resolve() not in own
    return read_config(path, inputs=_asked, confined=confined, allowed_folders=allowed_folders)


def _of_name(words: Words, word: str, asks: bool) -> Aim:
    if _is_path(word):
        hint = f"did you mean http://{word}?" if _looks_like_url(word) else _HINT
        raise Failure(f"there is no file {display(word, 200)!r}", code=USAGE, hint=hint)
    found, names, broken = _servers_called(word, words.texts("allow-folder"))
    if not found:
        known = f"there are: {', '.join(sorted(names)[:20])}" if names else _HINT
        known = f"did you mean the file ./{display(word, 200)}?" if os.path.isfile(word) else known
        cause = "; ".join(broken)
        raise Failure(f"no configuration has a server {display(word, 60)!r}", code=USAGE, cause=cause, hint=known)
    if len({entry.key[2] for entry in found}) > 1:
        choice = ", ".join(f"{display(entry.file, 200)}:{word}" for entry in found)
        raise Failure(f"{len(found)} files name different servers {word!r}", code=USAGE, hint=f"choose one: {choice}")
    return _entry(_chosen(found, asks))


def _chosen(found: list[ServerEntry], asks: bool) -> ServerEntry:
    """Of entries that say the same, the user's own. One that only the folder has must be approved."""
    files = config_files()
    entry = min(found, key=lambda each: files[Path(each.file)])
    note(f"{display(entry.name, 60)}: from {display(entry.file, 300)}")
    if not (asks and files[Path(entry.file)]):
        return entry
    from .folder_approval import approve_entry  # few names come from a folder, and the gate costs a start 50 ms

    return approve_entry(entry)


def _looks_like_url(word: str) -> bool:
    host = word.partition("/")[0]
    return host.startswith(("localhost", "127.")) or (":" in host and "." in host)


def _servers_called(word: str, allowed_folders: list[str]) -> tuple[list[ServerEntry], set[str], list[str]]:
    """Those of that name, the names of all, and which files cannot be read."""
    found: list[ServerEntry] = []
    names: set[str] = set()
    broken: list[str] = []
    for path, of_folder in config_files().items():
        if not path.is_file():
            continue
        try:
            config = read_config(path, inputs=_asked, confined=of_folder, allowed_folders=allowed_folders)
        except NoSection:
            continue  # a host's settings that name no server at all
        except ConfigError as error:
            broken.append(str(error))
            continue
        names |= {display(each, 60) for each in config}
        if word in config:
            found.append(config[word])
    return found, names, broken


def _asked(asked: Input) -> str:
    """`${input:...}`: what the file wants to be told by the user, on a terminal and nowhere else."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise ConfigError(f"the input {display(asked.id, 60)!r} is asked for, and there is no terminal to ask on")
    from getpass import getpass  # few files ask

    about = f" ({display(asked.description, 200)})" if asked.description else ""
    shown = f"value of the input {display(asked.id, 60)}{about}: "
    if asked.password:
        return getpass(shown)
    sys.stderr.write(shown)
    sys.stderr.flush()
    return sys.stdin.readline().rstrip("\n")


def headers_of(words: Words, environ: Mapping[str, str] = os.environ) -> dict[str, str] | None:
    """`--header 'Name: value'` and `--bearer VARIABLE`: a token is read from a variable, because a command line is
    seen by everybody on the machine."""
    found: dict[str, str] = {}
    for each in words.texts("header"):
        name, colon, value = each.partition(":")
        if not colon or not name.strip():
            raise Failure(f"--header {display(each, 40)!r}: this is 'Name: value'", code=USAGE)
        found[name.strip()] = value.strip()
    variable = words.options.get("bearer")
    if variable is not None:
        if not environ.get(variable):
            raise Failure(f"--bearer {variable[:60]!r}: there is no such variable", code=USAGE, hint="export it first")
        found["Authorization"] = f"Bearer {environ[variable]}"
    return found or None
