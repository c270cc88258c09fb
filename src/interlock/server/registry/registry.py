"""Everything one server offers. List, call, completion and change notices all look here, and nowhere else.

Servers can be mounted into each other, so what is added to one appears in others too: `_places` names them all. All of
them are looked at before any of them changes, by one thread at a time; who reads needs no lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from ...wire.errors import LocalError
from ...wire.exchange import Handler, Principal
from ...wire.types.notifications import CHANGING_LISTS
from ..execution.thread_pool import Threads
from ..tools.tool import RegisteredTool
from .completions import Completions
from .paging import Catalogue
from .resource_set import ResourceSet
from .subscriptions import Admits, Changes

if TYPE_CHECKING:
    from ..prompts import RegisteredPrompt
    from .visibility import Visible

__all__ = ["Offers", "Place"]

_changing = threading.RLock()  # of all servers, since one change may reach several


class Place(Protocol):
    """Where a server is mounted, as seen from the server that is."""

    @property
    def inner(self) -> Offers: ...

    @property
    def outer(self) -> Offers: ...

    def name_of(self, kind: str, name: str) -> str:
        """What something of the inner one is called in the outer one; `LocalError` if that cannot be."""
        ...

    def wrap(self, kind: str, item: Any) -> Any:
        """What stands for it there; it has the `origin` and the `place` it stands for."""
        ...


class Offers:
    """What is there by kind and name; whoever adds or removes something has everybody told who listens."""

    def __init__(self, threads: Threads, page_size: int | None) -> None:
        self.changes = Changes()
        self.tools: Catalogue[RegisteredTool] = Catalogue("tools", page_size)
        self.resources = ResourceSet(threads, page_size)
        self.prompts: Catalogue[RegisteredPrompt] = Catalogue("prompts", page_size)
        self.completions = Completions(threads, self._names_of, self._completed_below)
        self.methods: dict[str, Handler] = {}
        """Of the author's own, notifications too."""
        self.speaks = False
        """Does any handler take a Context, and so may log?"""
        self.limited = False
        """Is anything not for everybody, here or in a server that is mounted here?"""
        self._visible: Callable[[Principal, Any], bool] | None = None
        self.above: list[Place] = []
        self.below: list[Place] = []

    # --- adding and removing ----------------------------------------------------------------------

    def add(self, kind: str, name: str, item: Any, complete: Mapping[str, Any] | None = None) -> None:
        """One more of `tools`, `prompts`, `resources`, `methods` or `notifications`; a name is taken once.

        With what completes its arguments: if that is wrong nothing is added.
        """
        with _changing:
            places = list(self._places(kind, name, item))
            _check_free(places)
            completed = self.completions.made(name, item, complete) if complete else {}
            for offers, _, where, what in places:
                offers._put(kind, where, what)
            self.completions.keep(completed)
        _tell(places)

    def remove(self, kind: str, name: str) -> None:
        with _changing:
            item = self._catalogue(kind, name).get(name)
            if item is None:
                raise LocalError(f"there is no {kind[:-1]} {name!r}")
            if getattr(item, "origin", None) is not None:
                raise LocalError(f"the {kind[:-1]} {name!r} belongs to a mounted server: remove it there")
            places = list(self._places(kind, name, item))
            for offers, _, where, _ in places:
                offers._drop(kind, where)
        _tell(places)

    def mount(self, place: Place) -> None:
        """All that the inner one of `place` offers, now and later."""
        with _changing:
            if self is place.inner or self in place.inner.all_below():
                raise LocalError("a server cannot be mounted into itself")
            found = place.inner.everything()
            places = [each for kind, name, item in found for each in self._places_of(place, kind, name, item)]
            _check_free(places)
            for offers, kind, where, what in places:
                offers._put(kind, where, what)
            place.inner.above.append(place)
            self.below.append(place)
            if place.inner.limited:
                self._limit()
        _tell(places)

    def everything(self) -> Iterator[tuple[str, str, Any]]:
        """All that was added, also by servers below, by kind and name."""
        from ..custom_methods import Heard  # only a server that is mounted is asked

        for tool in self.tools.items():
            yield "tools", tool.noun.name, tool
        for prompt in self.prompts.items():
            yield "prompts", prompt.noun.name, prompt
        for resource in self.resources.fixed.items():
            yield "resources", resource.noun.uri, resource
        for template in self.resources.templates.items():
            yield "resources", template.noun.uri_template, template
        for name, handler in list(self.methods.items()):
            yield ("notifications" if isinstance(handler, Heard) else "methods"), name, handler

    def all_below(self) -> Iterator[Offers]:
        for place in self.below:
            yield place.inner
            yield from place.inner.all_below()

    def _places(self, kind: str, name: str, item: Any) -> Iterator[tuple[Offers, str, str, Any]]:
        """Where something added here appears: here, and as another one wherever this is mounted."""
        yield self, kind, name, item
        for place in self.above:
            yield from place.outer._places_of(place, kind, name, item)

    def _places_of(self, place: Place, kind: str, name: str, item: Any) -> Iterator[tuple[Offers, str, str, Any]]:
        yield from self._places(kind, place.name_of(kind, name), place.wrap(kind, item))

    def _put(self, kind: str, name: str, item: Any) -> None:
        self.speaks = self.speaks or item.takes_context
        if kind == "methods":
            self.methods[name] = item
        elif kind == "notifications":
            from ..custom_methods import Heard  # who adds one has loaded it

            heard = self.methods.get(name)
            self.methods[name] = heard.and_by(item) if isinstance(heard, Heard) else Heard(item)
        else:
            self._catalogue(kind, name).add(name, item, item.noun)
            if getattr(item, "embeds", False):
                self.resources.fixed.offered = True  # who embeds resources declares them (TOOLS-18)

    def _drop(self, kind: str, name: str) -> None:
        self._catalogue(kind, name).remove(name)
        if kind == "prompts":
            self.completions.forget(prompt=name)
        elif kind == "resources":
            self.completions.forget(template=name)

    def has(self, kind: str, name: str) -> bool:
        return name in self.methods if kind == "methods" else name in self._catalogue(kind, name)

    def _catalogue(self, kind: str, name: str) -> Catalogue[Any]:
        if kind == "resources":
            return self.resources.catalogue_of(name)
        return self.tools if kind == "tools" else self.prompts

    # --- what can be completed --------------------------------------------------------------------

    def referred(self, prompt: str | None, template: str | None, principal: Principal | None = None) -> Any:
        """A prompt or a template by its name; None if it is not there, or not for them."""
        found = self.prompts.get(prompt) if prompt is not None else self.resources.templates.get(template or "")
        if found is not None and principal is not None and self.limited and self.hides(found, principal):
            return None
        return found

    def _names_of(self, prompt: str | None, template: str | None) -> tuple[str, ...] | None:
        """What can be completed here; what belongs to a mounted server is completed there."""
        found = self.referred(prompt, template)
        return None if found is None or getattr(found, "origin", None) is not None else found.names

    def _completed_below(self) -> bool:
        return any(place.inner.completions.offered for place in self.below)

    # --- who sees what ----------------------------------------------------------------------------

    def show_by(self, visible: Visible) -> None:
        """From now on each item is there for those of whom `visible` says so."""
        from .visibility import check_visible, is_visible  # most servers show everything to everybody

        check_visible(visible)
        with _changing:
            if self._visible is not None:
                raise LocalError("there is one answer to who sees what: this server has its function already")
            self._visible = partial(is_visible, visible)
            self._limit()
        self.visibility_changed()

    def _limit(self) -> None:
        self.limited = True
        self.resources.hides = lambda item, exchange: self.hides(item, exchange.peer.principal)
        for catalogue in (self.tools, self.prompts, self.resources.fixed, self.resources.templates):
            catalogue.forget_pages()
        for place in self.above:
            place.outer._limit()

    def hides(self, item: Any, principal: Principal) -> bool:
        """Not there for them, by the word of this server or of the one it was mounted from."""
        if self._visible is not None and not self._visible(principal, item.noun):
            return True
        place: Place | None = getattr(item, "place", None)
        return place is not None and place.inner.hides(item.origin, principal)

    def shown_tool(self, name: str, principal: Principal | None) -> RegisteredTool | None:
        """The tool, as far as it is there for them."""
        found = self.tools.get(name)
        hidden = principal is not None and self.limited and found is not None and self.hides(found, principal)
        return None if hidden else found

    def admits(self, item: Any) -> Admits:
        """Who hears of a change of this item."""
        return (lambda principal: not self.hides(item, principal)) if self.limited else None

    # --- changes ----------------------------------------------------------------------------------

    def resource_changed(self, uri: str) -> None:
        self.changes.resource_updated(uri, self._admits_to(uri))
        for place in list(self.above):
            place.outer.resource_changed(uri)

    def changed_somewhere(self, what: str, uri: str, admits: Admits) -> None:
        """In one of the processes that serve the same has changed: a list of this kind, or a `resource`."""
        if what == "resource":
            self.changes.tell_resource(uri, self._admits_to(uri))
        elif what in CHANGING_LISTS:
            self.changes.tell_list(what, admits)

    def _admits_to(self, uri: str) -> Admits:
        return (lambda who: self._covers(uri, who)) if self.limited else None

    def _covers(self, uri: str, principal: Principal) -> bool:
        """Is there a resource at this URI for them?"""
        fixed = self.resources.fixed.get(uri)
        if fixed is not None and not self.hides(fixed, principal):
            return True
        fitting = (each for each in self.resources.templates.items() if each.arguments(uri) is not None)
        return any(not self.hides(template, principal) for template in fitting)

    def visibility_changed(self) -> None:
        """Who sees what is different now: everybody looks again."""
        for kind in CHANGING_LISTS:
            self.changes.list_changed(kind)
        for place in list(self.above):
            place.outer.visibility_changed()

    def kinds(self) -> dict[str, bool]:
        """What of it there is: the capabilities that are derived (server/handlers.py)."""
        return {
            "tools": self.tools.offered,
            "resources": self.resources.offered,
            "prompts": self.prompts.offered,
            "completions": self.completions.offered,
            "logging": self.speaks or any(each.completions.takes_context for each in (self, *self.all_below())),
        }


_Places = Iterable[tuple[Offers, str, str, Any]]


def _check_free(places: _Places) -> None:
    """Nothing is there already under any of these names, nor twice among them. Many may hear one notification."""
    taken: set[tuple[int, str, str]] = set()
    for offers, kind, name, _ in places:
        if kind != "notifications" and (offers.has(kind, name) or (id(offers), kind, name) in taken):
            raise LocalError(f"there is a {kind[:-1]} {name!r} already")
        taken.add((id(offers), kind, name))


def _tell(places: _Places) -> None:
    for offers, kind, _, item in places:
        if kind in CHANGING_LISTS:
            offers.changes.list_changed(kind, offers.admits(item))
