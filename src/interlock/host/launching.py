"""What exactly is about to be started or connected to, for the person who is asked about it.

A program that a configuration names runs with the rights of its user, so leave to start it is bound to all that decides
what runs: the program as it is found now and the content of its file, every argument, the content of a script among
them, the folder, the names of its variables, or the URL and the names of its headers. Values of variables and headers
are neither shown nor bound, because they are secrets that rotate, but where each comes from (a variable, a file, the
configuration) is both. Variables that decide which code runs (`LD_PRELOAD`, `PYTHONPATH`, …) are bound by value.
Whatever changes, even between the leave and a later restart, is another launch and needs another leave.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any, cast

import msgspec

from ..client.config import ServerEntry, entry_in
from ..transport.child import Command
from ..transport.environment import is_proxy_variable, proxy_secrets, redact_proxy
from ..wire.errors import LocalError, SpawnFailed
from ..wire.redaction import REDACTED, redact_secrets, redact_url_passwords
from .code_variables import decides_code
from .diffs import escaped
from .interpreters import scripts_in
from .showing import quoted

__all__ = ["Bound", "Launch", "bound", "check_program", "launch_of", "target_in"]

_MAX_HASHED = 16 * 1024 * 1024  # bytes of a file that are read for its digest; a larger one is bound by size and time
_MAX_SCRIPTS = 4  # of one command
_MAX_DIGESTS = 256  # files whose digest is remembered, as long as they do not change
_PROGRAM = "this program"  # where a value comes from that no configuration holds
_digests: dict[tuple[object, ...], str] = {}


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """Of one server. Exactly one of `command` and `url` is there."""

    server: str
    command: tuple[str, ...] = ()
    """The words, exactly."""
    program: str = ""
    """The file that the first of them means now."""
    cwd: str = ""
    url: str = ""
    environment: tuple[str, ...] = ()
    """Names of variables that it is given beside what every program gets."""
    env_policy: str = ""
    deciding: dict[str, str] = {}
    """Variables of it that decide which code runs, with their values."""
    headers: tuple[str, ...] = ()
    sources: dict[str, str] = {}
    """Where values come from, by what they are the value of: references as the configuration writes them."""
    contents: dict[str, str] = {}
    """The files that run, each with a digest of its content."""
    hide: tuple[str, ...] = ()
    """Texts in it that nobody is shown; the digest knows them."""

    @property
    def digest(self) -> str:
        """Of everything that is bound."""
        bound = {name: getattr(self, name) for name in self.__struct_fields__ if name != "hide"}
        return sha256(json.dumps(bound, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def identity(self) -> str:
        """Which server it is, wherever it is started from: what is remembered about its offer belongs to this."""
        return sha256(json.dumps([self.command, self.url]).encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def arguments(self) -> dict[str, Any]:
        """What is bound as plain JSON, without secrets: for policies and the audit."""
        if self.url:
            return {"url": redact_secrets(self.url), "headers": [*self.headers], "sources": {**self.sources}}
        return {
            "command": [self._hidden(word) for word in self.command],
            "program": self.program,
            "cwd": self.cwd,
            "environment": [*self.environment],
            "env_policy": self.env_policy,
            "deciding": {name: _without_secrets(name, value) for name, value in self.deciding.items()},
            "sources": {**self.sources},
            "contents": {**self.contents},
        }

    @property
    def text(self) -> str:
        """All of it, for a person: nothing is cut, and nothing in it can move a cursor or hide a word."""
        lines = self._of_url() if self.url else self._of_command()
        return "\n".join([*lines, f"digest: {self.digest}"])

    def _of_url(self) -> list[str]:
        shown = [f"connect {quoted(self.server)} to", f"  {quoted(redact_secrets(self.url))}"]
        shown += [f"sending headers: {_names(self.headers)}"] if self.headers else []
        return [*shown, *self._origins()]

    def _origins(self) -> list[str]:
        lines = [f"  {escaped(what)} from {escaped(where)}" for what, where in sorted(self.sources.items())]
        return ["values that are not shown here:", *lines] if lines else []

    def _of_command(self) -> list[str]:
        words = [self._hidden(word) for word in self.command]
        lines = [f"start {quoted(self.server)}", *(f"  [{number}] {quoted(word)}" for number, word in enumerate(words))]
        lines += [f"program: {quoted(self.program) if self.program else 'not found'}", f"in: {quoted(self.cwd)}"]
        own = {"inherit": "all of this process", "explicit": "nothing else"}.get(self.env_policy, "the usual ones")
        lines.append(f"variables: {_names(self.environment) if self.environment else 'none'}, and {own}")
        deciding = sorted(self.deciding.items())
        lines += [f"  {escaped(name)} = {quoted(_without_secrets(name, value))}" for name, value in deciding]
        lines += self._origins()
        lines += [f"content of {quoted(file)}: {digest}" for file, digest in sorted(self.contents.items())]
        lines.append("not bound: what is loaded or fetched when it runs (modules, packages, other files)")
        if any(REDACTED in word for word in words):
            lines.append("parts of the arguments look like secrets and are not shown; the digest covers them")
        return lines

    def _hidden(self, word: str) -> str:
        for secret in self.hide:
            word = word.replace(secret, REDACTED)
        return redact_url_passwords(word)


def _without_secrets(name: str, value: str) -> str:
    """By its looks, or by its name."""
    [shown] = redact_secrets({name: redact_proxy(value) if is_proxy_variable(name) else value}).values()
    return str(shown)


def _names(names: Sequence[str]) -> str:
    return ", ".join(quoted(name) for name in names)


def launch_of(server: str, target: Any, headers: Mapping[str, str] | None = None) -> Launch | None:
    """What pointing a client at this means. None: nothing is started and nobody is called, it lives in this process.

    `target` is what `target_in` returned. References of an entry are looked up, which may fail (`ConfigError`).
    """
    if isinstance(target, ServerEntry):
        if target.kind == "stdio":
            return _of_command(server, target.command(), target.sources())
        url, own = target.address()
        return _of_url(server, url, own, headers or {}, target.sources())
    if isinstance(target, Command):
        return _of_command(server, target)
    return _of_url(server, target, {}, headers or {}) if isinstance(target, str) else None


def check_program(launch: Launch) -> None:
    """Raise `SpawnFailed` where nothing could be started: no question is asked about a program that is not there."""
    if not launch.command:
        return
    if not os.path.isdir(launch.cwd):
        raise SpawnFailed(f"could not start {quoted(launch.command[0])}: there is no folder {quoted(launch.cwd)}")
    if not launch.program:
        told = f"could not start {quoted(launch.command[0])}: no such program"
        raise SpawnFailed(f"{told}. Install it, or give its full path")


def target_in(target: Any) -> Any:
    """What a user gave for a server as one of: an entry, a command, a URL, or something that lives in this process."""
    if isinstance(target, Mapping | PathLike):
        return entry_in(cast(Any, target))
    if isinstance(target, list | tuple):
        words = cast("Sequence[Any]", target)
        if not words or not all(isinstance(word, str) for word in words):
            raise LocalError(f"{target!r:.200} is no command: give at least one word, and only texts")
        return Command.of(words)
    return target


def _of_url(
    server: str, url: str, own: Mapping[str, str], given: Mapping[str, str], sources: Mapping[str, str] | None = None
) -> Launch:
    """`own` headers are the configuration's, those `given` beside it win."""
    headers = {name.lower(): value for name, value in {**own, **given}.items()}
    return Launch(
        server=server,
        url=url,
        headers=tuple(sorted(headers)),
        sources={**(sources or {}), **{f"header {name.lower()}": _PROGRAM for name in given}},
        hide=tuple(headers.values()),
    )


