"""The directories and files that a person lets servers know of (client/roots).

A root is told to a server only when it was agreed for that server, only while it is there and can be read, and by the
path it really has: a link that is turned to somewhere else does not turn the root with it unseen. They are looked at
again every few seconds; servers to which one of theirs has vanished or come back are told. Roots can be added at any
time, so every server hears that it may ask for them, also while there are none: a capability cannot be declared later.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urlsplit

import msgspec

from ...wire.errors import LocalError
from ...wire.escaping import display

__all__ = ["Root", "Rooting", "root_at"]

log = logging.getLogger("interlock.host")
_MOST = 1_000
_SECONDS = 5.0

Consented = Callable[[str, list[dict[str, Any]]], Awaitable[list[dict[str, Any]]]]
"""(server, roots) → those that may be told to it, after whoever must agree has."""


class Root(msgspec.Struct, frozen=True):
    path: Path
    """Absolute and without links in it."""
    name: str | None = None

    def is_there(self) -> bool:
        """Still where it was agreed to be, and readable (client/roots#security-considerations)."""
        try:
            return self.path.resolve(strict=True) == self.path and os.access(self.path, os.R_OK)
        except (OSError, RuntimeError):  # vanished, or links that lead in a circle
            return False

    def told(self) -> dict[str, Any]:
        return {"uri": self.path.as_uri()} | ({"name": self.name} if self.name else {})


Places = Iterable[str | Path | Root]


def root_at(place: str | Path | Root, name: str | None = None) -> Root:
    """The root at a path or file:// URI, which must be there now."""
    if isinstance(place, Root):
        return place
    path = Path(_path_of(place) if isinstance(place, str) and place.startswith("file:") else place).expanduser()
    if not path.is_absolute():
        raise LocalError(f"the root {str(place)!r:.200} is no absolute path: say where it begins")
    try:
        found = Root(path.resolve(strict=True), name)
    except (OSError, RuntimeError) as error:
        raise LocalError(f"the root {str(place)!r:.200} cannot be found: {_words(error)}") from error
    if not os.access(found.path, os.R_OK):
        raise LocalError(f"the root {str(place)!r:.200} cannot be read by this user")
    return found


def _path_of(uri: str) -> str:
    parts = urlsplit(uri)
    if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
        raise LocalError(f"the root {uri!r:.200} is on another machine or no absolute path")
    return unquote(parts.path)


def _words(error: Exception) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)


class Rooting:
    """Which roots which server may be told, and who watches over them.

    `roots` is what may be told to any server, or a mapping from servers to theirs; `changed(server)` is told of each
    server whose roots are others than those it was told last.
    """

    def __init__(
        self,
        roots: Places | Mapping[str, Places],
        consented: Consented,
        changed: Callable[[str], Awaitable[None]],
        *,
        seconds: float = _SECONDS,
    ) -> None:
        self._for_all: list[Root] = []
        self._by_server: dict[str, list[Root]] = {}
        if isinstance(roots, Mapping):
            self._by_server = {server: _all(theirs) for server, theirs in cast("Mapping[str, Places]", roots).items()}
        else:
            self._for_all = _all(roots)
        self._consented, self._changed, self._seconds = consented, changed, seconds
        self._told: dict[str, list[dict[str, Any]] | None] = {}
        """What each server was told last; None: it has not asked."""
        self._watching: asyncio.Task[None] | None = None

    def of(self, server: str) -> Sequence[Root]:
        """What may be told to it, there or not."""
        return self._by_server.get(server, self._for_all)

    async def set(self, roots: Places, server: str | None = None) -> None:
        """Others from now on, for one server or for all that have none of their own; they are told."""
        found = _all(roots)
        before = {each: self.of(each) for each, told in self._told.items() if told is None}
        if server is None:
            self._for_all = found
        else:
            self._by_server[server] = found
        for each, had in before.items():
            if self.of(each) != had:
                await self._tell(each)
        await self.look()

    def for_server(self, server: str) -> Callable[[], Awaitable[list[dict[str, Any]]]]:
        """How a client of that server answers `roots/list`. From now on the server is told when its roots change."""
        self._told[server] = None
        return lambda: self._answer(server)

    async def _answer(self, server: str) -> list[dict[str, Any]]:
        if not self.of(server):
            self._told[server] = []
            return []  # there is nothing to agree to
        now = await asyncio.to_thread(self._now, server)
        self._told[server] = now
        self._begin()
        return await self._consented(server, now)

    def _now(self, server: str) -> list[dict[str, Any]]:
        return [root.told() for root in self.of(server) if root.is_there()]

    # --- watching ---------------------------------------------------------------------------------

    def _begin(self) -> None:
        if self._watching is None:
            self._watching = asyncio.get_running_loop().create_task(self._watch())

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self._seconds)
            await self.look()

    async def look(self) -> None:
        """Tell each server that was told other roots than it has now."""
        for server, told in [*self._told.items()]:
            if told is None:
                continue
            now = await asyncio.to_thread(self._now, server)
            if now != told and server in self._told:  # and was not removed meanwhile
                self._told[server] = now
                await self._tell(server)

    async def _tell(self, server: str) -> None:
        try:
            await self._changed(server)
        except Exception as error:  # one server that is away must not end the watch for all
            shown = display(server, 60), display(str(error), 200)
            log.warning("! %s could not be told that its roots changed: %s", *shown)

    def forget(self, server: str) -> None:
        """The server is gone."""
        self._told.pop(server, None)

    async def close(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait([self._watching])
            self._watching = None


def _all(roots: Places) -> list[Root]:
    found = [root_at(root) for root in roots]
    if len(found) > _MOST:
        raise LocalError(f"{len(found)} roots: {_MOST} are the most")
    return found
