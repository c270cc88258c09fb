"""What stands behind `${...}` in a configuration: variables, files, and what a user is asked for.

Looked up late, whenever a connection is made, so that a rotated secret counts at the next one. What was looked up is
kept as a list of texts to hide. Nothing is ever run to find a value.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import msgspec

from ..transport.environment import MINIMAL_ENVIRONMENT
from ..wire.display import display
from ..wire.patterns import pattern
from ..wire.redaction import redact_secrets
from .config_text import ConfigError, read_text

__all__ = ["Input", "Inputs", "Values", "looks_secret"]

_REFERENCE = pattern(r"\$\{([^{}]{0,1024})\}")
_NAME = pattern(r"([A-Za-z_][A-Za-z0-9_]{0,255})(?::-(.{0,1024}))?")
_FILE_BYTES = 64 * 1024  # of a file that is one value
_SHORTEST = 6  # characters: a shorter text would be hidden in the middle of innocent words
_MOST_HIDDEN = 1000
_PREDEFINED = ("workspaceFolder", "workspaceFolderBasename", "pathSeparator", "/", "userHome")


class Input(msgspec.Struct, frozen=True):
    """One of the `inputs` of a file in the shape of VS Code: what the user is asked for, once."""

    id: str
    description: str = ""
    password: bool = False
    options: tuple[str, ...] = ()
    default: str | None = None
    """What a prompt shows first; it is never taken unasked."""


Inputs = Mapping[str, str] | Callable[[Input], str]


class Values:
    """Everything a reference can mean in one configuration."""

    def __init__(
        self,
        folder: Path,
        workspace: Path | None,
        declared: Mapping[str, Input],
        inputs: Inputs | None,
        environ: Mapping[str, str] | None,
        confined: bool = False,
    ) -> None:
        self._folder, self._workspace, self._confined = folder, workspace, confined
        self._declared, self._inputs = declared, inputs
        self._environ = environ
        self._given: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"Values({str(self._folder)!r})"  # what users gave is not for logs

    def fill(self, text: str, where: str, hidden: list[str]) -> str:
        """`text` with every reference replaced; what may be a secret is added to `hidden`."""

        def value(found: re.Match[str]) -> str:
            looked_up, secret = self._look_up(found[1], where)
            if secret and len(looked_up) >= _SHORTEST and len(hidden) < _MOST_HIDDEN:
                hidden.append(looked_up)
            return looked_up

        return _REFERENCE.sub(value, text)

    def references(self, text: str) -> str:
        """Those in a text that lead to a variable, a file or the user, as they are written; a file with its path."""
        found = [match[1] for match in _REFERENCE.finditer(text) if match[1] not in _PREDEFINED]
        return ", ".join(f"${{{each}}}{self._place(each)}" for each in found)

    def _place(self, reference: str) -> str:
        kind, colon, name = reference.partition(":")
        return f" = {self.path(name)}" if colon and kind == "file" else ""

    def path(self, text: str) -> Path:
        """A relative one belongs to the workspace, and where there is none to the folder of the configuration."""
        if "\0" in text:
            raise ConfigError(f"{display(text, 300)}: a path cannot hold a NUL character")
        try:
            return (self._workspace or self._folder) / Path(text).expanduser()
        except RuntimeError:
            raise ConfigError(f"{display(text, 300)}: there is no such user on this machine") from None

    def file(self, text: str, where: str) -> Path:
        """One whose content is a value: of a confined configuration only below its folder, wherever links lead."""
        path = self.path(text)
        if not self._confined:
            return path
        try:
            base, real = (self._workspace or self._folder).resolve(), path.resolve()
        except (OSError, RuntimeError):
            raise ConfigError(f"{where}: {display(str(path), 300)} cannot be found") from None
        if not real.is_relative_to(base):
            told = f"{where}: {display(str(real), 300)} is outside of {display(str(base), 300)}"
            raise ConfigError(f"{told}: a folder's configuration reads files of that folder only; name it by its path")
        if real.exists() and not real.is_file():  # a pipe would be waited for
            raise ConfigError(f"{where}: {display(str(real), 300)} is not a regular file")
        return real

    def folder_of(self, cwd: str | None) -> str | None:
        """Where a server is started: as it says, else in the workspace, else where we are."""
        if cwd is not None:
            return str(self.path(cwd))
        return str(self._workspace) if self._workspace is not None else None

    def _look_up(self, reference: str, where: str) -> tuple[str, bool]:
        kind, colon, name = reference.partition(":")
        if colon and kind == "env":
            return self._variable(name, None, where)
        if colon and kind == "file":
            return read_text(self.file(name, where), _FILE_BYTES, where).rstrip("\r\n"), True
        if colon and kind == "input":
            return self._input(name, where), True
        known = self._predefined(reference, where)
        if known is not None:
            return known, False
        match = _NAME.fullmatch(reference)
        if match is None or match[1] in ("command", "config", "extension"):
            told = "${env:NAME}, ${file:path}, ${input:id}, ${NAME:-otherwise}, ${workspaceFolder} and ${userHome}"
            raise ConfigError(f"{where}: ${{{display(reference, 60)}}} is not known here; {told} are")
        return self._variable(match[1], match[2], where)

    def _variable(self, name: str, otherwise: str | None, where: str) -> tuple[str, bool]:
        environ = os.environ if self._environ is None else self._environ
        found = environ.get(name, otherwise)
        if found is None:
            raise ConfigError(f"{where}: the environment variable {display(name, 60)} is not set")
        return found, name in environ and name not in MINIMAL_ENVIRONMENT

    def _predefined(self, name: str, where: str) -> str | None:
        if name in ("workspaceFolder", "workspaceFolderBasename"):
            if self._workspace is None:
                raise ConfigError(f"{where}: ${{{name}}}: say which with workspace=")
            return str(self._workspace) if name == "workspaceFolder" else self._workspace.name
        if name in ("pathSeparator", "/"):
            return os.sep
        return str(Path.home()) if name == "userHome" else None

    def _input(self, id: str, where: str) -> str:
        if id not in self._given:
            self._given[id] = self._asked(id, where)
        return self._given[id]

    def _asked(self, id: str, where: str) -> str:
        shown = display(id, 60)
        declared = self._declared.get(id)
        if declared is None:
            raise ConfigError(f"{where}: ${{input:{shown}}} is not among the inputs of the file")
        given: Any = self._inputs(declared) if callable(self._inputs) else cast(Any, self._inputs or {}).get(id)
        if not isinstance(given, str):
            about = f" ({display(declared.description, 100)})" if declared.description else ""
            raise ConfigError(f"{where}: the input {shown!r}{about} is not given: say inputs={{{shown!r}: ...}}")
        if declared.options and given not in declared.options:
            raise ConfigError(f"{where}: the input {shown!r} is none of its options")
        return given


def looks_secret(name: str, value: str) -> bool:
    """By its name or its looks. `PATH` and `LOG_LEVEL` are none: they would be hidden all over a log."""
    return redact_secrets({name: value}) != {name: value} or name.lower().endswith(("key", "pass", "auth", "pat"))
