"""Words to an author who used a decorator in another library's way, before anything else stumbles over it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cache
from types import FunctionType
from typing import Any

from ..wire.errors import LocalError
from ..wire.meta import check_author_keys

__all__ = ["check_facts", "check_options", "check_uri_given", "named_by", "prompt_options", "resource_options"]


def check_facts(what: str, facts: Mapping[str, Any], known: Collection[str]) -> None:
    """What an author says about a thing: all of it may be said, and its `meta` takes no key of the protocol's."""
    check_options(what, facts, known)
    check_author_keys(facts.get("meta"))


def check_options(what: str, given: Iterable[str], known: Collection[str]) -> None:
    """Every option is one that there is. A TypeError, as Python itself raises for a name it does not know."""
    for name in given:
        if name not in known:
            import difflib  # for whoever made a mistake

            near = difflib.get_close_matches(name, known, 1)
            meant = f"did you mean {near[0]!r}?" if near else f"it takes {', '.join(sorted(known))}"
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
    from .resources import ResourceFacts  # as does one without resources

    return frozenset(ResourceFacts.__annotations__)


def check_uri_given(uri: Any) -> None:
    """`@server.resource` alone would swallow the function without a word."""
    if not isinstance(uri, str):
        raise LocalError("@server.resource needs a URI: @server.resource('notes://all') or, with variables, a template")
