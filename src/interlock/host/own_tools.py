"""A tool as a model calls it: by any name that it was told, and with an answer whatever happens.

The three tools of the host's own search the catalogue and call what was found in it; they decide nothing, and what they
call goes the same way as everything else. A failure is an answer too, so that the model can do something about it
(server/tools#error-handling): of the tool, of the server, or because somebody said no.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

import msgspec

from ..client.results import CallResult
from ..wire.display import display
from ..wire.errors import InterlockError, LocalError
from ..wire.types.content import TextContent
from .admission import CALL, DESCRIBE, OWN, SEARCH, Admission
from .catalogue import Catalogue, for_model

__all__ = ["Call", "OwnTools"]

Call = Callable[[str, dict[str, Any]], Awaitable[CallResult]]
"""Calls a tool of a server by the name that models see."""
_LONGEST_FAILURE = 4_000  # characters of it that a model is told


class OwnTools:
    def __init__(self, catalogue: Catalogue, admission: Admission) -> None:
        self._catalogue, self._admission = catalogue, admission

    async def use(self, name: str, arguments: Mapping[str, Any] | None, call: Call) -> CallResult:
        """Call it; never raises what a model can be told."""
        try:
            given = _object(arguments)
            if name == CALL:
                name, given = _text(given, "name"), _object(given.get("arguments"))
                if name in OWN:
                    raise LocalError(f"{CALL}: {name} is no tool of a server: call it by itself")
            if name == SEARCH:
                return self._search(given)
            return self._describe(given) if name == DESCRIBE else await call(name, given)
        except InterlockError as error:
            return _failure(error)

    def _search(self, arguments: dict[str, Any]) -> CallResult:
        limit = arguments.get("limit", 10)
        if not isinstance(limit, int) or isinstance(limit, bool):
            raise LocalError(f"{SEARCH}: limit must be an integer")
        return _answer({"tools": self._admission.found(_text(arguments, "query"), limit)})

    def _describe(self, arguments: dict[str, Any]) -> CallResult:
        name = _text(arguments, "name")
        entry = self._catalogue.tools.get(name)
        if entry is None:
            raise LocalError(f"there is no tool {display(name, 100)!r}: find one with {SEARCH}")
        return _answer(for_model(entry))


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
