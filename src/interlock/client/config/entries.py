"""Servers from the JSON that people already have: Claude Desktop, Cursor (`mcpServers`) and VS Code (`servers`).

    servers = read_config("claude_desktop_config.json")
    async with Client(servers["notes"]) as client: ...

An entry is data until a client is made of it: nothing is started, asked for or looked up before. A command is a list
of words and never goes through a shell. What is not known here is kept in `unknown` and reported, never acted on.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Literal, cast

import msgspec

from ...transport.stdio.child_process import Command
from ...wire.escaping import display
from .parser import ConfigError, check_depth, members_in, read_text, variables_in
from .variables import Filled, Input, Inputs, Lookup, Values, looks_secret, plain_text, redact_template

__all__ = ["SECTIONS", "Config", "ConfigError", "NoSection", "ResolvedEntry", "ServerEntry", "entry_in", "read_config"]

log = logging.getLogger("interlock.client")
SECTIONS = ("mcpServers", "servers")
"""Where a file names its servers: in one of these."""
_FILE_BYTES = 1024 * 1024
_MOST_SERVERS = 1000
_STDIO = {"command", "args", "env", "envFile", "cwd"}
_REMOTE = {"url", "headers"}
_KNOWN = _STDIO | _REMOTE | {"type", "disabled"}
_KINDS = {
    "stdio": "stdio",
    "http": "http",
    "sse": "sse",
    "streamable-http": "http",
    "streamablehttp": "http",
    "streamable_http": "http",
}
EnvPolicy = Literal["minimal", "inherit", "explicit"]


class NoSection(ConfigError):
    """It is no list of servers at all: settings of something else, perhaps, without any."""


class ResolvedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry with its references looked up: everything that is started or contacted comes from one of these."""

    words: tuple[Filled, ...] = ()
    """Of the command, with its arguments; empty for a URL."""
    env: dict[str, Filled] = {}
    env_policy: EnvPolicy = "minimal"
    cwd: Filled | None = None
    url: Filled | None = None
    headers: dict[str, Filled] = {}
    sources: dict[str, str] = {}
    """Where values come from, by what they are the value of: the references in them as they are written, or the
    configuration itself."""
    references: dict[str, str] = {}
    """Looked-up texts that may be secrets, each with its reference as it is written."""

    def command(self) -> Command:
        env = {name: text.value for name, text in self.env.items()}
        hidden = {*self.references}
        hidden |= {value for name, value in env.items() if len(value) >= 6 and looks_secret(name, value)}
        return Command(
            args=tuple(word.value for word in self.words),
            shown=tuple(word.shown for word in self.words) if any(word.is_looked_up for word in self.words) else (),
            env=env or None,
            env_policy=self.env_policy,
            cwd=None if self.cwd is None else self.cwd.value,
            hide=tuple(sorted(hidden, key=len, reverse=True)),
        )

    @property
    def shown_url(self) -> str:
        """The URL with its references as they are written, and without what looks like a secret beside them."""
        return "" if self.url is None else redact_template(self.url.shown)

    def address(self) -> tuple[str, dict[str, str]]:
        assert self.url is not None
        return self.url.value, {name: text.value for name, text in self.headers.items()}


