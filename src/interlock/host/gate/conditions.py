"""What a rule may say about arguments: equal to something, like it, inside of a folder, at a host, a number.

A condition is read in two ways. A rule that allows wants to be sure, a rule that asks or denies is content with
"perhaps": where a value is of another kind than the condition speaks of (a list in the place of a path, a path that
takes detours), the rule that allows does not apply and the one that denies does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Literal, cast, get_args
from urllib.parse import unquote, urlsplit

import msgspec

from ...client.config.parser import ConfigError
from ...wire.escaping import display
from .action import canonical

__all__ = ["Condition", "conditions_of"]

Test = Literal["equals", "like", "within", "host", "at_most", "at_least", "present"]
_TESTS: tuple[Test, ...] = get_args(Test)
_MOST_VALUES = 10_000  # of one argument that `*` leads to; with more, nothing is sure
_ODD = object()  # stands where a path into the arguments ends before it should


class Condition(msgspec.Struct, frozen=True):
    """On the arguments that `path` leads to. `given` is one value or, for most tests, a list of alternatives."""

    path: tuple[str, ...]
    test: Test
    given: tuple[Any, ...]

    def surely(self, arguments: Any) -> bool:
        """Is there such an argument, and does every one of them pass?"""
        found = self._found(arguments)
        if self.test == "present":
            return bool(found) == self.given[0] and _ODD not in found
        return bool(found) and all(self._passes(value) is True for value in found)

    def perhaps(self, arguments: Any) -> bool:
        """May there be one that passes?"""
        found = self._found(arguments)
        if self.test == "present":
            return bool(found) == self.given[0] or _ODD in found
        return any(self._passes(value) is not False for value in found)

    def _found(self, arguments: Any) -> list[Any]:
        found = [arguments]
        for step in self.path:
            found = [below for value in found for below in _below(value, step)]
            if len(found) > _MOST_VALUES:
                return [_ODD]
        return found

    def _passes(self, value: Any) -> bool | None:
        """None: that cannot be said of such a value."""
        if value is _ODD:
            return None
        told = [_CHECKS[self.test](value, given) for given in self.given]
        return True if True in told else None if None in told else False


def _below(value: Any, step: str) -> Iterator[Any]:
    if value is _ODD:
        yield _ODD
    elif isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        if step == "*":
            yield from members.values()
        elif step in members:
            yield members[step]
    elif isinstance(value, list):
        items = cast("list[Any]", value)
        if step == "*":
            yield from items
        elif step.isdecimal() and step.isascii() and len(step) < 10:
            yield from items[int(step) : int(step) + 1]
        else:
            yield _ODD
    else:
        yield _ODD


# --- the tests ------------------------------------------------------------------------------------


def _equals(value: Any, given: Any) -> bool | None:
    if _is_number(value) and _is_number(given):
        return value == given
    return canonical(value) == canonical(given)


def _like(value: Any, given: str) -> bool | None:
    return fnmatchcase(value, given) if isinstance(value, str) else None


def _within(value: Any, given: str) -> bool | None:
    """Compared by the parts of the paths: nobody here can look at the disk of the server, links are its own affair."""
    parts = _path_parts(value) if isinstance(value, str) else None
    if parts is None:
        return None
    folder = _path_parts(given) or []
    return parts[: len(folder)] == folder


def _path_parts(text: str) -> list[str] | None:
    """Of an absolute path, or an address of a file. None: relative, with detours, or of a kind that may be read in
    more than one way."""
    if text[:5].lower() == "file:":
        address = _split(text)
        if address is None or address.netloc.lower() not in ("", "localhost") or address.query or address.fragment:
            return None
        text = unquote(address.path)
    text = text.replace("\\", "/")
    parts = [part for part in text.split("/") if part not in ("", ".")]
    absolute = (text.startswith("/") and not text.startswith("//")) or text[1:3] == ":/"
    # A launch shows references of a configuration as they are written: what they stand for may be a detour.
    return None if not absolute or ".." in parts or "${" in text or not text.isprintable() else parts


def _host(value: Any, given: str) -> bool | None:
    """Whole names: `example.com` is that host only, `*.example.com` those below it only."""
    name = _host_in(value) if isinstance(value, str) else None
    if name is None:
        return None
    wanted = given.lower()
    return name.endswith(wanted[1:]) if wanted.startswith("*.") else name == wanted


def _host_in(text: str) -> str | None:
    """Of an http address that everybody reads in the same way."""
    if not text.isascii() or not text.isprintable() or {"\\", " ", "@"} & set(text):
        return None
    address = _split(text)
    if address is None or address.scheme not in ("http", "https") or not address.hostname or "$" in address.netloc:
        return None
    return address.hostname.lower().removesuffix(".")


def _split(text: str) -> Any:
    try:
        return urlsplit(text)
    except ValueError:
        return None


def _at_most(value: Any, given: float) -> bool | None:
    return value <= given if _is_number(value) else None


def _at_least(value: Any, given: float) -> bool | None:
    return value >= given if _is_number(value) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_CHECKS: dict[str, Any] = {
    "equals": _equals,
    "like": _like,
    "within": _within,
    "host": _host,
    "at_most": _at_most,
    "at_least": _at_least,
}


# --- as a file says them --------------------------------------------------------------------------


def conditions_of(given: Mapping[str, Any], where: str) -> tuple[Condition, ...]:
    """`{"path": {"within": "/home/me"}, "/options/force": false}`: an argument by its name, or by a pointer (RFC 6901)
    in which `*` stands for every member. A plain value means `equals`."""
    return tuple(condition for name, told in given.items() for condition in _of_argument(name, told, where))


def _of_argument(name: str, told: Any, where: str) -> Iterator[Condition]:
    where = f"{where}, arguments.{display(name, 60)}"
    path = _steps(name)
    if not isinstance(told, dict):
        yield Condition(path, "equals", _alternatives("equals", told, where))
        return
    tests = cast("dict[str, Any]", told)
    if not tests:
        raise ConfigError(f"{where}: says nothing; there are: {', '.join(_TESTS)}")
    for test, given in tests.items():
        if test not in _TESTS:
            raise ConfigError(f"{where}: no such test {display(test, 40)!r}; there are: {', '.join(_TESTS)}")
        yield Condition(path, test, _alternatives(test, given, where))


def _steps(name: str) -> tuple[str, ...]:
    if not name.startswith("/"):
        return (name,)
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in name[1:].split("/"))


def _alternatives(test: Test, given: Any, where: str) -> tuple[Any, ...]:
    several: list[Any] = [given]
    if isinstance(given, list) and test not in _SINGLE:
        several = cast("list[Any]", given)
    for value in several:
        if not _FITS[test](value):
            raise ConfigError(f"{where}: {test} must be {_WANTED[test]}")
    if not several:
        raise ConfigError(f"{where}: {test} has no alternatives")
    return tuple(several)


def _is_folder(value: Any) -> bool:
    return isinstance(value, str) and _path_parts(value) is not None


def _is_host(value: Any) -> bool:
    name = value.removeprefix("*.") if isinstance(value, str) else ""
    return bool(name) and "*" not in name and _host_in(f"https://{name}/") == name.lower()


_SINGLE = ("at_most", "at_least", "present")
_FITS: dict[str, Any] = {
    "equals": lambda value: True,  # pyright: ignore
    "like": lambda value: isinstance(value, str),  # pyright: ignore
    "within": _is_folder,
    "host": _is_host,
    "at_most": _is_number,
    "at_least": _is_number,
    "present": lambda value: isinstance(value, bool),  # pyright: ignore
}
_WANTED = {
    "equals": "a value, or a list of them",
    "like": "a pattern with * and ?, or a list of them",
    "within": "an absolute path without .., or a list of them",
    "host": "the name of a host, *.name for those below it, or a list of them",
    "at_most": "a number",
    "at_least": "a number",
    "present": "true or false",
}
