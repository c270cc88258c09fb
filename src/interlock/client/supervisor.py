"""Keeps one connection alive: notices that it is gone, brings it back, and makes it what it was.

    connecting → ready ⇄ degraded → recovering → ready, or failed

Off unless it is asked for: it starts processes and sends pings on its own, and a client without it opens a lost
connection again at the next call anyway. What was lost under way is repeated only where that is safe (retry_policy.py).
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from random import random
from time import monotonic
from typing import Any, Literal

import msgspec

from ..protocol.client.base import ClientEdge
from ..protocol.client.stateless import rest_of
from ..wire.channel import Patience
from ..wire.errors import (
    AuthorizationFailed,
    CallTimeout,
    ConnectionEnded,
    ConnectionLost,
    HttpStatus,
    InterlockError,
    LocalError,
    NoCommonRevision,
    NotOpen,
    Refused,
    SpawnFailed,
)
from ..wire.escaping import display
from ..wire.exchange import Exchange, Peer, Result
from .callbacks import Answers
from .list_cache import CHANGE_OF
from .request import Calling
from .retry_policy import OutcomeUnknown, Repeats

__all__ = ["OnState", "State", "StateChange", "Supervision", "Supervisor", "is_hopeless"]

log = logging.getLogger("interlock.client")
State = Literal["connecting", "ready", "degraded", "recovering", "failed", "closed"]
_NO_ENTRY = (401, 403)  # statuses that do not get better by themselves


class Supervision(msgspec.Struct, frozen=True, kw_only=True):
    """How a connection is watched and brought back."""

    ping_every: float | None = 30.0
    """Seconds without a call after which the server is asked whether it lives. None: never."""
    ping_timeout: float = 10.0
    losses: int = 2
    """Unanswered pings in a row that mean: lost. From the first on the connection is degraded."""
    first_pause: float = 0.25
    """Seconds before the second attempt (the first is made at once); doubled for each further one."""
    longest_pause: float = 30.0
    """Where the doubling ends. Each pause is shortened by chance to between a half and all of it."""
    attempts: int = 10
    """In a row, after which the connection has failed."""
    settled: float = 60.0
    """Seconds it must have lasted for attempts to be counted from the beginning again."""
    retries: int = 3
    """How often one call is repeated, each time after the connection is back."""
    idempotent: tuple[str, ...] = ()
    """Tools that may run twice, by your word."""
    trust_hints: bool = False
    """May tools run twice by the server's word (`readOnlyHint`, `idempotentHint`), too?"""


class StateChange(msgspec.Struct, frozen=True):
    """What `on_state` is told."""

    state: State
    before: State
    cause: InterlockError | None = None
    """What led to it, where something did."""
    attempt: int = 0
    """While recovering: which one begins, after `pause` seconds."""
    pause: float = 0.0


OnState = Callable[[StateChange], None]