class ServerEntry:
    """One server as its file describes it. References (`${...}`) are looked up whenever a connection is made."""

    def __init__(
        self, name: str, members: Mapping[str, Any], file: str, values: Values, env_policy: EnvPolicy = "minimal"
    ) -> None:
        self.name, self.file = name, file
        self._members: dict[str, Any] = dict(members)
        self._values = values
        self._env_policy: EnvPolicy = env_policy
        self.unknown: dict[str, Any] = {key: value for key, value in members.items() if key not in _KNOWN}
        """Members this version does not act on, as they came."""
        self.disabled: bool = members.get("disabled") is True
        self.kind: Literal["stdio", "http", "sse"] = self._kind_of()
        self._check()
        if self.unknown:
            names = ", ".join(display(key, 40) for key in [*self.unknown][:20])
            log.info("= %s: not acted on: %s", self.at, names)

    def __repr__(self) -> str:
        """Names and kinds only: the values of an entry are often secrets."""
        return f"<{self.at}: {self.kind}, {', '.join(display(key, 40) for key in self._members)}>"

    @property
    def key(self) -> tuple[str, ...]:
        """What is remembered about this server is remembered under this; it holds no secret that was looked up."""
        return (self.file, self.name, json.dumps(self._members, sort_keys=True, default=str))

    # --- what it leads to -------------------------------------------------------------------------

    def command(self) -> Command:
        """How to start it, with everything looked up now."""
        return self.resolve().command()

    def address(self) -> tuple[str, dict[str, str]]:
        """Its URL and headers, with everything looked up now."""
        return self.resolve().address()

    def resolve(self, *, asks: bool = True) -> ResolvedEntry:
        """All of it, looked up now. Without `asks` the user is not asked for inputs, which stay as they are written."""
        self._check_enabled()
        lookup = Lookup(asks)
        if self.kind != "stdio":
            url, headers = self._text("url", lookup), self._texts("headers", lookup)
            return ResolvedEntry(url=url, headers=headers, sources=self.sources(), references=lookup.found)
        of_file = self._variables_of_file(lookup)
        args = (self._fill(each, f"args[{number}]", lookup) for number, each in enumerate(self._list("args")))
        return ResolvedEntry(
            words=(self._text("command", lookup), *args),
            env={**{name: plain_text(value) for name, value in of_file.items()}, **self._texts("env", lookup)},
            env_policy=self._env_policy,
            cwd=self._folder(lookup),
            sources=self._sources(of_file),
            references=lookup.found,
        )

    def sources(self) -> dict[str, str]:
        """Where values come from, by what they are the value of: the references in them as they are written, or the
        configuration itself. Nothing is looked up but the names in an `envFile`."""
        return self._sources(self._variables_of_file(Lookup()))

    def _sources(self, of_file: Mapping[str, str]) -> dict[str, str]:
        texts = {f"header {name.lower()}": text for name, text in self._mapping("headers").items()}
        texts |= {f"variable {name}": text for name, text in self._mapping("env").items()}
        found = {what: self._values.references(text) or "the configuration" for what, text in texts.items()}
        for name in of_file:
            found.setdefault(f"variable {name}", f"envFile {self._members['envFile']}")
        plain = {f"word [{number}]": text for number, text in enumerate(self._list("args"), 1)}
        plain |= {name: self._members[name] for name in ("command", "cwd", "url", "envFile") if name in self._members}
        return found | {what: used for what, text in plain.items() if (used := self._values.references(text))}

    def _folder(self, lookup: Lookup) -> Filled | None:
        if "cwd" not in self._members:
            folder = self._values.folder_of(None)
            return None if folder is None else plain_text(folder)
        text = self._text("cwd", lookup)
        value, known = (str(self._values.path(each)) for each in (text.value, text.known))
        shown = text.shown if text.is_looked_up or text.has_question else known
        return msgspec.structs.replace(text, value=value, shown=shown, known=known)

    def _check_enabled(self) -> None:
        if self.disabled:
            raise ConfigError(f"{self.at}: the file says that this server is disabled")

    def _variables_of_file(self, lookup: Lookup) -> dict[str, str]:
        if "envFile" not in self._members:
            return {}
        where = f"{self.at}, envFile"
        name = self._text("envFile", lookup)
        if name.has_question and not lookup.asks:
            raise ConfigError(
                f"{where}: holds an ${{input:...}}, which is asked for only after you approve the server, and its "
                "variables must be known before: write the path, or use ${env:NAME}"
            )
        path = self._values.file(name.value, where)
        return variables_in(read_text(path, _FILE_BYTES, where), where)

    # --- its members ------------------------------------------------------------------------------

    def _kind_of(self) -> Literal["stdio", "http", "sse"]:
        given = self._members.get("type")
        if given is None:
            found = "http" if "url" in self._members else "stdio"
        else:
            found = _KINDS.get(given.lower()) if isinstance(given, str) else None
        if found is None:
            raise ConfigError(f"{self._in('type')}: {display(str(given), 40)!r} is none of stdio, http and sse")
        return cast(Any, found)

    def _check(self) -> None:
        """The shape of every member, before anything is looked up."""
        needed, foreign = ("command", _REMOTE) if self.kind == "stdio" else ("url", _STDIO)
        for member in foreign & self._members.keys():
            raise ConfigError(f"{self._in(member)}: does not belong to a server of type {self.kind}")
        if not isinstance(self._members.get(needed), str) or not self._members[needed]:
            raise ConfigError(f"{self._in(needed)}: must be a text: a server of type {self.kind} needs it")
        for member in ("envFile", "cwd"):
            if not isinstance(self._members.get(member, ""), str):
                raise ConfigError(f"{self._in(member)}: must be a text")
        self._list("args")
        self._mapping("env")
        self._mapping("headers")

    def _list(self, member: str) -> list[str]:
        found = self._members.get(member, [])
        if not isinstance(found, list) or not all(isinstance(each, str) for each in cast("list[Any]", found)):
            raise ConfigError(f"{self._in(member)}: must be a list of texts")
        return cast("list[str]", found)

    def _mapping(self, member: str) -> dict[str, str]:
        """Texts by name. A number is its text; null means: not there."""
        found = self._members.get(member, {})
        if not isinstance(found, dict):
            raise ConfigError(f"{self._in(member)}: must be an object of texts")
        texts: dict[str, str] = {}
        for name, value in cast("dict[str, Any]", found).items():
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, str | int | float):
                raise ConfigError(f"{self._in(member)}.{display(name, 60)}: must be a text")
            texts[name] = str(value)
        return texts

    def _texts(self, member: str, lookup: Lookup) -> dict[str, Filled]:
        return {
            name: self._fill(value, f"{member}.{display(name, 60)}", lookup)
            for name, value in self._mapping(member).items()
        }

    def _text(self, member: str, lookup: Lookup) -> Filled:
        return self._fill(self._members[member], member, lookup)

    def _fill(self, text: str, member: str, lookup: Lookup) -> Filled:
        filled = self._values.fill(text, self._in(member), lookup)
        if "\0" in filled.value:
            raise ConfigError(f"{self._in(member)}: holds a NUL character")
        return filled

    @property
    def at(self) -> str:
        """Where it stands, for messages."""
        return f"{display(self.file, 300)}: server {display(self.name, 60)!r}"

    def _in(self, member: str) -> str:
        return f"{self.at}, {member}"


