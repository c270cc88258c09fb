"""A tool as a model calls it: by any name that it was told, and with an answer whatever happens.

The tools of the host's own search the catalogue, call what was found in it, and read on in results that were cut; they
decide nothing, and what they call goes the same way as everything else. A failure is an answer too, so that the model
can do something about it (server/tools#error-handling): of the tool, of the server, or because somebody said no.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

import msgspec
from msgspec import UNSET

from ...client.results import CallResult
from ...wire.errors import InterlockError, LocalError
from ...wire.escaping import display
from ...wire.types.content import TextContent
from ..gate.result_cap import Cap
from .catalogue import Catalogue, for_model
from .selection import CALL, DESCRIBE, OWN, READ, SEARCH, Selection

__all__ = ["Call", "OwnTools"]

Call = Callable[[str, dict[str, Any]], Awaitable[CallResult]]
"""Calls a tool of a server by the name that models see."""
_LONGEST_FAILURE = 4_000  # characters of it that a model is told


class OwnTools:
    def __init__(self, catalogue: Catalogue, selection: Selection, cap: Cap) -> None:
        self._catalogue, self._selection, self._cap = catalogue, selection, cap

    async def use(self, name: str, arguments: Mapping[str, Any] | None, call: Call) -> CallResult:
        """Call it; never raises what a model can be told."""
        try:
            given = _object(arguments)
            if name == CALL:
                name, given = _text(given, "name"), _object(given.get("arguments"))
                if name in OWN:
                    raise LocalError(f"{CALL}: {name} is no tool of a server: call it by itself")
            own = {SEARCH: self._search, DESCRIBE: self._describe, READ: self._read}.get(name)
            return own(given) if own is not None else await call(name, given)
        except InterlockError as error:
            return _failure(error)

    def _search(self, arguments: dict[str, Any]) -> CallResult:
        limit = arguments.get("limit", 10)
        if not isinstance(limit, int) or isinstance(limit, bool):
            raise LocalError(f"{SEARCH}: limit must be an integer")
        return _answer({"tools": self._selection.found(_text(arguments, "query"), limit)})

    def _describe(self, arguments: dict[str, Any]) -> CallResult:
        name = _text(arguments, "name")
        entry = self._catalogue.tools.get(name)
        if entry is None:
            raise LocalError(f"there is no tool {display(name, 100)!r}: find one with {SEARCH}")
        return _answer(for_model(entry))

    def _read(self, arguments: dict[str, Any]) -> CallResult:
        """A part of it, with the address of the next; what is binary is not for reading."""
        found = self._cap.read(_text(arguments, "uri"))
        if found.text is UNSET:
            raise LocalError(f"{READ}: this is binary data, not text")
        return CallResult([TextContent(text=found.text)])


def _object(arguments: Any) -> dict[str, Any]:
    if arguments is None:
        return {}
    if not isinstance(arguments, Mapping):
        raise LocalError("the arguments of a tool are an object")
    return dict(cast("Mapping[str, Any]", arguments))


def _text(arguments: dict[str, Any], name: str) -> str:
    value = arguments.get(name)
    if not isinstance(value, str):
        raise LocalError(f"{name} must be given, and be a text")
    return value


def _answer(value: dict[str, Any]) -> CallResult:
    return CallResult([TextContent(text=msgspec.json.encode(value).decode())], value)


def _failure(error: InterlockError) -> CallResult:
    return CallResult([TextContent(text=display(str(error), _LONGEST_FAILURE))], is_error=True)
