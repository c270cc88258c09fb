"""What exactly is about to be started or connected to, for the person who is asked about it.

A program that a configuration names runs with the rights of its user, so permission to start it is bound to all that
decides what runs: the program as it is found now and the content of its file, every argument, the content of a script
among them, the folder, the names of its variables, or the URL and the names of its headers.

What was looked up for a configuration (a variable, a file, an input) may be a secret that rotates. It is shown as the
configuration writes it, `${env:TOKEN}`, and permission is bound to that text and its sources, not to the value. What
decides which code runs or which host is contacted is bound by value as well, and not shown either: the program, the
folder, scripts, variables such as `LD_PRELOAD` and `PYTHONPATH`, the host of a URL, and words that hold the content of
a file. Inputs are asked for after permission was given. Whatever changes, even between the permission and a later
restart, is another launch and needs another permission.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import msgspec

from ...client.config.entries import ConfigError, ResolvedEntry, ServerEntry, entry_in
from ...client.config.variables import Filled, plain_text, redact_template
from ...transport.stdio.child_process import Command
from ...transport.stdio.environment import is_proxy_variable, proxy_secrets, redact_proxy
from ...wire.errors import LocalError, SpawnFailed
from ...wire.escaping import display
from ...wire.redaction import REDACTED, redact_secrets, redact_url_passwords
from ..gate.consent_text import quoted
from ..gate.diffs import escaped
from .code_variables import decides_code
from .interpreters import scripts_in

__all__ = ["Bound", "Launch", "bound", "check_program", "launch_of", "target_in"]

_MAX_HASHED = 16 * 1024 * 1024  # bytes of a file that are read for its digest; a larger one is bound by size and time
_MAX_SCRIPTS = 4  # of one command
_MAX_DIGESTS = 256  # files whose digest is remembered, as long as they do not change
_PROGRAM = "this program"  # where a value comes from that no configuration holds
_UNBOUND = ("hide", "has_folder")  # members of a launch
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
    looked_up: dict[str, str] = {}
    """Digests of looked-up values that decide which code runs or which host is contacted, by what they are."""
    has_folder: bool = True
    """The folder is there now."""
    hide: tuple[str, ...] = ()
    """Texts in it that nobody is shown; the digest knows them."""

    @property
    def digest(self) -> str:
        """Of everything that is bound."""
        bound = {name: getattr(self, name) for name in self.__struct_fields__ if name not in _UNBOUND}
        return sha256(json.dumps(bound, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def identity(self) -> str:
        """Which server it is, wherever it is started from: what is remembered about its offer belongs to this."""
        return sha256(json.dumps([self.command, self.url]).encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def arguments(self) -> dict[str, Any]:
        """What is bound as plain JSON, without secrets: for policies and the audit."""
        if self.url:
            return {"url": redact_template(self.url), "headers": [*self.headers], "sources": {**self.sources}}
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
        shown = [f"connect {quoted(self.server)} to", f"  {quoted(redact_template(self.url))}"]
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
    """What pointing a client at this means. None: nothing is started or contacted, it lives in this process.

    `target` is what `target_in` returned. References of an entry are looked up, which may fail (`ConfigError`), and the
    user is not asked for inputs.
    """
    if isinstance(target, ServerEntry):
        return _of_entry(server, target, target.resolve(asks=False), headers)
    if isinstance(target, Command):
        return _of_command(server, _as_resolved(target), target.hide)
    return _of_url(server, plain_text(target), (), headers or {}) if isinstance(target, str) else None


def _of_entry(
    server: str, entry: ServerEntry, resolved: ResolvedEntry, headers: Mapping[str, str] | None = None
) -> Launch:
    if resolved.url is not None:
        return _of_url(server, resolved.url, resolved.headers, headers or {}, resolved.sources)
    _check_known(entry, resolved)
    return _of_command(server, resolved)


def _check_known(entry: ServerEntry, resolved: ResolvedEntry) -> None:
    texts = {"command": resolved.words[0], "cwd": resolved.cwd}
    texts |= {f"env.{name}": text for name, text in resolved.env.items() if decides_code(name)}
    for what, text in texts.items():
        if text is not None and text.has_question:
            told = "holds an ${input:...}, which is asked for only after you approve the server, and decides which code"
            way = "write the value, or use ${env:NAME}"
            raise ConfigError(f"{entry.at}, {display(what, 80)}: {told} runs: {way}")


def _as_resolved(command: Command) -> ResolvedEntry:
    """A command that this program gives, not a configuration."""
    env = command.env or {}
    return ResolvedEntry(
        words=tuple(plain_text(word) for word in command.args),
        env={name: plain_text(value) for name, value in env.items()},
        env_policy=command.env_policy,
        cwd=None if command.cwd is None else plain_text(command.cwd),
        sources={f"variable {name}": _PROGRAM for name in env},
    )


def check_program(launch: Launch) -> None:
    """Raise `SpawnFailed` where nothing could be started: no question is asked about a program that is not there."""
    if not launch.command:
        return
    if not launch.has_folder:
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
    server: str,
    url: Filled,
    own: Iterable[str],
    given: Mapping[str, str],
    sources: Mapping[str, str] | None = None,
) -> Launch:
    """`own` are the names of the configuration's headers; those `given` beside it win."""
    return Launch(
        server=server,
        url=url.shown,
        headers=tuple(sorted({name.lower() for name in (*own, *given)})),
        sources={**(sources or {}), **{f"header {name.lower()}": _PROGRAM for name in given}},
        looked_up=_digests_of({"host": (_origin(url.shown), _origin(url.known))}),
    )