Make = Callable[[str, Any], ServerEntry]


class Config(Mapping[str, ServerEntry]):
    """The servers of one file, by name. A broken entry fails when it is asked for, and leaves the others alone."""

    def __init__(self, file: str, members: Mapping[str, Any], make: Make, unknown: dict[str, Any]) -> None:
        self.file, self.unknown = file, unknown
        self._members, self._make = members, make
        self._made: dict[str, ServerEntry] = {}

    def __getitem__(self, name: str) -> ServerEntry:
        if name not in self._members:
            names = ", ".join(display(each, 60) for each in [*self._members][:20]) or "none"
            raise ConfigError(f"{display(self.file, 300)}: no server {display(str(name), 60)!r}; there are: {names}")
        if name not in self._made:
            self._made[name] = self._make(name, self._members[name])
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in self._members

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __repr__(self) -> str:
        return f"Config({self.file!r}, {[*self._members]!r})"

    def only(self) -> ServerEntry:
        """The server of a file that has exactly one."""
        if len(self) != 1:
            names = ", ".join(display(each, 60) for each in [*self][:20]) or "none"
            raise ConfigError(
                f"{display(self.file, 300)}: which server? Say read_config(...)[name]; there are: {names}"
            )
        return self[next(iter(self))]


def read_config(
    source: str | PathLike[str] | Mapping[str, Any],
    *,
    inputs: Inputs | None = None,
    workspace: str | PathLike[str] | None = None,
    env_policy: EnvPolicy = "minimal",
    environ: Mapping[str, str] | None = None,
    confined: bool = False,
    allowed_folders: Iterable[str | PathLike[str]] = (),
) -> Config:
    """The servers of a file, or of its content as a mapping.

    `inputs` answers `${input:...}`: a mapping by id, or a function that asks the user. `workspace` is what
    `${workspaceFolder}` means; a file in `.vscode` or `.cursor` belongs to the folder above. `environ` replaces the
    process's own variables for `${env:...}`. `env_policy` says what servers get beside their `env` (see `Command`).
    With `confined`, `${file:...}` and `envFile` lead to files below the workspace (or the folder of the file, where
    there is none) and below `allowed_folders`, nowhere else.
    """
    if isinstance(source, Mapping):
        file, path, members = "configuration", None, dict(source)
        check_depth(members, file)
    else:
        path = Path(source).expanduser()
        file = str(path)
        members = members_in(read_text(path, _FILE_BYTES, "configuration"), file)
    servers, declared, unknown = _sections(members, file)
    folder = path.absolute().parent if path is not None else Path.cwd()
    space = Path(workspace).absolute() if workspace is not None else _workspace_of(folder, path)
    allowed = [Path(each).expanduser().absolute() for each in allowed_folders]
    values = Values(folder, space, declared, inputs, environ, confined, allowed)
    return Config(file, servers, lambda name, entry: _entry(name, entry, file, values, env_policy), unknown)


