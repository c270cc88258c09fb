"""A policy as a file, in TOML or JSON; `docs/host_policy.md` shows one.

    [defaults]
    resource = "allow"

    [[rules]]
    id = "read-work"
    decision = "allow"
    kind = "tool"
    server = "files"
    name = ["read_*", "list_*"]
    arguments = { path = { within = "/srv/me/notes" } }

A file that cannot be understood in all its parts is no policy: a rule that was meant to deny must not be passed over
because of a slip of the pen.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, cast

import msgspec

from ...client.config.parser import ConfigError, check_depth, members_in, read_text
from ...wire.escaping import display
from .conditions import conditions_of
from .policy import Policy, Rule

__all__ = ["policy_in", "read_policy"]

_FILE_BYTES = 1024 * 1024
_MOST_RULES = 10_000
_LISTS = ("kind", "server", "name", "sources", "principal", "scopes")  # may be one text as well


def read_policy(path: str | PathLike[str]) -> Policy:
    """From a file whose name ends in .toml or .json."""
    file = Path(path).expanduser()
    where = display(str(file), 300)
    text = read_text(file, _FILE_BYTES, "policy")
    if file.suffix == ".toml":
        return policy_in(_toml(text, where), where)
    if file.suffix == ".json":
        return policy_in(members_in(text, where), where)
    raise ConfigError(f"{where}: the name of a policy must end in .toml or .json")


def policy_in(members: Mapping[str, Any], where: str = "policy") -> Policy:
    """From what such a file holds."""
    check_depth(dict(members), where)
    _check_names(members, ("defaults", "rules"), where)
    given = members.get("rules", [])
    if not isinstance(given, list) or len(cast("list[Any]", given)) > _MOST_RULES:
        raise ConfigError(f"{where}, rules: must be a list of at most {_MOST_RULES} tables")
    rules = [_rule(each, f"{where}, rules[{number}]") for number, each in enumerate(cast("list[Any]", given))]
    defaults = _converted(members.get("defaults", {}), dict[str, str], f"{where}, defaults")
    try:
        return Policy(rules, defaults)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


def _toml(text: str, where: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{where}: no TOML: {display(str(error), 200)}") from None
    except RecursionError:
        raise ConfigError(f"{where}: nested too deep") from None


def _rule(given: Any, where: str) -> Rule:
    if not isinstance(given, dict):
        raise ConfigError(f"{where}: must be a table")
    members = dict(cast("dict[str, Any]", given))
    _check_names(members, Rule.__struct_fields__, where)
    if "decision" not in members:
        raise ConfigError(f"{where}: decision is missing: allow, ask or deny")
    arguments = _converted(members.pop("arguments", {}), dict[str, Any], f"{where}, arguments")
    for name in _LISTS:
        if isinstance(members.get(name), str):
            members[name] = [members[name]]
        if members.get(name) == []:
            raise ConfigError(f"{where}, {name}: an empty list fits nothing; leave it out, or name something")
    try:
        rule = msgspec.convert(members, Rule)
    except (msgspec.ValidationError, ConfigError) as error:
        raise ConfigError(f"{where}: {display(str(error), 300)}") from None
    return msgspec.structs.replace(rule, arguments=conditions_of(arguments, where))


def _check_names(members: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    unknown = [display(str(name), 40) for name in members if name not in known]
    if unknown:
        raise ConfigError(f"{where}: not known: {', '.join(unknown[:10])}; there are: {', '.join(known)}")


def _converted(value: Any, kind: Any, where: str) -> Any:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where}: {display(str(error), 300)}") from None
