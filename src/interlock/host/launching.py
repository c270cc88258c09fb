"""What exactly is about to be started or connected to, for the person who is asked about it.

A program that a configuration names runs with the rights of its user, so leave to start it is bound to all that decides
what runs: the program as it is found now, every argument, the folder, the names of its variables, or the URL and the
names of its headers. Values of variables and headers are neither shown nor bound, because they are secrets that
rotate; those that decide which code runs (`LD_PRELOAD`, `PYTHONPATH`, …) are both. Whatever changes, even between the
leave and a later restart, is another launch and needs another leave.
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
from ..wire.errors import LocalError
from ..wire.redaction import REDACTED, redact_secrets
from .showing import quoted

__all__ = ["Bound", "Launch", "launch_of", "target_in"]

# They are read by loaders, interpreters and shells before the program itself is.
_DECIDING = frozenset(
    (
        *("PATH", "PATHEXT", "LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "DYLD_INSERT_LIBRARIES", "DYLD_LIBRARY_PATH"),
        *("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "NODE_OPTIONS", "NODE_PATH", "NPM_CONFIG_REGISTRY", "PERL5LIB"),
        *("PERL5OPT", "RUBYLIB", "RUBYOPT", "JAVA_TOOL_OPTIONS", "CLASSPATH", "BASH_ENV", "ENV", "SHELL", "HOME"),
        *("LD_ORIGIN_PATH", "GCONV_PATH", "DYLD_FRAMEWORK_PATH", "DYLD_FALLBACK_LIBRARY_PATH", "PYTHONUSERBASE"),
        *(
            "PYTHONBREAKPOINT",
            "PYTHONWARNINGS",
            "JDK_JAVA_OPTIONS",
            "_JAVA_OPTIONS",
            "DOTNET_STARTUP_HOOKS",
            "LUA_INIT",
        ),
        *("LUA_PATH", "LUA_CPATH", "PHPRC", "PHP_INI_SCAN_DIR", "JULIA_LOAD_PATH", "GIT_SSH_COMMAND", "GIT_SSH"),
        *("GIT_EXEC_PATH", "GIT_CONFIG_GLOBAL", "GIT_PROXY_COMMAND", "DOCKER_HOST", "ZDOTDIR", "XDG_CONFIG_HOME"),
    )
)
# Programs that fetch what they run (npx, uvx, pipx) take it from where these say; they may hold passwords.
_FETCHING = frozenset(
    (
        *(
            "NPM_CONFIG_USERCONFIG",
            "NPM_CONFIG_GLOBALCONFIG",
            "NPM_CONFIG_PREFIX",
            "YARN_REGISTRY",
            "BUN_CONFIG_REGISTRY",
        ),
        *("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CONFIG_FILE", "PIP_FIND_LINKS", "UV_INDEX_URL", "UV_INDEX"),
        *(
            "UV_DEFAULT_INDEX",
            "UV_EXTRA_INDEX_URL",
            "UV_FIND_LINKS",
            "UV_CONFIG_FILE",
            "UV_PYTHON",
            "DENO_DIR",
            "GOPROXY",
        ),
    )
)


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
            return {"url": redact_secrets(self.url), "headers": [*self.headers]}
        return {
            "command": [self._hidden(word) for word in self.command],
            "program": self.program,
            "cwd": self.cwd,
            "environment": [*self.environment],
            "env_policy": self.env_policy,
            "deciding": {name: redact_secrets(value) for name, value in self.deciding.items()},
        }

    @property
    def text(self) -> str:
        """All of it, for a person: nothing is cut, and nothing in it can move a cursor or hide a word."""
        lines = self._of_url() if self.url else self._of_command()
        return "\n".join([*lines, f"digest: {self.digest}"])

    def _of_url(self) -> list[str]:
        shown = [f"connect {quoted(self.server)} to", f"  {quoted(redact_secrets(self.url))}"]
        return [*shown, *([f"sending headers: {_names(self.headers)}"] if self.headers else [])]

    def _of_command(self) -> list[str]:
        words = [self._hidden(word) for word in self.command]
        lines = [f"start {quoted(self.server)}", *(f"  [{number}] {quoted(word)}" for number, word in enumerate(words))]
        lines += [f"program: {quoted(self.program) if self.program else 'not found'}", f"in: {quoted(self.cwd)}"]
        own = {"inherit": "all of this process", "explicit": "nothing else"}.get(self.env_policy, "the usual ones")
        lines.append(f"variables: {_names(self.environment) if self.environment else 'none'}, and {own}")
        lines += [f"  {name} = {quoted(redact_secrets(value))}" for name, value in sorted(self.deciding.items())]
        if any(REDACTED in word for word in words):
            lines.append("parts of the arguments look like secrets and are not shown; the digest covers them")
        return lines

    def _hidden(self, word: str) -> str:
        for secret in self.hide:
            word = word.replace(secret, REDACTED)
        return word


def _names(names: Sequence[str]) -> str:
    return ", ".join(quoted(name) for name in names)


def launch_of(server: str, target: Any, headers: Mapping[str, str] | None = None) -> Launch | None:
    """What pointing a client at this means. None: nothing is started and nobody is called, it lives in this process.

    `target` is what `target_in` returned. References of an entry are looked up, which may fail (`ConfigError`).
    """
    if isinstance(target, ServerEntry):
        if target.kind == "stdio":
            return _of_command(server, target.command())
        url, own = target.address()
        return _of_url(server, url, {**own, **(headers or {})})
    if isinstance(target, Command):
        return _of_command(server, target)
    return _of_url(server, target, headers or {}) if isinstance(target, str) else None


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


def _of_url(server: str, url: str, headers: Mapping[str, str]) -> Launch:
    return Launch(
        server=server,
        url=url,
        headers=tuple(sorted(name.lower() for name in headers)),
        hide=tuple(headers.values()),
    )


def _of_command(server: str, command: Command) -> Launch:
    env = command.env or {}
    cwd = os.path.abspath(command.cwd or os.getcwd())
    return Launch(
        server=server,
        command=command.args,
        program=_program(command, cwd),
        cwd=cwd,
        environment=tuple(sorted(env)),
        env_policy=command.env_policy,
        deciding={name: value for name, value in sorted(env.items()) if name.upper() in _DECIDING | _FETCHING},
        hide=command.hide,
    )


def _program(command: Command, cwd: str) -> str:
    """Which file the first word means: a path in the folder it is started in, a name on its `PATH`."""
    word = command.args[0]
    if os.path.dirname(word):
        word = str(Path(cwd) / word)
    return shutil.which(word, path=command.environment().get("PATH")) or ""


class Bound(ServerEntry):
    """An entry after leave was given. It is looked up anew for every connection, as entries are, and what is found
    then must be what was approved."""

    def __init__(self, entry: ServerEntry, launch: Launch, headers: Mapping[str, str] | None = None) -> None:
        self.__dict__.update(entry.__dict__)
        self._entry, self._launch, self._headers = entry, launch, dict(headers or {})

    def command(self) -> Command:
        command = self._entry.command()
        self._compare(_of_command(self._launch.server, command))
        return command

    def address(self) -> tuple[str, dict[str, str]]:
        url, own = self._entry.address()
        self._compare(_of_url(self._launch.server, url, {**own, **self._headers}))
        return url, own

    def _compare(self, now: Launch) -> None:
        if now.digest != self._launch.digest:
            changed = [name for name in now.__struct_fields__ if getattr(now, name) != getattr(self._launch, name)]
            told = ", ".join(name for name in changed if name != "hide")
            error = LocalError(f"{self.at}: what is to be started is not what was approved ({told} changed)")
            error.hint = "restart the server: whoever approved it is asked again"
            raise error
