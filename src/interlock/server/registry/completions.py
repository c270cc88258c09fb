"""Suggestions for arguments of prompts and variables of resource templates (server/utilities/completion)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, cast

import msgspec
from msgspec import UNSET

from ...wire.errors import InternalError, InvalidParams, LocalError, MethodNotFound
from ...wire.exchange import Exchange, Result
from ...wire.types.completion import CompleteParams, PromptRef
from ...wire.types.prompts import Prompt
from ..context import Context
from ..execution.invoke import Caller, caller_of
from ..execution.thread_pool import Threads
from ..failures import failure_text
from ..schema.signature import Signature, read_signature

__all__ = [
    "Completions",
    "LONGEST_TYPED",
    "MOST_VALUES",
    "NamesOf",
    "Suggestions",
    "ranked",
]


def ranked(typed: str, choices: Iterable[str]) -> list[str]:
    """The choices that begin with it, then those that have a word that does, that hold it, that hold its letters in
    their order; in each group as they were given. Capitals do not matter."""
    wanted = typed.casefold()
    groups: tuple[list[str], ...] = ([], [], [], [])
    for choice in choices:
        if (rank := _rank(wanted, choice.casefold())) is not None:
            groups[rank].append(choice)
    return [choice for group in groups for choice in group]


def _rank(wanted: str, choice: str) -> int | None:
    at = choice.find(wanted)
    if at == 0:
        return 0
    while at > 0:
        if not choice[at - 1].isalnum():
            return 1
        if (further := choice.find(wanted, at + 1)) < 0:
            return 2
        at = further
    return 3 if _holds(wanted, choice) else None


def _holds(wanted: str, choice: str) -> bool:
    """Are its letters there in this order? Each is looked for behind the one before."""
    at = -1
    for letter in wanted:
        at = choice.find(letter, at + 1)
        if at < 0:
            return False
    return True


F = TypeVar("F", bound=Callable[..., Any])
MOST_VALUES = 100  # of one answer (schema.ts#CompleteResult); what is beyond is counted, not sent
LONGEST_TYPED = 8 * 1024  # characters of a value to complete; a longer one is refused with -32602
NamesOf = Callable[[str | None, str | None], tuple[str, ...] | None]
"""The arguments of a prompt, or the variables of a template; None if there is none of that name."""
_Place = tuple[str | None, str | None, str]
_Found = dict[_Place, tuple[Signature, Caller]]


class Suggestions(msgspec.Struct, frozen=True):
    """What a completion may return instead of a list, when it knows of more than it fetched."""

    values: list[str]
    total: int | None = None
    """How many there are in all, if that is known."""
    has_more: bool | None = None
    """Are there more, if only that is known?"""


class Completions:
    """Who completes what, by prompt or template and argument."""

    def __init__(self, threads: Threads, names_of: NamesOf, elsewhere: Callable[[], bool] = lambda: False) -> None:
        self._threads, self._names_of, self._elsewhere = threads, names_of, elsewhere
        self._found: _Found = {}
        self._was_offered = False
        self.takes_context = False
        """May any of them log? True from the first one on."""

    @property
    def offered(self) -> bool:
        """True from the first one on, also when all are gone: a declared capability is kept (CAP-02)."""
        return self._was_offered or self._elsewhere()

    def register(self, prompt: str | None, template: str | None, argument: str) -> Callable[[F], F]:
        """The decorator for one argument of something that is there already."""
        if (prompt is None) == (template is None):
            raise LocalError("a completion is for a prompt or for a template: name one of them")
        if argument not in (self._names_of(prompt, template) or ()):
            raise LocalError(f"there is no argument {argument!r} of {prompt or template!r}: register that first")
        return lambda function: self._add((prompt, template, argument), function)

    def made(self, name: str, item: Any, given: Mapping[str, Any]) -> _Found:
        """What was said beside a prompt or a template: by argument, a function, or the values to choose from."""
        prompt, template = (name, None) if isinstance(item.noun, Prompt) else (None, name)
        made: _Found = {}
        for argument, source in given.items():
            if argument not in item.names:
                raise LocalError(f"complete={{{argument!r}: …}}: {name!r} has no such argument")
            function = source if callable(source) else _chooser(argument, source)
            made[prompt, template, argument] = self._caller(function)
        return made

    def keep(self, made: _Found) -> None:
        self._found |= made
        self._was_offered = self._was_offered or bool(made)
        self.takes_context = self.takes_context or any(each.context is not None for each, _ in made.values())

    def forget(self, *, prompt: str | None = None, template: str | None = None) -> None:
        """The prompt or template is gone, and its suggestions with it."""
        for place in [place for place in self._found if place[:2] == (prompt, template)]:
            del self._found[place]

    def _add(self, place: _Place, function: F) -> F:
        if place in self._found:
            raise LocalError(f"there is a completion for {place[2]!r} of {place[0] or place[1]!r} already")
        self.keep({place: self._caller(function)})
        return function

    def _caller(self, function: Callable[..., Any]) -> tuple[Signature, Caller]:
        signature = read_signature(function, Context)
        if not 1 <= len(signature.names) <= 2:
            raise LocalError("a completion takes the value so far and, if it likes, the known arguments")
        return signature, caller_of(function, signature, self._threads)

    async def complete(self, exchange: Exchange, *, hidden: bool = False) -> Result:
        """The answer to `completion/complete`: no suggestions where nobody completes a known argument.

        What is `hidden` from whoever asks is not there, in the same words.
        """
        if not self.offered:
            raise MethodNotFound("This server does not offer completions")
        params: CompleteParams = exchange.params
        place, names = self._place(params, hidden)
        found = self._found.get(place)
        if found is None:
            return _completion([])
        signature, call = found
        given = (params.argument.value, _resolved(params, names))
        try:
            return _completion(await call(dict(zip(signature.names, given, strict=False)), exchange))
        except BaseException as error:  # SystemExit and KeyboardInterrupt too: one call fails, the server lives
            raise InternalError(failure_text(error, "completion of", place[2])) from None

    def _place(self, params: CompleteParams, hidden: bool) -> tuple[_Place, tuple[str, ...]]:
        """What is asked about, if this server has it."""
        ref, argument = params.ref, params.argument.name
        prompt, template = (ref.name, None) if isinstance(ref, PromptRef) else (None, ref.uri)
        names = None if hidden else self._names_of(prompt, template)
        if names is None:
            raise InvalidParams("Unknown resource template" if prompt is None else f"Unknown prompt: {prompt[:200]!r}")
        if argument not in names:
            raise InvalidParams(f"Unknown argument: {argument[:200]!r}")
        if len(params.argument.value) > LONGEST_TYPED:
            raise InvalidParams(f"A value to complete may have {LONGEST_TYPED} characters")
        return (prompt, template, argument), names


def _chooser(argument: str, choices: Any) -> Callable[..., Any]:
    """A completion from all values there are: those that fit what was typed, the nearest first."""
    if isinstance(choices, str) or not all(isinstance(choice, str) for choice in choices):
        raise LocalError(f"complete={{{argument!r}: …}} takes a function, or a list of strings to choose from")
    values = tuple(choices)

    async def choose(typed: str) -> list[str]:
        return ranked(typed, values)

    return choose


def _resolved(params: CompleteParams, names: tuple[str, ...]) -> dict[str, str]:
    """The arguments that the user has chosen already, of those there are; older clients cannot tell."""
    told = params.context.arguments or {} if params.context is not UNSET else {}
    return {name: value for name, value in told.items() if name in names}


def _completion(values: Any) -> Result:
    if isinstance(values, Suggestions):
        return _told(values.values, values.total, values.has_more)
    return _told(values, None, None)


def _told(values: Any, total: int | None, more: bool | None) -> Result:
    found = cast("list[Any]", values)
    if not isinstance(values, list | tuple) or not all(isinstance(value, str) for value in found):
        raise TypeError("a completion returns a list of strings")
    count = len(found)
    if more is None or count > MOST_VALUES:
        more = count > MOST_VALUES or (total is not None and total > count)
    told: dict[str, Any] = {"values": list(found[:MOST_VALUES]), "hasMore": more}
    if total is not None or not more or count > MOST_VALUES:
        told["total"] = max(total or 0, count)
    return {"completion": told}