def _of_command(server: str, command: Command, sources: Mapping[str, str] | None = None) -> Launch:
    env = command.env or {}
    cwd = os.path.abspath(command.cwd or os.getcwd())
    program = _program(command, cwd)
    deciding = {name: value for name, value in sorted(env.items()) if decides_code(name)}
    origins = sources if sources is not None else {f"variable {name}": _PROGRAM for name in env}
    return Launch(
        server=server,
        command=command.args,
        program=program,
        cwd=cwd,
        environment=tuple(sorted(env)),
        env_policy=command.env_policy,
        deciding=deciding,
        sources={what: where for what, where in origins.items() if what.removeprefix("variable ") not in deciding},
        contents=_contents(program, command.args, cwd),
        hide=(*command.hide, *proxy_secrets(os.environ)),  # a configuration's own are no reason to hide an argument
    )


def _program(command: Command, cwd: str) -> str:
    """Which file the first word means: a path in the folder it is started in, a name on its `PATH`."""
    word = command.args[0]
    if os.path.dirname(word):
        word = str(Path(cwd) / word)
    return shutil.which(word, path=command.environment().get("PATH")) or ""


def _contents(program: str, words: Sequence[str], cwd: str) -> dict[str, str]:
    """What the files hold that run: the program, and the script that an interpreter is given."""
    scripts = [os.path.join(cwd, word) for word in scripts_in(words)][:_MAX_SCRIPTS]
    files = [program, *scripts] if program else scripts
    return {file: _digest_of(file) for file in files if os.path.isfile(file)}