def _origin(url: str) -> str:
    """All of a URL before its path; the whole of it where that cannot be told."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else url


def _of_command(server: str, resolved: ResolvedEntry, hide: Sequence[str] = ()) -> Launch:
    words, env = resolved.words, resolved.env
    cwd = plain_text(os.getcwd()) if resolved.cwd is None else resolved.cwd
    folder = os.path.abspath(cwd.known)
    shown_folder = cwd.shown if cwd.is_looked_up else folder
    program = _program(resolved, folder)
    shown_program = words[0].shown if program and _is_found_by_lookup(resolved) else program
    deciding = {name: text for name, text in sorted(env.items()) if decides_code(name)}
    scripts = _scripts(words, folder, shown_folder)
    files = {shown_program: program, **scripts} if program else scripts
    pairs = {"program": (shown_program, program), "folder": (shown_folder, folder)}
    pairs |= {f"file {shown}": (shown, file) for shown, file in scripts.items()}
    pairs |= {f"variable {name}": (text.shown, text.known) for name, text in deciding.items()}
    pairs |= {f"word [{number}]": (word.shown, word.known) for number, word in enumerate(words) if word.has_file}
    return Launch(
        server=server,
        command=tuple(word.shown for word in words),
        program=shown_program,
        cwd=shown_folder,
        has_folder=os.path.isdir(folder),
        environment=tuple(sorted(env)),
        env_policy=resolved.env_policy,
        deciding={name: text.shown for name, text in deciding.items()},
        sources={
            what: where
            for what, where in resolved.sources.items()
            if (text := deciding.get(what.removeprefix("variable "))) is None or text.is_looked_up
        },
        contents={shown: _digest_of(file) for shown, file in files.items() if os.path.isfile(file)},
        looked_up=_digests_of(pairs),
        hide=(*hide, *proxy_secrets(os.environ)),  # values of a configuration do not hide arguments
    )


def _digests_of(pairs: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """Of values (the second of each pair) that are not what is shown (the first)."""
    return {
        what: sha256(value.encode("utf-8", "surrogatepass")).hexdigest()
        for what, (shown, value) in pairs.items()
        if value != shown
    }


def _program(resolved: ResolvedEntry, folder: str) -> str:
    """Which file the first word means: a path in the folder it is started in, a name on its `PATH`."""
    word = resolved.words[0].known
    if os.path.dirname(word):
        word = str(Path(folder) / word)
    return shutil.which(word, path=resolved.command().environment().get("PATH")) or ""


def _is_found_by_lookup(resolved: ResolvedEntry) -> bool:
    """Would the path of the program show a looked-up text?"""
    word, path = resolved.words[0], resolved.env.get("PATH")
    if os.path.dirname(word.known):
        is_relative = not os.path.isabs(word.known)
        return word.is_looked_up or (is_relative and resolved.cwd is not None and resolved.cwd.is_looked_up)
    return word.is_looked_up or (path is not None and path.is_looked_up)


def _scripts(words: Sequence[Filled], folder: str, shown_folder: str) -> dict[str, str]:
    """Files with code that an interpreter among the words is given, by how they are shown."""
    shown = {word.known: word.shown for word in words if not word.has_question}
    found = [word for word in scripts_in([word.known for word in words]) if word in shown][:_MAX_SCRIPTS]
    return {os.path.join(shown_folder, shown[word]): os.path.join(folder, word) for word in found}


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

    def resolve(self, *, asks: bool = True) -> ResolvedEntry:
        return _as_resolved(self._command)


class Bound(ServerEntry):
    """An entry after permission was given. It is looked up again for every connection, as entries are, and what is
    found then must be what was approved."""

    def __init__(self, entry: ServerEntry, launch: Launch, headers: Mapping[str, str] | None = None) -> None:
        self.__dict__.update(entry.__dict__)
        self._entry, self._launch, self._headers = entry, launch, dict(headers or {})

    def command(self) -> Command:
        resolved = self.resolve()
        return self._entry.command() if isinstance(self._entry, _FixedEntry) else resolved.command()

    def resolve(self, *, asks: bool = True) -> ResolvedEntry:
        resolved = self._entry.resolve(asks=asks)
        self._compare(_of_entry(self._launch.server, self._entry, resolved, self._headers))
        return resolved

    def sources(self) -> dict[str, str]:
        return self._entry.sources()

    def _compare(self, now: Launch) -> None:
        if now.digest == self._launch.digest:
            return
        changed = [name for name in now.__struct_fields__ if getattr(now, name) != getattr(self._launch, name)]
        before, after = self._launch.looked_up, now.looked_up
        changed += [what for what in {**before, **after} if before.get(what) != after.get(what)]
        told = ", ".join(escaped(name) for name in changed if name not in (*_UNBOUND, "looked_up"))
        error = LocalError(f"{self.at}: what is to be started is not what was approved ({told} changed)")
        error.hint = "restart the server: the user is asked again"
        raise error


def bound(server: str, target: Any, launch: Launch, headers: Mapping[str, str] | None = None) -> Any:
    """The target after leave was given for `launch`. A URL cannot change."""
    if isinstance(target, Command):
        target = _FixedEntry(server, target)
    return Bound(target, launch, headers) if isinstance(target, ServerEntry) else target