class Supervisor:
    """Of one client, on its loop. `ready` waits for its first connection, `open` makes a new one after `drop` has
    given the old one up, and `heard` is told news."""

    def __init__(
        self,
        rules: Supervision | bool,
        on_state: OnState | None,
        ready: Callable[[], Awaitable[ClientEdge]],
        open: Callable[[], Awaitable[ClientEdge]],
        drop: Callable[[ConnectionEnded], None],
        heard: Callable[[str, dict[str, Any]], None],
        *,
        me: Peer,
        answers: Answers,
    ) -> None:
        if inspect.iscoroutinefunction(on_state):
            raise LocalError("on_state= is told and not waited for: give a plain function")
        self._rules = rules = rules if isinstance(rules, Supervision) else Supervision()
        self._on_state = on_state
        self._ready, self._open, self._drop, self._heard = ready, open, drop, heard
        self._me, self._answers = me, answers
        self._repeats = Repeats(rules.idempotent, rules.trust_hints)
        self.state: State = "connecting"
        self._edge: ClientEdge | None = None
        self._cause: InterlockError | None = None
        self._task: asyncio.Task[None] | None = None
        self._stirred = asyncio.Event()
        self._settled = asyncio.Event()
        self._active = self._tries = 0
        self._ready_at = self._heard_at = 0.0
        self._clock: Callable[[], float] = monotonic  # until there is a connection, and then that of its loop

    # --- what the client tells --------------------------------------------------------------------

    def opened(self, edge: ClientEdge) -> None:
        """There is a connection. One that was brought back is made what it was before anybody uses it."""
        self._edge, self._clock = edge, asyncio.get_running_loop().time
        if self.state == "connecting":
            self._ready_at = self._heard_at = self._clock()
            self._to("recovering" if _is_over(edge) else "ready")
        elif self.state == "failed":
            self._tries = 0
            self._to("recovering")
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._watch())

    def lost(self, error: ConnectionEnded) -> None:
        """A connection ended; while one is being opened others may end, which say nothing."""
        if self.state in ("ready", "degraded") and self._edge is not None and _is_over(self._edge):
            self._to("recovering", error)

    async def close(self) -> None:
        self._to("closed")
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    # --- calls ------------------------------------------------------------------------------------

    async def edge(self, method: str, patience: Patience | None) -> ClientEdge:
        """The connection, as soon as it is of use again; what was not sent by then is not sent."""
        if self.state == "recovering":
            await self._until_settled(method, patience or Patience())
        if self.state == "closed":
            raise NotOpen("this client was closed")
        if self.state == "failed":
            cause = self._cause
            gone = ConnectionLost(f"{method}: the server was given up ({cause}); open() tries again")
            gone.sent = False
            raise gone from cause
        return self._edge if self._edge is not None and self.state != "connecting" else await self._ready()

    async def _until_settled(self, method: str, patience: Patience) -> None:
        seconds = min((each for each in (patience.idle, patience.total) if each is not None), default=None)
        try:
            async with asyncio.timeout(seconds):
                await self._settled.wait()
        except TimeoutError:
            raise CallTimeout(method, seconds or 0.0, "connect") from self._cause

    async def call(self, exchange: Exchange) -> Result:
        """Make a call, again if need be and if it is safe."""
        given, began, retries = exchange.patience, monotonic(), 0
        counted = int(exchange.method != "subscriptions/listen")  # which lasts, and says nothing for long
        self._active += counted
        try:
            while True:
                tried, edge = self._clock(), self._edge
                if edge is None or self.state != "ready":  # which it almost always is
                    edge = await self.edge(exchange.method, exchange.patience)
                try:
                    result = await edge(exchange)
                    self._heard_at = self._clock()
                    if self.state == "degraded":
                        self._to("ready")
                    self._repeats.learn(exchange.method, result)
                    return result
                except ConnectionEnded as ended:
                    if tried + self._rules.settled < self._clock():
                        retries = 0  # a call that lasts outlives more than one connection
                    self._decide(exchange, ended, retries)
                retries += 1
                exchange.patience = rest_of(given or Patience(), began, exchange.method)
        finally:
            self._active -= counted

    def _decide(self, exchange: Exchange, ended: ConnectionEnded, retries: int) -> None:
        """Returns if the call is to be repeated, and raises what its caller gets if not."""
        if self.state == "closed":
            raise ended
        if self.state in ("ready", "degraded"):
            self._to("recovering", ended)  # one request over HTTP failed: is there anybody?
        if not self._repeats.allows(exchange, ended):
            raise OutcomeUnknown(exchange.method, ended)
        if retries >= self._rules.retries:
            raise ended

    # --- watching ---------------------------------------------------------------------------------

    async def _watch(self) -> None:
        try:
            await self._keep()
        except Exception as error:  # a mistake of ours, or of a carrier: nobody may wait for what does not come
            log.exception("! supervision failed")
            self._to("failed", LocalError(f"supervision failed: {error!r:.200}"))

    async def _keep(self) -> None:
        lost = 0
        while self.state not in ("failed", "closed"):
            if self.state == "recovering":
                await self._recover()
                lost = 0
                continue
            await self._rest(lost)
            if self.state not in ("ready", "degraded") or (self.state == "ready" and self._is_busy()):
                continue
            error = await self._silence()
            lost = 0 if error is None else lost + 1
            if self.state not in ("ready", "degraded"):
                continue  # it ended meanwhile
            self._to("ready" if error is None else "degraded", error)
            if error is not None and lost >= self._rules.losses:
                self._give_up_connection(error)

    async def _rest(self, lost: int) -> None:
        every = self._rules.ping_every
        self._stirred.clear()
        try:
            async with asyncio.timeout(every if lost == 0 else 0):
                await self._stirred.wait()
        except TimeoutError:
            pass

    def _is_busy(self) -> bool:
        """While a call is in flight its own deadlines watch over it, and an answer is as good as a ping."""
        return self._active > 0 or self._clock() - self._heard_at < (self._rules.ping_every or 0.0) * 0.9

    def _asking(self, method: str, params: dict[str, Any], patience: Patience) -> Exchange:
        return Calling(method, params, self._me, patience, self._answers)

    async def _silence(self) -> InterlockError | None:
        """None: it lives. An error is a sign of life too, and so is any answer to somebody else."""
        asked = self._clock()
        error = await self._ping()
        return None if isinstance(error, Refused) or self._heard_at > asked else error

    async def _ping(self) -> InterlockError | None:
        edge = self._edge
        if edge is None:
            return None
        try:
            await edge(self._asking(edge.ping_method, {}, Patience(idle=None, total=self._rules.ping_timeout)))
        except InterlockError as error:
            return error
        self._heard_at = self._clock()
        return None

    def _give_up_connection(self, error: InterlockError) -> None:
        told = f"the server did not answer {self._rules.losses} pings: {display(str(error), 200)}"
        fail = getattr(self._edge.link, "fail", None) if self._edge is not None else None
        if fail is not None:
            fail(ConnectionLost(told))  # which leads back to `lost`
        self._to("recovering", error)

    # --- recovering -------------------------------------------------------------------------------

    async def _recover(self) -> None:
        if self._clock() - self._ready_at > self._rules.settled:
            self._tries = 0
        while self.state == "recovering":
            self._tries += 1
            if self._tries > self._rules.attempts:
                self._to("failed", self._cause)
                return
            pause = self._pause()
            self._tell(StateChange("recovering", "recovering", self._cause, self._tries, pause))
            await asyncio.sleep(pause)
            try:
                await self._attempt()
            except InterlockError as error:
                self._cause = error
                if is_hopeless(error):
                    self._to("failed", error)

    def _pause(self) -> float:
        if self._tries == 1:
            return 0.0
        whole = min(self._rules.first_pause * 2 ** min(self._tries - 2, 32), self._rules.longest_pause)
        return whole * (0.5 + random() / 2)

    async def _attempt(self) -> None:
        edge = self._edge
        if edge is not None and not _is_over(edge):
            edge = await self._still(edge)
        if edge is None or _is_over(edge):
            edge = await self._open()
            self._ready_at = self._clock()
        self._heard_at = self._clock()
        self._to("ready")
        for notice, kind in CHANGE_OF.items():
            if edge.offers(kind):
                self._heard(notice, {})  # it may have changed meanwhile

    async def _still(self, edge: ClientEdge) -> ClientEdge | None:
        """Over HTTP nothing ends by itself: is the server back? None: whatever is there now must be met anew."""
        error = await self._ping()
        if error is None:
            self._tries = 0  # it was there all the time
            return edge
        if _is_absence(error):
            raise error
        self._drop(ConnectionLost(f"the server is another one now: {display(str(error), 200)}"))
        return None

    # --- states -----------------------------------------------------------------------------------

    def _to(self, state: State, cause: InterlockError | None = None) -> None:
        before = self.state
        if before == state or before == "closed":
            return
        self.state, self._cause = state, cause
        if state in ("recovering", "connecting"):
            self._settled.clear()
        else:
            self._settled.set()
        self._stirred.set()
        self._tell(StateChange(state, before, cause))

    def _tell(self, change: StateChange) -> None:
        told = display(str(change.cause), 300) if change.cause is not None else "as it should be"
        log.info("= %s (was %s): %s", change.state, change.before, told)
        if self._on_state is None:
            return
        try:
            self._on_state(change)
        except Exception:
            log.exception("! on_state failed")


def _is_over(edge: ClientEdge) -> bool:
    return getattr(edge.link, "end", None) is not None


def _is_absence(error: InterlockError) -> bool:
    """Nobody answers, or somebody before the server says that it does not."""
    if isinstance(error, HttpStatus):
        return error.status >= 500 or error.status in (408, 425, 429, *_NO_ENTRY)
    return isinstance(error, ConnectionEnded | CallTimeout)


def is_hopeless(error: InterlockError) -> bool:
    """Trying again changes nothing: our own mistake, no revision in common, no right to enter."""
    if isinstance(error, HttpStatus):
        return error.status in _NO_ENTRY
    ours = isinstance(error, LocalError) and not isinstance(error, CallTimeout | SpawnFailed)
    return ours or isinstance(error, NoCommonRevision | AuthorizationFailed)
