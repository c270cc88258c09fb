"""The servers of a host, one by one: started, watched, stopped when nobody needs them, and what became of each.

A member never raises because its server does: it has a state that can be asked for and is told of, and a cause. What
is called through it waits for a start that is under way and fails at once where there is nobody to call.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from random import random
from typing import Any, Literal

import msgspec

from ...auth.client.providers import Plan
from ...client.client import Client
from ...client.config.entries import ServerEntry
from ...client.subscriptions import Change
from ...client.supervisor import StateChange, Supervision, is_hopeless
from ...protocol.client.probe import Verdicts
from ...wire.channel import Patience
from ...wire.errors import CallTimeout, InterlockError, LocalError, SpawnFailed
from ...wire.escaping import display
from ..gate.action import Denied
from ..launch.launch import Launch, bound, check_program, launch_of, target_in

__all__ = ["Hooks", "Member", "MemberChange", "Seat", "State", "Unavailable", "member_in"]

log = logging.getLogger("interlock.host")
State = Literal["waiting", "starting", "ready", "recovering", "idle", "failed", "refused", "stopped", "removed"]
"""`waiting` for its turn or for leave, `refused` by the user or the policy, `idle` until somebody calls it, `removed`
for good."""
_ATTEMPTS = 3  # to connect to a URL for the first time; later its connection is supervised (docs/supervision.md)
_FIRST_PAUSE = 1.0  # seconds before the second attempt, four times as many before each further one
_TURN_SECONDS = 5.0  # that one start may keep others from beginning
_RESTART = "start it with host.restart(server)"
_HINTS: dict[str, str] = {"failed": _RESTART, "stopped": _RESTART, "removed": "add it with host.add(server, …)"}
_OF_CLIENT: dict[str, State] = {"ready": "ready", "degraded": "ready", "recovering": "recovering", "failed": "failed"}


class Seat(msgspec.Struct, frozen=True):
    """One server of a host, with more than where it is."""

    target: Any
    """Whatever a `Client` takes."""
    headers: Mapping[str, str] | None = None
    auth: Plan | None = None
    allowed_hosts: tuple[str, ...] = ()
    revision: str | tuple[str, ...] | None = None
    start_seconds: float = 30.0
    """For one attempt to connect, from its turn on."""
    idle_seconds: float | None = None
    """A program that nobody called for so long is stopped, and started again by the next call. Only for one that keeps
    nothing between calls that matters; None: it stays."""
    timeout: float | Patience = Patience()
    supervision: Supervision = Supervision()


class MemberChange(msgspec.Struct, frozen=True):
    """What a host is told of a member."""

    server: str
    state: State
    before: State
    cause: InterlockError | None = None


class Unavailable(LocalError):
    """The server is not there. `state` says how it stands, `__cause__` why."""

    def __init__(self, server: str, state: State, cause: InterlockError | None) -> None:
        because = f": {display(cause.summarize(), 600)}" if cause is not None else ""
        super().__init__(f"the server {display(server, 60)!r} is {state}{because}")
        self.server, self.state = server, state
        self.hint = _HINTS.get(state)


class Hooks(msgspec.Struct, frozen=True, kw_only=True):
    """What a member needs of its host."""

    approve: Callable[[Launch], Awaitable[None]]
    """Raises `Denied` where there is no leave."""
    answers: Callable[[str], Mapping[str, Any]]
    """How its client answers what the server asks: keyword arguments of `Client`."""
    told: Callable[[MemberChange], None]
    changed: Callable[[str, Change], None]
    """The server says that a list of its is another one now."""
    turns: asyncio.Semaphore
    """How many may begin at once."""
    busy: Callable[[str], bool] = lambda server: False
    """Is the host itself in the middle of something with it?"""
    verdicts: Verdicts | None = None
    """What is known about the eras of servers; None: what this process found out."""


class Member:
    """One server. All of it happens on the loop of its host. `find` gives its seat, and may fail."""

    def __init__(self, name: str, find: Callable[[], Seat], hooks: Hooks) -> None:
        self.name = name
        self.state: State = "waiting"
        self.cause: InterlockError | None = None
        self.launch: Launch | None = None
        """What was approved last."""
        self.starts = 0
        """How often it was begun to be started."""
        self._find, self._hooks = find, hooks
        self._seat: Seat | None = None
        self.client: Client | None = None
        """As long as there is one: also while its connection is being brought back."""
        self._starting: asyncio.Task[None] | None = None
        self._approved = ""  # the digest of what was approved for the start that is under way
        self._closing: asyncio.Task[None] | None = None
        self._stirred = asyncio.Event()  # another one after every change
        self._active = 0
        self._used_at = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def __repr__(self) -> str:
        return f"<Member {display(self.name, 60)}: {self.state}>"

    # --- for the host -----------------------------------------------------------------------------

    def begin(self) -> None:
        """Start it in the background, unless it is up or on its way, or gone for good."""
        if self._starting is None and self.client is None and self.state != "removed":
            self._to("waiting")
            self._starting = asyncio.get_running_loop().create_task(self._start())
            self._starting.add_done_callback(self._began)

    async def settled(self) -> None:
        """Wait until it is known how the first attempt went."""
        while self.state in ("waiting", "starting"):
            await self._stirred.wait()

    async def stop(self) -> None:
        """End it and all it started, for good or until `restart`."""
        self._to("stopped")
        await self._end()

    def retire(self) -> None:
        """It leaves the host: nothing is begun with it any more, and nothing of it is heard. `stop` ends the rest."""
        self._to("removed")

    @property
    def start_seconds(self) -> float:
        """For one attempt to connect, and for listing what it has."""
        return self._seat.start_seconds if self._seat is not None else Seat(None).start_seconds

    def meant(self) -> object:
        """What is started or connected to, to be compared with that of another: as it was approved last, else as its
        configuration says now. What lives in this process is itself."""
        launch = self.launch
        if launch is None:
            seat = self._find()
            target = target_in(seat.target)
            launch = launch_of(self.name, target, seat.headers)
            if launch is None:
                return target
        return launch.digest

    # --- for calls --------------------------------------------------------------------------------

    async def connected(self, patience: Patience | None = None) -> Client:
        """Its client, with a connection. One that is idle is started; one that is starting, or whose connection is
        being brought back, is waited for, as long as a call may wait."""
        if self.state == "idle":
            self.begin()
        if self._is_coming():
            await self._wait(patience or Patience())
        if self.client is None or self.state != "ready":
            raise Unavailable(self.name, self.state, self.cause) from self.cause
        return self.client

    def _is_coming(self) -> bool:
        return self.state in ("waiting", "starting") or (self.state == "recovering" and self.client is not None)

    async def _wait(self, patience: Patience) -> None:
        seconds = min((each for each in (patience.idle, patience.total) if each is not None), default=None)
        try:
            async with asyncio.timeout(seconds):
                while self._is_coming():
                    await self._stirred.wait()
        except TimeoutError:
            raise CallTimeout(f"waiting for {display(self.name, 60)!r}", seconds or 0.0, "connect") from self.cause

    def enter(self) -> None:
        """A call begins: it is not stopped for idleness before the last has ended."""
        self._active += 1

    def leave(self) -> None:
        self._active -= 1
        if self._timer is not None:  # somebody watches how long it is idle
            self._used_at = asyncio.get_running_loop().time()

    # --- starting ---------------------------------------------------------------------------------

    async def _start(self) -> None:
        self._approved = ""
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                await self._attempt()
            except Denied as denied:
                self._to("refused", denied)
            except InterlockError as error:
                # The client has started a program a second time already where that could help.
                is_program = self.launch is not None and bool(self.launch.command)
                tried_enough = (
                    is_hopeless(error) or is_program or isinstance(error, SpawnFailed) or attempt == _ATTEMPTS
                )
                self._to("failed" if tried_enough else "recovering", error)
            if self.client is not None or self.state != "recovering":
                return
            await asyncio.sleep(_FIRST_PAUSE * 4 ** (attempt - 1) * (0.5 + random() / 2))

    def _began(self, task: asyncio.Task[None]) -> None:
        self._starting = None
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("! starting %s failed", display(self.name, 60), exc_info=error)
            self._to("failed", LocalError(f"starting it failed: {error!r:.200}"))

    async def _attempt(self) -> None:
        if self._closing is not None:
            await asyncio.wait([self._closing])  # of the process before: there are never two
        self._seat = seat = self._find()
        target = target_in(seat.target)
        if isinstance(target, ServerEntry) and target.disabled:
            self._to("stopped")  # its file says so
            return
        launch = launch_of(self.name, target, seat.headers)
        if launch is not None and launch.digest != self._approved:  # one yes is for all attempts of one start
            check_program(launch)
            await self._hooks.approve(launch)
            self._approved = launch.digest
        self.launch = launch
        if launch is not None:
            target = bound(self.name, target, launch, seat.headers)
        client = self._client_of(target, seat)
        try:
            async with _Turn(self._hooks.turns):
                self._to("starting")
                self.starts += 1
                await client.open()
        except BaseException:
            await client.close()
            raise
        self._is_up(client, seat)

    def _client_of(self, target: Any, seat: Seat) -> Client:
        for_url = {"headers": seat.headers, "auth": seat.auth, "allowed_hosts": seat.allowed_hosts}
        options: dict[str, Any] = {name: value for name, value in for_url.items() if value}
        if self._hooks.verdicts is not None:
            options["verdicts"] = self._hooks.verdicts
        return Client(
            target,
            revision=seat.revision,
            timeout=seat.timeout,
            connect_timeout=seat.start_seconds,
            supervise=msgspec.structs.replace(seat.supervision, retries=0),
            on_state=self._stands,
            on_change=self._lists_changed,
            **options,
            **self._hooks.answers(self.name),
        )

    def _is_up(self, client: Client, seat: Seat) -> None:
        self.client = client
        self._used_at = asyncio.get_running_loop().time()
        if seat.idle_seconds is not None and self.launch is not None and self.launch.command:
            self._watch(seat.idle_seconds)
        state = _OF_CLIENT.get(client.state or "ready", "ready")
        self._to(state)

    # --- while it lives ---------------------------------------------------------------------------

    def _stands(self, change: StateChange) -> None:
        state = _OF_CLIENT.get(change.state)
        if state is not None and self.client is not None:
            self._to(state, change.cause)
        if state == "failed" and self.client is not None:
            self._drop()  # the next start makes a new one, and asks for what changed

    def _lists_changed(self, change: Change) -> None:
        if self.state != "removed":  # by then the name may be another's
            self._hooks.changed(self.name, change)

    def _watch(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()

        def look() -> None:
            left = self._used_at + seconds - loop.time()
            if self.client is None:
                return
            if left <= 0 and not self._active and self.state == "ready" and not self._hooks.busy(self.name):
                self._to("idle")
                self._drop()
                return
            self._timer = loop.call_later(max(left, seconds / 4), look)

        self._timer = loop.call_later(seconds, look)

    def _drop(self) -> None:
        """Its client goes, in the background."""
        client, self.client = self.client, None
        if client is not None:
            self._closing = asyncio.get_running_loop().create_task(self._close(client))

    async def _close(self, client: Client) -> None:
        try:
            await client.close()
        except InterlockError as error:
            log.warning("! closing %s failed: %s", display(self.name, 60), display(str(error), 200))

    async def _end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.wait([self._starting])
        self._drop()
        if self._closing is not None:
            await asyncio.wait([self._closing])

    def _to(self, state: State, cause: InterlockError | None = None) -> None:
        before = self.state
        if before == "removed" or (state == before and cause is self.cause):
            return
        self.state, self.cause = state, cause
        stirred, self._stirred = self._stirred, asyncio.Event()
        stirred.set()
        self._hooks.told(MemberChange(self.name, state, before, cause))


def member_in(members: Mapping[str, Member], server: str) -> Member:
    """The one of that name; raises who there is, where there is none."""
    if server not in members:
        names = ", ".join(display(each, 60) for each in [*members][:20]) or "none"
        raise LocalError(f"there is no server {display(server, 60)!r}; there are: {names}")
    return members[server]


class _Turn:
    """One of the places for those who begin. Who takes long gives it back before, so that the slow do not keep the
    others out."""

    def __init__(self, turns: asyncio.Semaphore) -> None:
        self._turns = turns
        self._timer: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> None:
        await self._turns.acquire()
        self._timer = asyncio.get_running_loop().call_later(_TURN_SECONDS, self._give_back)

    async def __aexit__(self, *error: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._give_back()

    def _give_back(self) -> None:
        if self._timer is not None:
            self._timer = None
            self._turns.release()
