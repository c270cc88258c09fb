"""Ordered items and their pages: cursors that stay valid while items come and go."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from msgspec import UNSET, UnsetType

from ..wire.errors import InvalidParams, LocalError
from ..wire.exchange import Lasting

__all__ = ["Catalogue", "cache_hints"]

T = TypeVar("T")
_LONGEST = 366 * 24 * 3600.0
_KEPT = 1024  # pages for everybody, by cursor; others are made anew
_KEPT_APART = 64  # pages for those who do not see everything, by what they see


def cache_hints(seconds: float, scope: str) -> dict[str, Any]:
    """What lists say to caches (2026-07-28 server/utilities/caching); a mistake of the author's is told to them."""
    if not 0 <= seconds <= _LONGEST:
        raise LocalError(f"cache_seconds is {seconds!r}: from 0 to a year ({_LONGEST:.0f})")
    if scope not in ("public", "private"):
        raise LocalError(f"cache_scope is {scope!r:.40}: 'public' or 'private'")
    return {"ttlMs": int(seconds * 1000), "cacheScope": scope}


class Catalogue(Generic[T]):
    """Items by name in the order they were added. A page lasts until the next change.

    Who changes it is one at a time (offers.py); who reads may be any thread. A change takes away the table of kept
    pages, so a page made of what was there before is kept where nobody looks any more.
    """

    def __init__(self, member: str, page_size: int | None) -> None:
        self._member = member
        self._page_size = page_size
        self._items: dict[str, tuple[int, T, Any]] = {}
        self._next = 0
        self._pages: dict[str, Lasting] = {}
        self._apart: dict[tuple[bytes, str], Lasting] = {}
        self.offered = False
        """True from the first item on, also when all are gone: a declared capability is kept (CAP-02)."""

    def __contains__(self, name: str) -> bool:
        return name in self._items

    def add(self, name: str, item: T, noun: Any) -> None:
        self._items[name] = (self._next, item, noun)
        self._next += 1
        self.offered = True
        self.forget_pages()

    def remove(self, name: str) -> bool:
        """True when there was one."""
        found = self._items.pop(name, None) is not None
        self.forget_pages()
        return found

    def forget_pages(self) -> None:
        self._pages, self._apart = {}, {}

    def get(self, name: str) -> T | None:
        found = self._items.get(name)
        return found[1] if found else None

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
            if len(pages) < _KEPT:
                pages[key] = page
        return page

    def _page_apart(
        self, cursor: str | UnsetType, hints: dict[str, Any], shown: Callable[[T], bool], key: str
    ) -> Lasting:
        pages, entries = self._apart, list(self._items.values())
        outcome = bytes(shown(item) for _, item, _ in entries)
        page = pages.get((outcome, key))
        if page is None:
            seen = [entry for entry, is_seen in zip(entries, outcome, strict=True) if is_seen]
            page = self._make(seen, cursor, hints)
            if len(pages) < _KEPT_APART:
                pages[outcome, key] = page
        return page

    def _make(self, entries: list[tuple[int, T, Any]], cursor: str | UnsetType, hints: dict[str, Any]) -> Lasting:
        after = -1 if cursor is UNSET else _position(cursor)
        rest = [(number, noun) for number, _, noun in entries if number > after]
        size = self._page_size or len(rest)
        members: dict[str, Any] = {self._member: [noun for _, noun in rest[:size]], **hints}
        if len(rest) > size:
            members["nextCursor"] = _cursor(rest[size - 1][0])
        return Lasting(members)


def _cursor(position: int) -> str:
    return base64.urlsafe_b64encode(f"after:{position}".encode()).decode()


def _position(cursor: str) -> int:
    """The position a cursor names; anything we did not make is -32602 (server/utilities/pagination)."""
    try:
        word, _, number = base64.b64decode(cursor, altchars=b"-_", validate=True).decode().partition(":")
        if word == "after" and number.isascii() and number.isdigit() and len(number) < 16:
            return int(number)
    except (binascii.Error, ValueError):
        pass
    raise InvalidParams("Unknown cursor: start again without one")
