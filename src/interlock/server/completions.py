"""Suggestions for arguments of prompts and variables of resource templates (server/utilities/completion)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from msgspec import UNSET

from ..wire.errors import InvalidParams, LocalError
from ..wire.exchange import Exchange, Result
from ..wire.types.completion import CompleteParams
from .calling import Caller, caller_of
from .context import Context
from .schema import Signature, read_signature
from .threads import Threads

__all__ = ["Completions", "MOST_VALUES"]

F = TypeVar("F", bound=Callable[..., Any])
MOST_VALUES = 100  # of one answer (schema.ts#CompleteResult); what is beyond is counted, not sent


class Completions:
    """Who completes what, by prompt or template and argument."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._found: dict[tuple[str | None, str | None, str], tuple[Signature, Caller]] = {}

    @property
    def offered(self) -> bool:
        return bool(self._found)

    def add(self, prompt: str | None, template: str | None, argument: str, function: F) -> F:
        place = (prompt, template, argument)
        if place in self._found:
            raise LocalError(f"there is a completion for {argument!r} of {prompt or template!r} already")
        signature = read_signature(function, Context)
        if not 1 <= len(signature.names) <= 2:
            raise LocalError("a completion takes the value so far and, if it likes, the known arguments")
        self._found[place] = (signature, caller_of(function, signature, self._threads))
        return function

    async def complete(
        self, prompt: str | None, template: str | None, known: tuple[str, ...], exchange: Exchange
    ) -> Result:
        """The suggestions for one argument; none where nobody completes it."""
        params: CompleteParams = exchange.params
        if params.argument.name not in known:
            raise InvalidParams(f"Unknown argument: {params.argument.name[:200]!r}")
        place = (prompt, template, params.argument.name)
        if place not in self._found:
            return _completion([])
        signature, call = self._found[place]
        given = (params.argument.value, _resolved(params))
        return _completion(await call(dict(zip(signature.names, given, strict=False)), exchange))


def _resolved(params: CompleteParams) -> dict[str, str]:
    """The arguments that the user has chosen already; revisions before 2025-06-18 cannot tell."""
    return params.context.arguments or {} if params.context is not UNSET else {}


def _completion(values: Any) -> Result:
    found = cast("list[Any]", values)
    if not isinstance(values, list | tuple) or not all(isinstance(value, str) for value in found):
        raise TypeError("a completion returns a list of strings")
    sent = list(found[:MOST_VALUES])
    return {"completion": {"values": sent, "total": len(found), "hasMore": len(found) > MOST_VALUES}}
