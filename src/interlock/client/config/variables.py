"""References (`${...}`) of a configuration: variables, files, and inputs that the user is asked for.

They are looked up late, whenever a connection is made, so that a rotated secret counts at the next one. A text is kept
in three forms: with the values, as it may be shown (references as they are written), and without what the user is asked
for. Nothing is ever run to find a value.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, cast

import msgspec

from ...transport.stdio.environment import MINIMAL_ENVIRONMENT
from ...wire.escaping import display
from ...wire.lazy_regex import pattern
from ...wire.redaction import redact_secrets
from .parser import ConfigError, read_text

__all__ = ["Filled", "Input", "Inputs", "Lookup", "Values", "looks_secret", "plain_text", "redact_template"]

_REFERENCE = pattern(r"\$\{([^{}]{0,1024})\}")
_NAME = pattern(r"([A-Za-z_][A-Za-z0-9_]{0,255})(?::-(.{0,1024}))?")
_FILE_BYTES = 64 * 1024  # of a file that is one value
_SHORTEST = 6  # characters: a shorter text would be hidden in the middle of innocent words
_MOST_HIDDEN = 1000
_SPACE = "\x1f"  # stands for a reference while secrets are looked for; they end at white space
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


class Filled(msgspec.Struct, frozen=True):
    """One text of a configuration with its references looked up."""

    value: str
    shown: str
    """References to a variable, a file or an input as they are written: what questions, errors and logs show. Variables
    that every program gets, such as `HOME`, are not secrets and are shown."""
    known: str
    """`value` with the inputs that a user is asked for as they are written: what is known before anything is asked."""
    has_file: bool = False
    """A part of it is the content of a file."""
    has_question: bool = False
    """A part of it is an input that a user is asked for."""

    @property
    def is_looked_up(self) -> bool:
        return self.shown != self.known


def plain_text(text: str) -> Filled:
    """A text without references."""
    return Filled(text, text, text)


class Lookup(msgspec.Struct):
    """One pass over an entry: whether the user may be asked for inputs, and what was found that may be a secret."""

    asks: bool = True
    found: dict[str, str] = {}
    """Looked-up texts, each with its reference as it is written."""


class _Found(msgspec.Struct, frozen=True):
    """What one reference leads to."""

    value: str
    is_secret: bool = False
    is_public: bool = False
    is_file: bool = False
    is_question: bool = False


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
        allowed_folders: Iterable[Path] = (),
    ) -> None:
        self._folder, self._workspace, self._confined = folder, workspace, confined
        self._allowed = (workspace or folder, *allowed_folders)
        self._declared, self._inputs = declared, inputs
        self._environ = environ
        self._given: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"Values({str(self._folder)!r})"  # what users gave is not for logs

    def fill(self, text: str, where: str, lookup: Lookup) -> Filled:
        """`text` with every reference replaced; what may be a secret is added to what `lookup` found."""
        value, shown, known, end = "", "", "", 0
        has_file = has_question = False
        for match in _REFERENCE.finditer(text):
            literal, end = text[end : match.start()], match.end()
            found = self._look_up(match[1], where, lookup.asks)
            if found.is_secret and len(found.value) >= _SHORTEST and len(lookup.found) < _MOST_HIDDEN:
                lookup.found[found.value] = match[0]
            value += literal + (match[0] if found.is_question and not lookup.asks else found.value)
            shown += literal + (found.value if found.is_public else match[0])
            known += literal + (match[0] if found.is_question else found.value)
            has_file = has_file or found.is_file
            has_question = has_question or found.is_question
        rest = text[end:]
        return Filled(value + rest, shown + rest, known + rest, has_file, has_question)

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
        """One whose content is a value: of a confined configuration only below its folder or one that is allowed,
        wherever links lead."""
        path = self.path(text)
        if not self._confined:
            return path
        try:
            folders, real = [each.resolve() for each in self._allowed], path.resolve()
        except (OSError, RuntimeError):
            raise ConfigError(f"{where}: {display(str(path), 300)} cannot be found") from None
        if not any(real.is_relative_to(each) for each in folders):
            told = f"{where}: {display(str(real), 300)} is outside of {display(str(folders[0]), 300)}"
            way = "move the file there, or allow its folder with --allow-folder (allowed_folders= of read_config)"
            raise ConfigError(f"{told}: a configuration reads files below its own folder only; {way}")
        if real.exists() and not real.is_file():  # a pipe would be waited for
            raise ConfigError(f"{where}: {display(str(real), 300)} is not a regular file")
        return real

    def folder_of(self, cwd: str | None) -> str | None:
        """Where a server is started: as it says, else in the workspace, else where we are."""
        if cwd is not None:
            return str(self.path(cwd))
        return str(self._workspace) if self._workspace is not None else None

    def _look_up(self, reference: str, where: str, asks: bool) -> _Found:
        kind, colon, name = reference.partition(":")
        if colon and kind == "env":
            return self._variable(name, None, where)
        if colon and kind == "file":
            content = read_text(self.file(name, where), _FILE_BYTES, where).rstrip("\r\n")
            return _Found(content, is_secret=True, is_file=True)
        if colon and kind == "input":
            return self._input(name, where, asks)
        known = self._predefined(reference, where)
        if known is not None:
            return _Found(known, is_public=True)
        match = _NAME.fullmatch(reference)
        if match is None or match[1] in ("command", "config", "extension"):
            told = "${env:NAME}, ${file:path}, ${input:id}, ${NAME:-otherwise}, ${workspaceFolder} and ${userHome}"
            raise ConfigError(f"{where}: ${{{display(reference, 60)}}} is not known here; {told} are")
        return self._variable(match[1], match[2], where)

    def _variable(self, name: str, otherwise: str | None, where: str) -> _Found:
        environ = os.environ if self._environ is None else self._environ
        found = environ.get(name, otherwise)
        if found is None:
            raise ConfigError(f"{where}: the environment variable {display(name, 60)} is not set")
        is_public = name in MINIMAL_ENVIRONMENT
        return _Found(found, is_secret=name in environ and not is_public, is_public=name in environ and is_public)

    def _predefined(self, name: str, where: str) -> str | None:
        if name in ("workspaceFolder", "workspaceFolderBasename"):
            if self._workspace is None:
                raise ConfigError(f"{where}: ${{{name}}}: say which with workspace=")
            return str(self._workspace) if name == "workspaceFolder" else self._workspace.name
        if name in ("pathSeparator", "/"):
            return os.sep
        return str(Path.home()) if name == "userHome" else None

    def _input(self, id: str, where: str, asks: bool) -> _Found:
        declared = self._declared.get(id)
        if declared is None:
            raise ConfigError(f"{where}: ${{input:{display(id, 60)}}} is not among the inputs of the file")
        is_question = callable(self._inputs)
        if is_question and not asks:
            return _Found("", is_question=True)
        if id not in self._given:
            self._given[id] = self._asked(declared, where)
        return _Found(self._given[id], is_secret=True, is_question=is_question)

    def _asked(self, declared: Input, where: str) -> str:
        id, shown = declared.id, display(declared.id, 60)
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


def redact_template(text: str) -> str:
    """A text of a configuration without what looks like a secret, with its references as they are written."""
    if _SPACE in text:
        return str(redact_secrets(text))
    found = _REFERENCE.findall(text)
    masked = str(redact_secrets(_REFERENCE.sub(_SPACE, text)))
    if masked.count(_SPACE) != len(found):  # one of them stands within what was taken for a secret
        return str(redact_secrets(text))
    references = iter(found)
    return "".join(f"${{{next(references)}}}" if each == _SPACE else each for each in masked)
