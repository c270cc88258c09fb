"""Who is in a host, while it runs: servers come, go and are replaced, one change of each at a time.

A server that is removed is told so to everybody first (`removed` is the last of its states), so that nothing new begins
with it; then all that waits for it or for an answer about it ends, then its process and connection do, and at last all
that was kept under its name. Another one of the same name may come only after that: there are never two.

Leave belongs to what it was given for. With a server that is removed it ends, unless its owner keeps it; one that is
replaced keeps it only where what is started or connected to is the same as before. Approved definitions (pins) stay:
they are bound to how a server is started, and let nothing be done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from ...wire.errors import InterlockError, LocalError, NotOpen, StoreError
from ...wire.escaping import display
from ..catalogue.catalogue import Catalogue
from ..gate.gate import Gate
from .managed_server import Hooks, Member, Seat, member_in

__all__ = [
    "MOST_SERVERS",
    "Roster",
    "same_name",
    "Turns",
]


T = TypeVar("T")


class Turns:
    """Nothing is kept of names with which nothing goes on."""

    def __init__(self) -> None:
        self._last: dict[str, asyncio.Task[Any]] = {}

    async def take(self, name: str, work: Callable[[], Awaitable[T]]) -> T:
        """Do it after all that was asked for before with this name. It is done also when nobody waits any more."""
        turn = asyncio.get_running_loop().create_task(self._after(self._last.get(name), work))
        self._last[name] = turn
        turn.add_done_callback(partial(self._over, name))
        return await asyncio.shield(turn)

    async def close(self) -> None:
        """Wait until nothing goes on any more."""
        while self._last:
            await asyncio.wait([*self._last.values()])

    async def _after(self, before: asyncio.Task[Any] | None, work: Callable[[], Awaitable[T]]) -> T:
        if before is not None:
            await asyncio.wait([before])
        return await work()

    def _over(self, name: str, turn: asyncio.Task[Any]) -> None:
        if self._last.get(name) is turn:
            del self._last[name]
        if not turn.cancelled():
            turn.exception()  # whoever waits is told; that nobody does any more is no mistake


MOST_SERVERS = 1_000
MOST_GONE = 1_000  # servers that were removed, and whose pins are kept for when they come back; the oldest is forgotten


class Roster:
    """Of one host. `members` are those in it, by name; `left(server, back)` forgets what the host itself keeps of a
    server that ended: all of it, or what does not concern the one that takes its place (`back`)."""

    def __init__(
        self,
        members: dict[str, Member],
        hooks: Hooks,
        gate: Gate,
        catalogue: Catalogue,
        left: Callable[[str, bool], Awaitable[None]],
    ) -> None:
        self._members, self._hooks, self._left = members, hooks, left
        self._gate, self._catalogue = gate, catalogue
        self._turns = Turns()
        self._gone: dict[str, None] = {}
        self._is_open = False

    # --- all of them ------------------------------------------------------------------------------

    def open(self) -> None:
        self._is_open = True
        for member in self._members.values():
            member.begin()

    async def close(self) -> None:
        """All are stopped when it returns, also those that were about to begin, or to go."""
        self._is_open = False
        stops = (self._turns.take(name, partial(self.stop, each)) for name, each in [*self._members.items()])
        await asyncio.gather(*stops)
        await self._turns.close()

    def _check_open(self) -> None:
        if not self._is_open:
            raise NotOpen("this host is not open")

    # --- one of them ------------------------------------------------------------------------------

    async def take(self, server: str, work: Callable[[Member], Awaitable[T]]) -> T:
        """When nothing else is being done with it."""
        member_in(self._members, server)
        return await self._turns.take(server, lambda: work(member_in(self._members, server)))

    async def stop(self, member: Member) -> None:
        """In its turn. A call that waits for a person and not for its server does not end with the connection."""
        calls = self._gate.calls_at(member.name)  # and not those of the next one of this name
        await member.stop()
        self._gate.end_calls(calls, member.state)

    async def restart(self, server: str) -> Member:
        """Stopped, and on its way again when it returns."""
        self._check_open()
        return await self.take(server, self._restart)

    async def _restart(self, member: Member) -> Member:
        self._check_open()
        self._gate.ask_again(member.name)
        await self.stop(member)
        self._check_open()  # it may have been closed meanwhile, and then nothing begins any more
        member.begin()
        return member

    async def add(self, name: str, find: Callable[[], Seat], replace: bool) -> Member:
        """On its way when it returns."""
        if not isinstance(name, str) or not name:  # pyright: ignore[reportUnnecessaryIsInstance] - from whoever calls
            raise LocalError("a server of a host has a name, which is a text")
        self._check_open()
        return await self._turns.take(name, partial(self._add, Member(name, find, self._hooks), replace))

    async def _add(self, member: Member, replace: bool) -> Member:
        self._check_open()
        before = self._members.get(member.name)
        if before is None:
            self._check_room()
        elif not replace:
            raise same_name(member.name)
        self._gate.added(member.name)  # nothing is done that is not in the book
        self._gone.pop(member.name, None)
        self._members[member.name] = member
        self._catalogue.reserve(member.name)
        if before is not None:
            await self._make_way(before, member)
        if self._is_open:  # else who closed it stops this one, too
            member.begin()
        return member

    async def _make_way(self, before: Member, after: Member) -> None:
        """What is called meanwhile waits for the one that comes. It does not come where leaves that it must not have
        could not be ended."""
        try:
            await self._end(before, keep=_is_same(before, after), back=True)
        except BaseException:
            await after.stop()
            raise

    def _check_room(self) -> None:
        if len(self._members) >= MOST_SERVERS:
            raise LocalError(f"{MOST_SERVERS} servers are in this host: they are the most")

    async def remove(self, server: str, keep_leaves: bool) -> None:
        await self.take(server, partial(self._remove, keep_leaves))

    async def _remove(self, keep_leaves: bool, member: Member) -> None:
        try:
            await self._end(member, keep=keep_leaves, back=False)
        finally:  # it is gone, also where it could not be written down that its leaves are
            del self._members[member.name]
            self._catalogue.drop(member.name)
            self._gone[member.name] = None
            await self._forget_oldest()

    async def _end(self, member: Member, *, keep: bool, back: bool) -> None:
        """Everything of it ends; what cannot be forgotten on the disk (`StoreError`) is told when all else is."""
        self._gate.removed(member.name)
        member.retire()  # from here on nothing new begins with it
        self._gate.withdraw(member.name)
        await self.stop(member)
        await self._left(member.name, back)
        self._gate.forget(member.name)
        if not keep:
            await self._gate.end_leaves(member.name, but="launch" if back else None)

    async def _forget_oldest(self) -> None:
        while len(self._gone) > MOST_GONE:
            oldest = next(iter(self._gone))
            del self._gone[oldest]
            with suppress(StoreError):
                await self._gate.forget_for_good(oldest)


def same_name(name: str) -> LocalError:
    return LocalError(f"two servers are called {display(name, 60)!r}: a host knows them by their names")


def _is_same(before: Member, after: Member) -> bool:
    """Is it beyond doubt that the same is started or connected to?"""
    try:
        one, other = before.meant(), after.meant()
    except InterlockError:
        return False
    return one == other if isinstance(one, str) else one is other