def _digest_of(file: str) -> str:
    """Of its content, where that is cheap. Read once, until the file changes."""
    try:
        with open(file, "rb") as opened:
            stat = os.fstat(opened.fileno())
            key = (file, stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
            if stat.st_size > _MAX_HASHED:
                return f"not read: only its size ({stat.st_size}) and time ({stat.st_mtime_ns}) are bound"
            if key not in _digests:
                if len(_digests) >= _MAX_DIGESTS:
                    _digests.clear()
                _digests[key] = f"sha256 {sha256(opened.read(_MAX_HASHED + 1)).hexdigest()}"
            return _digests[key]
    except OSError:
        return "cannot be read: not bound"


class _FixedEntry(ServerEntry):
    """A command as an entry, so that it is compared with what was approved before every start."""

    def __init__(self, name: str, command: Command) -> None:
        self.name, self.file, self.kind, self.disabled = name, "command", "stdio", False
        self._command = command
        self._members = msgspec.to_builtins(command)

    def command(self) -> Command:
        return self._command

    def sources(self) -> dict[str, str]:
        return {f"variable {name}": _PROGRAM for name in self._command.env or {}}


class Bound(ServerEntry):
    """An entry after leave was given. It is looked up again for every connection, as entries are, and what is found
    then must be what was approved."""

    def __init__(self, entry: ServerEntry, launch: Launch, headers: Mapping[str, str] | None = None) -> None:
        self.__dict__.update(entry.__dict__)
        self._entry, self._launch, self._headers = entry, launch, dict(headers or {})

    def command(self) -> Command:
        command = self._entry.command()
        self._compare(_of_command(self._launch.server, command, self._entry.sources()))
        return command

    def address(self) -> tuple[str, dict[str, str]]:
        url, own = self._entry.address()
        self._compare(_of_url(self._launch.server, url, own, self._headers, self._entry.sources()))
        return url, own

    def sources(self) -> dict[str, str]:
        return self._entry.sources()

    def _compare(self, now: Launch) -> None:
        if now.digest != self._launch.digest:
            changed = [name for name in now.__struct_fields__ if getattr(now, name) != getattr(self._launch, name)]
            told = ", ".join(name for name in changed if name != "hide")
            error = LocalError(f"{self.at}: what is to be started is not what was approved ({told} changed)")
            error.hint = "restart the server: the user is asked again"
            raise error


def bound(server: str, target: Any, launch: Launch, headers: Mapping[str, str] | None = None) -> Any:
    """The target after leave was given for `launch`. A URL cannot change."""
    if isinstance(target, Command):
        target = _FixedEntry(server, target)
    return Bound(target, launch, headers) if isinstance(target, ServerEntry) else target
