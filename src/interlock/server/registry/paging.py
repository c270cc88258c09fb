"""Ordered items and their pages: cursors that stay valid while items come and go."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from msgspec import UNSET, UnsetType

from ...wire.errors import InvalidParams, LocalError
from ...wire.exchange import Lasting

__all__ = ["Catalogue", "cache_hints"]

T = TypeVar("T")
_LONGEST = 366 * 24 * 3600.0
_MOST_PAGES = 1024  # kept at once; further ones are made for each request
_MOST_APART = 64  # the same for those who do not see everything, by what they see


def cache_hints(seconds: float, scope: str) -> dict[str, Any]:
    """What lists say to caches (server/utilities/caching); a mistake of the author's is told to them."""
    if not 0 <= seconds <= _LONGEST:
        raise LocalError(f"cache_seconds is {seconds!r}: from 0 to a year ({_LONGEST:.0f})")
    if scope not in ("public", "private"):
        raise LocalError(f"cache_scope is {scope!r:.40}: 'public' or 'private'")
    return {"ttlMs": int(seconds * 1000), "cacheScope": scope}


class Catalogue(Generic[T]):
    """Items by name in the order they were added. A page lasts until the next change.

    Who changes it is one at a time (registry.py); who reads may be any thread. A change takes away the table of kept
    pages, so a page made of what was there before is kept where nobody looks any more.
    """

    def __init__(self, member: str, page_size: int | None) -> None:
        if page_size is not None and page_size < 1:
            raise LocalError(f"page_size is {page_size!r}: a page holds at least one, and everything with None")
        self._member = member
        self._page_size = page_size
        self._items: dict[str, tuple[int, T, Any]] = {}
        self._by_name: dict[str, T] = {}
        self.get = self._by_name.get
        self._next = 0
        self._pages: dict[str, Lasting] = {}
        self._apart: dict[tuple[bytes, str], Lasting] = {}
        self.offered = False
        """True from the first item on, also when all are gone: a declared capability is kept (CAP-02)."""

    def __contains__(self, name: str) -> bool:
        return name in self._items

    def add(self, name: str, item: T, noun: Any) -> None:
        self._items[name] = (self._next, item, noun)
        self._by_name[name] = item
        self._next += 1
        self.offered = True
        self.forget_pages()

    def remove(self, name: str) -> bool:
        """True when there was one."""
        found = self._items.pop(name, None) is not None
        self._by_name.pop(name, None)
        self.forget_pages()
        return found

    def forget_pages(self) -> None:
        self._pages, self._apart = {}, {}

    def items(self) -> list[T]:
        return [item for _, item, _ in list(self._items.values())]

    def page(self, cursor: str | UnsetType, hints: dict[str, Any], shown: Callable[[T], bool] | None = None) -> Lasting:
        """The page behind `cursor`; `hints` are the members every page of this list carries.

        With `shown`, of the items it says yes to. Such a page is kept for all who see exactly the same.
        """
        key = "" if cursor is UNSET else "." + cursor
        if shown is not None:
            return self._page_apart(cursor, hints, shown, key)
        pages = self._pages
        page = pages.get(key)
        if page is None:
            page = self._make(list(self._items.values()), cursor, hints)
            if len(pages) < _MOST_PAGES:
                pages[key] = page
        return page

    def _page_apart(
        self, cursor: str | UnsetType, hints: dict[str, Any], shown: Callable[[T], bool], key: str
    ) -> Lasting:
        pages, held = self._apart, list(self._items.values())
        outcome = bytes(shown(item) for _, item, _ in held)
        page = pages.get((outcome, key))
        if page is None:
            seen = [entry for entry, is_seen in zip(held, outcome, strict=True) if is_seen]
            page = self._make(seen, cursor, hints)
            if len(pages) < _MOST_APART:
                pages[outcome, key] = page
        return page

    def _make(self, held: list[tuple[int, T, Any]], cursor: str | UnsetType, hints: dict[str, Any]) -> Lasting:
        """What was added behind the item of that number: it may be gone, the numbers of the others never change."""
        start = 0 if cursor is UNSET else self._start(held, cursor)
        end = len(held) if self._page_size is None else start + self._page_size
        members: dict[str, Any] = {self._member: [noun for _, _, noun in held[start:end]], **hints}
        if end < len(held):
            members["nextCursor"] = self._cursor(held[end - 1][0])
        return Lasting(members)

    def _start(self, held: list[tuple[int, T, Any]], cursor: str) -> int:
        from bisect import bisect_right  # few lists have a second page

        return bisect_right(held, self._position(cursor), key=_number)

    def _cursor(self, position: int) -> str:
        return base64.urlsafe_b64encode(f"{self._member}:{position}".encode()).decode()

    def _position(self, cursor: str) -> int:
        """The position a cursor names; what this list cannot have made is -32602 (server/utilities/pagination)."""
        try:
            word, _, number = base64.b64decode(cursor, altchars=b"-_", validate=True).decode().partition(":")
            position = int(number) if number.isascii() and number.isdigit() and len(number) < 16 else self._next
            if word == self._member and position < self._next and self._cursor(position) == cursor:
                return position
        except (binascii.Error, ValueError):
            pass
        raise InvalidParams("Unknown cursor: start again without one")


def _number(item: tuple[int, Any, Any]) -> int:
    return item[0]
