"""Words to an author who used a decorator in another library's way, before anything else stumbles over it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from types import FunctionType
from typing import Any, TypeVar, cast

from ..wire.errors import LocalError
from ..wire.messages import encode
from ..wire.meta import check_author_keys

__all__ = [
    "check_facts",
    "check_options",
    "check_texts",
    "check_uri_given",
    "named_by",
    "prompt_options",
    "resource_options",
    "adding",
    "bare_or_not",
]


_TEXTS = ("name", "title", "description", "mime_type")
_LIFESPAN = "register a function with @server.app_lifespan, @server.connection_lifespan or @server.request_lifespan"
_ELSEWHERE = {("Server", name): _LIFESPAN for name in ("lifespan", "app_lifespan")}
"""Options that other libraries have, and what to write here instead."""


def check_facts(what: str, facts: Mapping[str, Any], known: Collection[str]) -> None:
    """What an author says about a thing: all of it may be said, and its `meta` takes no key of the protocol's.

    One that JSON cannot say, or says in another type, would cost every client the whole list it stands in.
    """
    check_options(what, facts, known)
    check_texts(what, {name: facts.get(name) for name in _TEXTS})
    if (meta := facts.get("meta")) is not None:
        _check_meta(what, meta)


def check_texts(what: str, facts: Mapping[str, Any]) -> None:
    """What is said at all is said in words that can be written."""
    for name, value in facts.items():
        if value is None:
            continue
        if not isinstance(value, str):
            raise LocalError(f"{what}: {name}={value!r:.60} is no text")
        if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
            raise LocalError(f"{what}: {name}={value!r:.60} holds half a surrogate pair, which is no text")


def _check_meta(what: str, meta: Any) -> None:
    if not isinstance(meta, Mapping) or not all(isinstance(key, str) for key in cast("Mapping[Any, Any]", meta)):
        raise LocalError(f"{what}: meta={meta!r:.60} is no mapping of texts to values")
    check_author_keys(cast("Mapping[str, Any]", meta))
    try:
        encode(dict(cast("Mapping[str, Any]", meta)))
    except (TypeError, ValueError, RecursionError) as error:
        raise LocalError(f"{what}: meta is no JSON: {error}") from None


def check_options(what: str, given: Iterable[str], known: Collection[str]) -> None:
    """Every option is one that there is. A TypeError, as Python itself raises for a name it does not know."""
    for name in given:
        if name not in known:
            import difflib  # for whoever made a mistake

            near = difflib.get_close_matches(name, known, 1)
            meant = f"did you mean {near[0]!r}?" if near else f"it takes {', '.join(sorted(known))}"
            meant = _ELSEWHERE.get((what, name), meant)
            raise TypeError(f"{what} has no option {name!r}: {meant}")


def named_by(function: FunctionType) -> frozenset[str]:
    """The options that a function takes by name."""
    code = function.__code__
    return frozenset(code.co_varnames[code.co_argcount :][: code.co_kwonlyargcount])


@cache
def prompt_options() -> frozenset[str]:
    """What may be said about a prompt."""
    from .prompts import RegisteredPrompt  # a server without prompts starts without them

    return named_by(RegisteredPrompt.__init__) - {"threads"} | {"complete"}


@cache
def resource_options() -> frozenset[str]:
    """What may be said about a resource."""
    from .resources.resource import ResourceFacts  # as does one without resources

    return frozenset(ResourceFacts.__annotations__)


def check_uri_given(uri: Any) -> None:
    """`@server.resource` alone would swallow the function without a word."""
    if not isinstance(uri, str):
        raise LocalError("@server.resource needs a URI: @server.resource('notes://all') or, with variables, a template")


F = TypeVar("F", bound=Callable[..., Any])


def adding(add: Callable[[F], None]) -> Callable[[F], F]:
    """The decorator that adds the function it stands before, and leaves it as it is."""

    def register(function: F) -> F:
        add(function)
        return function

    return register


def bare_or_not(name: str, function: Any, add: Callable[[Any], None]) -> Any:
    """`@server.tool` stands before a function; `@server.tool(...)` makes the decorator that will."""
    if function is None:
        return adding(add)
    if not callable(function):
        raise LocalError(f"@server.{name}({function!r:.60}): say it by name, @server.{name}(name=…)")
    return adding(add)(function)
