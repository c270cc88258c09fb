"""One view of what all servers of a host offer: who it belongs to, under which name a model sees it, what it costs.

Servers come and go, and each brings its whole offer at once. The view is made when somebody looks at it and is then
kept until the next change; nothing in it depends on the order in which servers came.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import UNSET

from ...wire.types.prompts import Prompt
from ...wire.types.resources import Resource, ResourceTemplate
from ...wire.types.tools import Tool
from .invisible_text import schema_for_model, text_for_model
from .listing import Offer
from .names import Identity, exposed, looks
from .token_estimate import of_tool, tokens

__all__ = ["Catalogue", "Entry", "for_model"]

T = TypeVar("T", Tool, Prompt)


class Entry(msgspec.Struct, Generic[T], frozen=True, eq=False):
    """A tool or a prompt, the server it belongs to, and the name that models see."""

    exposed: str
    server: str
    item: T

    @property
    def name(self) -> str:
        """As the server calls it."""
        return self.item.name

    @property
    def title(self) -> str:
        """For people: title, else the annotation's, else the name (server/tools#tool)."""
        item: Any = self.item
        if item.title is not UNSET and item.title:
            return item.title
        hints = item.annotations if isinstance(item, Tool) else UNSET
        return hints.title if hints is not UNSET and hints.title is not UNSET and hints.title else item.name

    @property
    def description(self) -> str:
        """As a model may read it."""
        return "" if self.item.description is UNSET else text_for_model(self.item.description)


class _View(msgspec.Struct, frozen=True):
    """Everything as of one version."""

    tools: dict[str, Entry[Tool]]
    prompts: dict[str, Entry[Prompt]]


class Catalogue:
    """Of one host. `order` are the names of its servers as they were configured."""

    def __init__(self, order: Iterable[str] = ()) -> None:
        self._offers: dict[str, Offer] = dict.fromkeys(order, Offer())
        self._view: _View | None = None
        self.version = 0
        """Another number after every change."""

    def put(self, server: str, offer: Offer) -> bool:
        """What this server offers from now on. Is that something else than before?"""
        if self._offers.get(server) == offer:
            return False
        self._offers[server] = offer
        self.version += 1
        self._view = None
        return True

    def reserve(self, server: str) -> None:
        """Its place, behind all that are there, whenever it comes with something."""
        self._offers.setdefault(server, Offer())

    def drop(self, server: str) -> None:
        """Nothing of it is here any more (an empty offer was put first)."""
        self._offers.pop(server, None)

    def offer(self, server: str) -> Offer:
        return self._offers.get(server) or Offer()

    # --- what is in it ----------------------------------------------------------------------------

    @property
    def tools(self) -> dict[str, Entry[Tool]]:
        """By the names that models see; servers as they were configured, and the tools of each by name."""
        return self._seen().tools

    @property
    def prompts(self) -> dict[str, Entry[Prompt]]:
        return self._seen().prompts

    @property
    def resources(self) -> list[tuple[str, Resource]]:
        """Each with its server: the same URI may mean something else at another."""
        return [(server, each) for server, offer in self._offers.items() for each in offer.resources.values()]

    @property
    def templates(self) -> list[tuple[str, ResourceTemplate]]:
        return [(server, each) for server, offer in self._offers.items() for each in offer.templates.values()]

    @property
    def instructions(self) -> dict[str, str]:
        """The servers' words to the model, as it may read them: data, and each under its server's name."""
        said = {server: offer.instructions for server, offer in self._offers.items()}
        return {server: text_for_model(text) for server, text in said.items() if text}

    def costs(self) -> dict[str, int]:
        """Tokens of all tools and the instructions of each server, roughly."""
        found = {server: tokens(offer.instructions or "") for server, offer in self._offers.items()}
        for entry in self.tools.values():
            found[entry.server] += self.cost(entry)
        return found

    def cost(self, entry: Entry[Tool]) -> int:
        return of_tool(entry.exposed, entry.item)

    def shadows(self) -> list[tuple[str, Sequence[Identity]]]:
        """Names that several servers use, or that look like each other's: of such a pair one may pose as the other."""
        alike: defaultdict[str, list[Identity]] = defaultdict(list)
        for entry in self.tools.values():
            alike[looks(entry.name)].append((entry.server, entry.name))
        several = ((min(each)[1], each) for each in alike.values() if len({server for server, _ in each}) > 1)
        return sorted(several)

    # --- the view ---------------------------------------------------------------------------------

    def _seen(self) -> _View:
        if self._view is None:
            self._view = _View(
                _merged((server, offer.tools) for server, offer in self._offers.items()),
                _merged((server, offer.prompts) for server, offer in self._offers.items()),
            )
        return self._view


def _merged(offers: Iterable[tuple[str, dict[str, T]]]) -> dict[str, Entry[T]]:
    """With names for models, in an order that depends on nothing but what is there."""
    items: dict[Identity, T] = {}
    for server, named in offers:
        for name in sorted(named):
            items[server, name] = named[name]
    return {name: Entry(name, identity[0], items[identity]) for name, identity in exposed(items).items()}


def for_model(entry: Entry[Tool]) -> dict[str, Any]:
    """A tool as the API of a model takes it: an object schema without `properties` is legal, but refused there."""
    schema = schema_for_model(entry.item.input_schema)
    return {
        "name": entry.exposed,
        "description": entry.description,
        "input_schema": schema if "properties" in schema else {**schema, "properties": {}},
    }
