"""Keeps the catalogue true: lists a server when it comes and when it says that something changed, and puts on the shelf
what was admitted.

A server is listed by one task at a time, however often it cries that its lists have changed, and one that does not stop
crying is listed ever more rarely. Nothing is called on a new connection before it is known what is on the other end
of it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from ...client.client import Client
from ...wire.channel import Patience
from ...wire.errors import InterlockError
from ...wire.escaping import display
from .catalogue import Catalogue
from .listing import Bounds, Offer, offered

__all__ = ["Shelving"]

log = logging.getLogger("interlock.host")
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 30.0  # seconds between two listings of a server that keeps changing

Admit = Callable[[str, Offer], Awaitable[Offer]]
"""(server, all that it offers) → what of it may be used."""
Tell = Callable[[str, str], None]


class Shelving:
    """Of one host. `tell` hears notes about a server, `changed` that its part of the catalogue is another one."""

    def __init__(
        self, catalogue: Catalogue, admit: Admit, tell: Tell, changed: Callable[[str], None], bounds: Bounds
    ) -> None:
        self._catalogue, self._admit, self._tell, self._changed = catalogue, admit, tell, changed
        self._bounds = bounds
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._ending: dict[asyncio.Task[None], str] = {}
        self._again: set[str] = set()
        self.unknown: dict[str, asyncio.Event] = {}
        """Servers whose new connection was not looked at yet: what they are asked has to wait."""
        self._told: dict[str, frozenset[str]] = {}
        self._listing: dict[str, asyncio.Task[None] | None] = {}

    # --- what the host says -----------------------------------------------------------------------

    def connected(self, server: str, client: Client, seconds: float) -> None:
        """A new connection: what is on its other end must be looked at before anything is called."""
        self._cancel(server)  # what listed the one before
        self.unknown.setdefault(server, asyncio.Event())
        self.refresh(server, client, seconds)

    def refresh(self, server: str, client: Client, seconds: float) -> None:
        """List it, within so many seconds; a listing that is under way is followed by another."""
        if server in self._tasks:
            self._again.add(server)
            return
        work = self._keep(server, client, Patience(idle=seconds, total=seconds))
        self._tasks[server] = asyncio.get_running_loop().create_task(work)

    def gone(self, server: str) -> None:
        """It cannot be called any more: a model need not know what it had."""
        self._stop(server)
        self._put(server, Offer())

    def is_listing(self, server: str) -> bool:
        """Is it being listed now, or are its new things being looked at?"""
        return server in self._listing

    async def known(self, server: str) -> None:
        """Wait until it is known what its connection leads to."""
        if (unknown := self.unknown.get(server)) is not None:
            await unknown.wait()

    async def ended(self, server: str) -> None:
        """Nothing of it is listed any more when it returns, and what was told of it is forgotten."""
        self.gone(server)
        if ending := [task for task, whose in self._ending.items() if whose == server]:
            await asyncio.wait(ending)
        self._told.pop(server, None)

    async def close(self) -> None:
        """Nothing is listed any more when it returns, nor by those that were given up before."""
        for server in [*self._tasks]:
            self._stop(server)
        if self._ending:
            await asyncio.wait([*self._ending])

    # --- how --------------------------------------------------------------------------------------

    def _cancel(self, server: str) -> None:
        if (task := self._tasks.pop(server, None)) is not None:
            task.cancel()
            self._ending[task] = server
            task.add_done_callback(self._ending.pop)

    def _stop(self, server: str) -> None:
        self._cancel(server)
        self._again.discard(server)
        self._is_known(server)

    def _is_known(self, server: str) -> None:
        if (unknown := self.unknown.pop(server, None)) is not None:
            unknown.set()

    async def _keep(self, server: str, client: Client, patience: Patience) -> None:
        pause = FIRST_PAUSE
        while True:
            self._again.discard(server)
            await self._list(server, client, patience)
            self._is_known(server)
            await asyncio.sleep(pause)
            if server not in self._again:
                break
            pause = min(pause * 2, LONGEST_PAUSE)
        del self._tasks[server]

    async def _list(self, server: str, client: Client, patience: Patience) -> None:
        me = self._listing[server] = asyncio.current_task()
        try:
            offer = await offered(client, patience, self._bounds)
            self._note(server, offer.notes)
            self._put(server, await self._admit(server, offer))
        except InterlockError as error:
            self._put(server, Offer())  # what nobody could look at is not used
            self._note(server, (f"what it offers could not be admitted: {display(str(error), 300)}",))
        except Exception:
            self._put(server, Offer())
            log.exception("! listing %s failed", display(server, 60))
        finally:
            if self._listing.get(server) is me:  # and not one that came after it was cancelled
                del self._listing[server]

    def _put(self, server: str, offer: Offer) -> None:
        if self._catalogue.put(server, offer):
            self._changed(server)

    def _note(self, server: str, notes: tuple[str, ...]) -> None:
        """Each as long as it is news."""
        before, self._told[server] = self._told.get(server, frozenset()), frozenset(notes)
        for note in notes:
            if note not in before:
                self._tell(server, note)
