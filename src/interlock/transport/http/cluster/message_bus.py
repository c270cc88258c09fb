"""The other processes that serve the same endpoint: who they are, whether they live, and how to tell them something.

Each worker has a number of its own that no other ever had, a lease that it renews while it lives (leases.py), and an
inbox. What concerns all goes into one stream that all of them read. Both are streams of a shared store
(state/store.py): what was sent is there in order, and its sender knows so.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable
from itertools import count

import msgspec

from ....state.store import State
from ....wire.errors import EventsGone, LocalError, NotOpen, StoreError
from .leases import LeaseMonitor

__all__ = ["UNUSABLE", "Colleagues", "Mail", "worker_of"]

log = logging.getLogger("interlock.http")
UNUSABLE = (StoreError, NotOpen)
"""What a store raises that cannot do its work, or is closed already."""
_COUNTER_BITS = 32  # below a worker's number, in the names it gives: together they stay below 2**53, for JavaScript
_WORKERS = 1 << 20  # numbers before they begin again
_ALL = 0
_SIGNS = 4  # of life, in the time after which a worker without any counts as dead
_LEASE_TTL = 86_400.0  # seconds after which the store forgets the lease of a worker that no other has looked for
_KEPT = 60.0  # seconds that the inbox of a dead worker is there; a living one lengthens them
_LETTER = 1024  # bytes of a message's data; longer data lies beside it
_AGAIN = 0.5  # seconds after which a store that failed is asked again


class Mail(msgspec.Struct, omit_defaults=True, frozen=True):
    """What one worker tells another, or all."""

    kind: str
    session: str = ""
    data: bytes = b""
    number: int = 0
    sender: int = 0
    version: int = 0
    """Of the session's record, which is what this is about."""
    parcel: str = ""
    """Where the data lies, if it is too long for a letter."""


_mails = msgspec.msgpack.Decoder(Mail)


def worker_of(name: int | str | None) -> int:
    """The worker that gave this name or id; 0 if none did."""
    return name >> _COUNTER_BITS if isinstance(name, int) and 0 < name < _WORKERS << _COUNTER_BITS else 0