def _workspace_of(folder: Path, path: Path | None) -> Path | None:
    return folder.parent if path is not None and folder.name in (".vscode", ".cursor") else None


def _entry(name: str, members: Any, file: str, values: Values, env_policy: EnvPolicy) -> ServerEntry:
    if not isinstance(members, dict):
        raise ConfigError(f"{display(file, 300)}: server {display(name, 60)!r}: must be an object")
    return ServerEntry(name, cast("dict[str, Any]", members), file, values, env_policy)


def _sections(members: dict[str, Any], file: str) -> tuple[dict[str, Any], dict[str, Input], dict[str, Any]]:
    """The servers, the inputs, and the rest. In VS Code's settings both stand below `mcp`."""
    outer: dict[str, Any] = {}
    if isinstance(members.get("mcp"), dict) and not members.keys() & {*SECTIONS}:
        outer = {name: value for name, value in members.items() if name != "mcp"}
        members = members["mcp"]
    found = [name for name in SECTIONS if name in members]
    if not found:
        raise NoSection(f"{display(file, 300)}: has neither {' nor '.join(SECTIONS)}")
    if len(found) > 1:
        raise ConfigError(f"{display(file, 300)}: has both {' and '.join(found)}")
    servers = members[found[0]]
    if not isinstance(servers, dict) or len(cast("dict[str, Any]", servers)) > _MOST_SERVERS:
        raise ConfigError(f"{display(file, 300)}, {found[0]}: must be an object of at most {_MOST_SERVERS} servers")
    rest = {name: value for name, value in members.items() if name not in (found[0], "inputs")}
    return cast("dict[str, Any]", servers), _inputs_of(members.get("inputs", []), file), {**outer, **rest}


def _inputs_of(given: Any, file: str) -> dict[str, Input]:
    """What is asked with a command of the editor has no meaning here and is not declared."""
    try:
        found = msgspec.convert(given, list[dict[str, Any]])
        asked = [each for each in found if each.get("type") != "command"]
        return {each.id: each for each in msgspec.convert([_plain(each) for each in asked], list[Input])}
    except msgspec.ValidationError as error:
        raise ConfigError(f"{display(file, 300)}, inputs: {error}") from None


def _plain(declared: dict[str, Any]) -> dict[str, Any]:
    """Options may be texts, or objects with a label and a value."""
    options = declared.get("options", [])
    if isinstance(options, list):
        values = [
            cast("dict[str, Any]", each).get("value") if isinstance(each, dict) else each
            for each in cast("list[Any]", options)
        ]
        declared = {**declared, "options": values}
    return declared


def entry_in(target: Mapping[str, Any] | PathLike[str]) -> ServerEntry:
    """One server: an entry by itself, or a file (or its content) that has exactly one."""
    if isinstance(target, Config):
        return target.only()
    if not isinstance(target, Mapping) or target.keys() & {*SECTIONS, "mcp"}:
        return read_config(target).only()
    return read_config({"mcpServers": {"server": dict(target)}})["server"]
