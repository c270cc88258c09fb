"""Suggestions for arguments of prompts and variables of resource templates (server/utilities/completion)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from msgspec import UNSET

from ..wire.errors import InvalidParams, LocalError, MethodNotFound
from ..wire.exchange import Exchange, Result
from ..wire.types.completion import CompleteParams, PromptRef
from .calling import Caller, caller_of
from .context import Context
from .schema import Signature, read_signature
from .threads import Threads

__all__ = ["Completions", "MOST_VALUES", "NamesOf"]

F = TypeVar("F", bound=Callable[..., Any])
MOST_VALUES = 100  # of one answer (schema.ts#CompleteResult); what is beyond is counted, not sent
NamesOf = Callable[[str | None, str | None], tuple[str, ...] | None]
"""The arguments of a prompt, or the variables of a template; None if there is none of that name."""


class Completions:
    """Who completes what, by prompt or template and argument."""

    def __init__(self, threads: Threads, names_of: NamesOf) -> None:
        self._threads, self._names_of = threads, names_of
        self._found: dict[tuple[str | None, str | None, str], tuple[Signature, Caller]] = {}

    @property
    def offered(self) -> bool:
        return bool(self._found)

    @property
    def takes_context(self) -> bool:
        """May any of them log?"""
        return any(signature.context is not None for signature, _ in self._found.values())

    def register(self, prompt: str | None, template: str | None, argument: str) -> Callable[[F], F]:
        """The decorator for one argument of something that is there already."""
        if (prompt is None) == (template is None):
            raise LocalError("a completion is for a prompt or for a template: name one of them")
        if argument not in (self._names_of(prompt, template) or ()):
            raise LocalError(f"there is no argument {argument!r} of {prompt or template!r}: register that first")
        return lambda function: self._add((prompt, template, argument), function)

    def _add(self, place: tuple[str | None, str | None, str], function: F) -> F:
        if place in self._found:
            raise LocalError(f"there is a completion for {place[2]!r} of {place[0] or place[1]!r} already")
        signature = read_signature(function, Context)
        if not 1 <= len(signature.names) <= 2:
            raise LocalError("a completion takes the value so far and, if it likes, the known arguments")
        self._found[place] = (signature, caller_of(function, signature, self._threads))
        return function

    async def complete(self, exchange: Exchange) -> Result:
        """The answer to `completion/complete`: no suggestions where nobody completes a known argument."""
        if not self.offered:
            raise MethodNotFound("This server does not offer completions")
        params: CompleteParams = exchange.params
        place = self._place(params)
        if place not in self._found:
            return _completion([])
        signature, call = self._found[place]
        given = (params.argument.value, _resolved(params))
        return _completion(await call(dict(zip(signature.names, given, strict=False)), exchange))

    def _place(self, params: CompleteParams) -> tuple[str | None, str | None, str]:
        """What is asked about, if this server has it."""
        ref, argument = params.ref, params.argument.name
        prompt, template = (ref.name, None) if isinstance(ref, PromptRef) else (None, ref.uri)
        names = self._names_of(prompt, template)
        if names is None:
            raise InvalidParams("Unknown resource template" if prompt is None else f"Unknown prompt: {prompt[:200]!r}")
        if argument not in names:
            raise InvalidParams(f"Unknown argument: {argument[:200]!r}")
        return prompt, template, argument


def _resolved(params: CompleteParams) -> dict[str, str]:
    """The arguments that the user has chosen already; revisions before 2025-06-18 cannot tell."""
    return params.context.arguments or {} if params.context is not UNSET else {}


def _completion(values: Any) -> Result:
    found = cast("list[Any]", values)
    if not isinstance(values, list | tuple) or not all(isinstance(value, str) for value in found):
        raise TypeError("a completion returns a list of strings")
    sent = list(found[:MOST_VALUES])
    return {"completion": {"values": sent, "total": len(found), "hasMore": len(found) > MOST_VALUES}}
