"""The lists of a server, complete: all pages, kept as long as they are true, and walked once however many ask.

What is kept belongs to one client, one connection of it (a generation) and one principal: whoever calls with headers
of his own is another one, and only what the server calls public is shared between them. A change that the server
tells of, and a new connection, end what is kept at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar, cast

import msgspec

from ..wire.errors import EndlessList, InvalidParams, MethodNotFound
from ..wire.escaping import display
from ..wire.exchange import Result
from ..wire.json.lenient import is_number, parts_of
from ..wire.types.notifications import CHANGING_LISTS
from ..wire.types.prompts import Prompt
from ..wire.types.resources import Resource, ResourceTemplate
from ..wire.types.tools import Tool
from .results import read_items

__all__ = ["Lists", "Listing", "TOOLS", "RESOURCES", "TEMPLATES", "PROMPTS", "CHANGE_OF"]

T = TypeVar("T")
Ask = Callable[[dict[str, Any]], Awaitable[Result]]
"""Sends one request of a walk, with these params."""
Took = Callable[[Sequence[Any]], None] | None

MOST_PAGES = 1000  # of one list; a server that has more is taken for an endless one
MOST_ITEMS = 100_000  # of one list
MOST_PARTS = 2_000_000  # of all values in all pages of one list (wire/json/lenient.py)
LONGEST_CURSOR = 64 * 1024  # characters; they are all remembered while a list is walked
MOST_KEPT = 64  # lists of all kinds and principals; beyond it the one kept longest is forgotten
LONGEST_KEPT = 3600.0  # seconds, whatever the server says: who says "a day" and means "an hour" harms nobody
TOLD_KEPT = 300.0  # seconds for a server that has no word for them but tells of changes: a notice may be lost


class Listing(msgspec.Struct, frozen=True, eq=False):
    """One of the lists."""

    method: str
    member: str
    kind: type[Any]
    change: str
    """What changes with it: `tools`, `prompts` or `resources`."""
    optional: bool = False
    """Is a server that does not know the method one that has none of these?"""


TOOLS = Listing("tools/list", "tools", Tool, "tools")
RESOURCES = Listing("resources/list", "resources", Resource, "resources")
TEMPLATES = Listing(
    "resources/templates/list",
    "resourceTemplates",
    ResourceTemplate,
    "resources",
    optional=True,  # templates have no capability of their own, and many servers with resources do not have them
)
PROMPTS = Listing("prompts/list", "prompts", Prompt, "prompts")

CHANGE_OF = {f"notifications/{kind}/list_changed": kind for kind in CHANGING_LISTS}
"""The notices that a list is another one now."""


class _Kept(msgspec.Struct):
    items: tuple[Any, ...]
    until: float
    public: bool


class _Walk(Generic[T]):
    """The pages of one list as they come."""

    def __init__(self, listing: Listing, unsaid: float) -> None:
        self._listing, self._unsaid = listing, unsaid
        self._seen: set[str] = set()
        self._parts = 0
        self._loop = asyncio.get_running_loop()
        self.items: list[T] = []
        self.until = float("inf")
        self.public = True

    async def all(self, ask: Ask) -> None:
        params: dict[str, Any] = {}
        for _ in range(MOST_PAGES):
            try:
                result = await ask(params)
            except MethodNotFound:
                if not self._listing.optional or params:
                    raise
                result: Result = {self._listing.member: ()}
            self._take(result)
            cursor = result.get("nextCursor")
            if not isinstance(cursor, str):  # an empty one is a cursor like any other (server/utilities/pagination)
                return
            self._check_cursor(cursor)
            params = {"cursor": cursor}
        raise EndlessList(f"{self._listing.method}: more than {MOST_PAGES} pages")

    def _take(self, page: Result) -> None:
        """Each page has its own clock, and the first that is stale makes the list stale (caching#pagination)."""
        self._parts += parts_of(page, MOST_PARTS)
        if self._parts > MOST_PARTS:
            raise EndlessList(f"{self._listing.method}: more than {MOST_PARTS} values in its pages")
        self.items += read_items(page, self._listing.member, self._listing.kind, self._listing.method)
        if len(self.items) > MOST_ITEMS:
            raise EndlessList(f"{self._listing.method}: more than {MOST_ITEMS} items")
        self.until = min(self.until, self._loop.time() + self._seconds(page))
        self.public = self.public and page.get("cacheScope") == "public"

    def _seconds(self, page: Result) -> float:
        told: Any = page.get("ttlMs")
        if not is_number(told):
            return self._unsaid
        return min(max(told, 0), LONGEST_KEPT * 1000) / 1000  # bounded first: no float holds every integer

    def _check_cursor(self, cursor: str) -> None:
        if len(cursor) > LONGEST_CURSOR:
            raise EndlessList(f"{self._listing.method}: a cursor of {len(cursor)} characters")
        if cursor in self._seen:
            raise EndlessList(f"{self._listing.method}: the server repeats the cursor {display(cursor, 40)!r}")
        self._seen.add(cursor)


class Lists:
    """What one client has listed. All of it is used on the client's own loop."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, Hashable], _Kept] = {}
        self._walks: dict[tuple[str, Hashable], asyncio.Future[tuple[Any, ...] | None]] = {}
        self._changes = {"tools": 0, "prompts": 0, "resources": 0}

    async def all(
        self,
        listing: Listing,
        ask: Ask,
        *,
        unsaid: float = 0.0,
        principal: Hashable = None,
        alone: bool = False,
        took: Took = None,
    ) -> list[Any]:
        """The complete list. `alone` takes nothing that is kept and shares no walk that began before.

        `unsaid` is for how many seconds a list is good whose server does not say so. `took` hears of every list that
        came and was still true when its last page was there.
        """
        key = (listing.method, principal)
        while not alone:
            if (kept := self._fresh(listing, principal)) is not None:
                return [*kept.items]
            if (walk := self._walks.get(key)) is None:
                break
            if (items := await asyncio.shield(walk)) is not None:
                return [*items]  # else whoever walked has given up: the next one begins anew
        return [*await self._shared(key, listing, ask, unsaid, took)]

    def changed(self, kind: str) -> None:
        """The server said so: nothing that was listed, or is being listed, is taken for true any more."""
        self._changes[kind] += 1
        methods = {listing.method for listing in (TOOLS, RESOURCES, TEMPLATES, PROMPTS) if listing.change == kind}
        for known in (self._kept, self._walks):
            for key in [key for key in known if key[0] in methods]:
                del known[key]

    def forget(self) -> None:
        """Another connection: it may be another server by now."""
        for kind in self._changes:
            self.changed(kind)

    def _fresh(self, listing: Listing, principal: Hashable) -> _Kept | None:
        now = asyncio.get_running_loop().time()
        for (method, whose), kept in self._kept.items():
            if method == listing.method and (whose == principal or kept.public) and now < kept.until:
                return kept
        return None

    async def _shared(
        self, key: tuple[str, Hashable], listing: Listing, ask: Ask, unsaid: float, took: Took
    ) -> tuple[Any, ...]:
        """Walk in this very task; who comes meanwhile waits for the outcome."""
        walk = self._walks[key] = asyncio.get_running_loop().create_future()
        try:
            items = await self._walked(key, listing, ask, unsaid, took)
        except Exception as error:
            walk.set_exception(error)
            walk.exception()  # seen: perhaps nobody else waits for it
            raise
        except BaseException:
            walk.set_result(None)
            raise
        finally:
            if self._walks.get(key) is walk:
                del self._walks[key]
        walk.set_result(items)
        return items

    async def _walked(
        self, key: tuple[str, Hashable], listing: Listing, ask: Ask, unsaid: float, took: Took
    ) -> tuple[Any, ...]:
        changes = self._changes[listing.change]
        walk = _Walk[Any](listing, unsaid)
        try:
            await walk.all(ask)
        except InvalidParams:
            if not walk.items:
                raise
            walk = _Walk[Any](listing, unsaid)  # a cursor that is not known any more: from the beginning (CACHE-022)
            await walk.all(ask)
        items = tuple(walk.items)
        if changes == self._changes[listing.change]:
            if took is not None:
                took(items)
            if walk.until > asyncio.get_running_loop().time():
                self._keep(key, _Kept(items, walk.until, walk.public))
        return items

    def _keep(self, key: tuple[str, Hashable], kept: _Kept) -> None:
        self._kept.pop(key, None)
        self._kept[key] = kept
        if len(self._kept) > MOST_KEPT:
            del self._kept[cast(Any, next(iter(self._kept)))]
