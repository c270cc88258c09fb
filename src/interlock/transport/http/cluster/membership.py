"""What an endpoint shares with the same endpoint in other processes: a store, and colleagues who read it.

It begins with the first request, or with the application that it is part of, on the loop that serves; a file that was
named by its path is opened then and closed at the end, so that processes which fork before have one each.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
from collections.abc import Awaitable, Callable, Collection, Coroutine
from functools import partial
from typing import Any

import msgspec

from ....state.sqlite.store import SQLiteStore
from ....state.store import State
from ....wire.errors import LocalError
from ....wire.exchange import Principal
from .ended_principals import EndedPrincipals
from .message_bus import UNUSABLE, Colleagues, Mail

__all__ = ["UNUSABLE", "Sharing", "owner_of"]

log = logging.getLogger("interlock.http")
_LAST_SECONDS = 0.5  # for what is still to be written, when the server stops
Heard = Callable[[Mail], Awaitable[None]]


def owner_of(principal: Principal) -> str:
    """Whose an entry is: the same words for the same principal, of any length, in every process."""
    return hashlib.sha256(msgspec.json.encode(principal)).hexdigest()


class Sharing:
    """One process among those that serve the endpoint called `name`."""

    def __init__(self, state: State | str | os.PathLike[str], name: str, *, lease: float) -> None:
        if not isinstance(state, str | os.PathLike) and not state.shared:
            raise LocalError("state: other processes do not see this store; give the path of a file, or a SQLiteStore")
        self._given = state
        self.space = hashlib.sha256(name.encode()).hexdigest()[:16]
        self._lease = lease
        self._opened: State | None = None
        self.state: State
        """From `ready` on."""
        self.colleagues: Colleagues
        self.on_ready: list[Callable[[], Awaitable[None]]] = []
        """Called once the store is open and the worker has its number."""
        self.on_leave: list[Callable[[], None]] = []
        """Called when this process shares no longer, before the store is closed."""
        self.on_lapse: list[Callable[[], Coroutine[Any, Any, None]]] = []
        """Called when this worker has its lease back after it did not renew it in time: others may have reported that
        its calls are lost."""
        self._ended: EndedPrincipals
        self.on_principal_end: Callable[[Callable[[Principal], bool]], None] | None = None
        """Ends what this process holds of the principals for which its argument is true."""
        self._heard: dict[str, Heard] = {"principal_end": self._principal_ended}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._joining: asyncio.Task[None] | None = None
        self._errands: set[asyncio.Task[None]] = set()

    def hear(self, **heard: Heard) -> None:
        """Who is told of which kind of mail."""
        self._heard.update(heard)

    @property
    def active(self) -> bool:
        """Is this process one of those that share, or about to be?"""
        return self._joining is not None

    async def ready(self) -> None:
        """Returns once this process is one of those that share; raises `StoreError` while it cannot be."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop or self._joining is None:  # the first time, or what was is over
            self._loop = loop
            self._joining = loop.create_task(self._join())
        if not self._joining.done():
            await asyncio.wait([self._joining])
        if (error := self._joining.exception()) is not None:
            self._joining = None
            raise error

    async def _join(self) -> None:
        try:
            self.state = self._opened = self._opened or self._open()
            self._ended = EndedPrincipals(self.state, self.space)
            await self._ended.start()
            look = partial(self._ended.handle_missed, self._end_owners)
            self.colleagues = Colleagues(self.state, self.space, self._lease, self._deliver, self._lapsed, look)
            await self.colleagues.join()
            for each in self.on_ready:
                await each()
        except Exception:
            await self._let_go()
            raise

    def _open(self) -> State:
        return SQLiteStore(self._given) if isinstance(self._given, str | os.PathLike) else self._given

    async def _let_go(self) -> None:
        for each in self.on_leave:
            each()
        opened, self._opened = self._opened, None
        if opened is not None and opened is not self._given:
            await opened.close()

    async def _deliver(self, mail: Mail) -> None:
        heard = self._heard.get(mail.kind)
        if heard is not None:
            await heard(mail)

    def _lapsed(self) -> None:
        for each in self.on_lapse:
            self.spawn(each())

    def session_key(self, id: str) -> str:
        """Where the record of a session is kept; with "", where all of them begin."""
        return f"{self.space}/session/{id}"

    async def end_principal(self, principal: Principal) -> None:
        """Delete the records first, so that no worker serves these sessions again; then all workers end their part,
        those that miss the message when they next renew their lease."""
        owner, number = owner_of(principal), 0
        await self.state.delete_owned(self.session_key(""), owner=owner)
        try:
            number = await self._ended.add(owner)
            self._ended.mark_handled(number)  # here its caller ends all of it
        finally:
            await self.colleagues.tell_all(Mail("principal_end", data=owner.encode(), number=number))

    async def _principal_ended(self, mail: Mail) -> None:
        if mail.sender != self.colleagues.number and not self._ended.is_handled(mail.number):
            self._end_owners({mail.data.decode()})
            self._ended.mark_handled(mail.number)

    def _end_owners(self, owners: Collection[str] | None) -> None:
        """What this process holds of them, or of all."""
        if owners is None:
            log.warning("! more principals were ended than are kept: everything that is open here ends")
        if self.on_principal_end is not None:
            self.on_principal_end(lambda principal: owners is None or owner_of(principal) in owners)

    def spawn(self, errand: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Begin what nobody waits for; it has its time when the process stops."""
        task = asyncio.get_running_loop().create_task(_guarded(errand))
        self._errands.add(task)
        task.add_done_callback(self._errands.discard)
        return task

    async def leave(self) -> None:
        """Finish what was begun; others see that this process is gone."""
        joining, self._joining = self._joining, None
        if joining is None or self._loop is not asyncio.get_running_loop():
            return
        await asyncio.wait([joining])
        if self._errands:
            _, late = await asyncio.wait(list(self._errands), timeout=_LAST_SECONDS)
            for errand in late:
                errand.cancel()
        if joining.exception() is None:
            await _guarded(self.colleagues.leave())
            await self._let_go()


async def _guarded(errand: Coroutine[Any, Any, None]) -> None:
    try:
        await errand
    except UNUSABLE as error:
        log.warning("! %s", error)