class Colleagues:
    """All workers of one `space` of a store, seen by one of them."""

    def __init__(
        self,
        state: State,
        space: str,
        lease: float,
        deliver: Callable[[Mail], Awaitable[None]],
        on_lapse: Callable[[], object] | None = None,
        on_renewal: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`on_lapse` is called when this worker has its lease back after it did not renew it in time, `on_renewal`
        after every renewal, and when messages of others were missed."""
        self._state = state
        self._space = space
        self._lease = lease
        self._monitor = LeaseMonitor(lease)
        self._deliver = deliver
        self._on_lapse = on_lapse
        self._on_renewal = on_renewal
        self.number = 0
        self._names = count(1)
        self._signed = 0.0  # the loop's time at which its last renewal that succeeded began
        self._tasks: list[asyncio.Task[None]] = []

    # --- its own life -----------------------------------------------------------------------------

    async def join(self) -> None:
        """Take a number, and read from now on what is sent to it and to all."""
        self._signed = asyncio.get_running_loop().time()
        self.number = await self._take_number()
        await self._append(self.number, Mail("hello"))  # its inbox begins
        begin = await self._state.last(self._stream(_ALL))
        self._tasks = [
            asyncio.create_task(self._live()),
            asyncio.create_task(self._read(_ALL, begin)),
            asyncio.create_task(self._read(self.number, 0)),
        ]

    async def leave(self) -> None:
        """From now on others see that it is gone."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
            await self._state.delete(self._sign_of(self.number))
            await self._state.drop(self._stream(self.number))

    async def _take_number(self) -> int:
        """The next one that is free, with its lease: the numbers begin again some day, and then some are in use."""
        key = f"{self._space}/workers"
        while True:
            entry = await self._state.get(key)
            number = 1 if entry is None else int(entry.value) % (_WORKERS - 1) + 1
            version = 0 if entry is None else entry.version
            taken = await self._state.put(key, b"%d" % number, until=math.inf, expect=version)
            if taken and await self._renew(number, expect=0):
                return number

    async def _live(self) -> None:
        while True:
            await asyncio.sleep(self._lease / _SIGNS)
            try:
                await self._sign()
            except NotOpen:
                return  # the store was closed under it
            except StoreError as error:
                log.warning("! worker %d could not say that it lives: %s", self.number, error)
                continue
            await self._look_for_missed()

    async def _look_for_missed(self) -> None:
        try:
            if self._on_renewal is not None:
                await self._on_renewal()
        except UNUSABLE as error:
            log.warning("! worker %d could not look for what it missed: %s", self.number, error)
        except Exception:
            log.exception("! worker %d could not look for what it missed", self.number)

    async def _sign(self) -> None:
        begun, gap = asyncio.get_running_loop().time(), self._gap()
        if gap >= self._lease:
            self._monitor.pause()
        await self._renew(self.number)
        await self._state.append(self._stream(self.number), [], until=time.time() + _KEPT)
        self._signed = begun
        if gap >= self._lease:
            log.warning(
                "! worker %d did not renew its lease for %.1f s (limit %g s): calls that others have reported as lost "
                "are cancelled here. If its store did not fail, run what blocks the event loop in a thread, or raise "
                "sessions.lease",
                *(self.number, gap, self._lease),
            )
            if self._on_lapse is not None:
                self._on_lapse()

    async def _renew(self, number: int, expect: int | None = None) -> int:
        until = time.time() + _LEASE_TTL
        return await self._state.put(self._sign_of(number), self._monitor.renewal(), until=until, expect=expect)

    def _gap(self) -> float:
        return asyncio.get_running_loop().time() - self._signed

    def next_name(self, *, odd: bool = False) -> int:
        """A name that no worker gives a second time; `worker_of` finds who gave it."""
        return self.first_name + 2 * next(self._names) + odd

    @property
    def first_name(self) -> int:
        return self.number << _COUNTER_BITS

    # --- the others -------------------------------------------------------------------------------

    @property
    def lease(self) -> float:
        """Seconds after which a worker of which nothing was heard counts as dead."""
        return self._lease

    @property
    def is_seen(self) -> bool:
        """Could it renew its lease? Else others take it for dead, and nothing that is to be kept can be kept."""
        return self._gap() < self._lease

    async def alive(self, number: int) -> bool:
        """A lease that has expired is deleted, unless it was renewed in between: so all agree that its worker is gone.

        A worker that did not renew its own lease stood still, and judges no other before it knows better."""
        if number == self.number:
            return True
        key = self._sign_of(number)
        lease = await self._state.get(key)
        if lease is None:
            self._monitor.forget(number)
            return False
        if not self.is_seen or not self._monitor.is_expired(number, lease):
            return True
        self._monitor.forget(number)
        return not await self._state.delete(key, expect=lease.version)

    async def send(self, to: int, mail: Mail, *, late: bool = False) -> bool:
        """False: there is no such worker, or not any more. With `late` the mail is left in its inbox all the same, if
        there is one: a worker that stands still reads it when it goes on."""
        if to == 0:
            return False
        alive = await self.alive(to)
        if alive or (late and await self._state.last(self._stream(to))):
            await self._append(to, await self._packed(mail))
        return alive

    async def _packed(self, mail: Mail) -> Mail:
        """An inbox is bounded, and its oldest letters go: long ones of one session must not push out another's."""
        if len(mail.data) <= _LETTER:
            return mail
        name = f"{self._space}/parcel/{self.next_name()}"
        await self._state.append(name, [mail.data], until=time.time() + _KEPT)
        return msgspec.structs.replace(mail, data=b"", parcel=name)

    async def _unpacked(self, mail: Mail) -> Mail:
        if not mail.parcel:
            return mail
        events = await self._state.read(mail.parcel, 0)
        await self._state.drop(mail.parcel)
        if not events:
            raise LocalError(f"the data of a {mail.kind!r} is not there any more")
        return msgspec.structs.replace(mail, data=events[0].data, parcel="")

    async def tell_all(self, mail: Mail) -> None:
        """All, this one included, read it in the same order. It has to be short: all of them read the same letter."""
        await self._append(_ALL, mail)

    async def _append(self, to: int, mail: Mail) -> None:
        until = math.inf if to == _ALL else time.time() + _KEPT  # one that ended would begin with other ids
        signed = msgspec.structs.replace(mail, sender=self.number)
        await self._state.append(self._stream(to), [msgspec.msgpack.encode(signed)], until=until)

    # --- reading ----------------------------------------------------------------------------------

    async def _read(self, to: int, position: int) -> None:
        stream, missed = self._stream(to), False
        while True:
            try:
                if missed:
                    position, missed = await self._state.last(stream), False
                await self._state.wait(stream, position, seconds=_KEPT)
                for event in await self._state.read(stream, position):
                    position = event.id
                    await self._take(event.data)
                if to != _ALL:
                    await self._state.trim(stream, position)
            except EventsGone:  # it stood still for longer than messages are kept: others took it for dead
                log.warning("! worker %d has missed messages of others", self.number)
                missed = True
                await self._look_for_missed()
            except NotOpen:
                return
            except StoreError as error:
                log.warning("! worker %d could not read its messages: %s", self.number, error)
                await asyncio.sleep(_AGAIN)

    async def _take(self, data: bytes) -> None:
        try:
            await self._deliver(await self._unpacked(_mails.decode(data)))
        except (LocalError, msgspec.DecodeError) as error:
            log.warning("! a message of another worker was dropped: %s", error)
        except Exception:
            log.exception("! a message of another worker was dropped")

    def _stream(self, number: int) -> str:
        return f"{self._space}/mail/{number}"

    def _sign_of(self, number: int) -> str:
        return f"{self._space}/worker/{number}"
