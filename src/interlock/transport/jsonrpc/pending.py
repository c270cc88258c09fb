"""The calls we made and still wait for: one table, one timer, one way to fail them all."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec
from msgspec import UNSET

from ...wire.channel import Patience, Told
from ...wire.errors import CallTimeout, ConnectionEnded, InterlockError, LocalError, RemoteError
from ...wire.escaping import display
from ...wire.json.decoder import decoder
from ...wire.limits import DEFAULT_LIMITS, MIB
from ...wire.messages import Frame

__all__ = ["Call", "Calls", "progress_of"]

log = logging.getLogger("interlock.wire")
_MOST_HEARD = 65_536  # notifications of any kind that may wait; beyond it the call fails
_MOST_HEARD_BYTES = 64 * MIB  # of their params; beyond it the call fails, too
_FAILURES_LOGGED = 10  # of one call's listener: the peer decides how often it is called
_HELD = 64  # progress notifications that may wait for a slow listener; beyond it the oldest are dropped


class _Progress(msgspec.Struct):
    progressToken: int | str | None = None
    progress: Any = None


_progress = decoder(_Progress)


def progress_of(frame: Frame) -> int | str | None:
    """The token a progress notification names; None for a malformed one, which is ignored."""
    return _read_progress(frame).progressToken


def _read_progress(frame: Frame) -> _Progress:
    try:
        return _progress.decode(cast(bytes, frame.params))
    except (msgspec.DecodeError, UnicodeDecodeError, TypeError):
        return _Progress()


class Call:
    """One request of ours on its way: woken by its answer, by progress, or by the end."""

    __slots__ = (
        "_failures",
        "_held",
        "_interrupted",
        "_listening",
        "_wake",
        "cancellable",
        "heard",
        "id",
        "idle_until",
        "method",
        "outcome",
        "patience",
        "position",
        "progress",
        "told",
        "until",
    )

    def __init__(
        self, id: int, method: str, patience: Patience, told: Told | None, cancellable: bool, now: float
    ) -> None:
        self.id = id
        self.method = method
        self.patience = patience
        self.told = told
        self.cancellable = cancellable
        self.position: int | None = None
        self.until = now + patience.total if patience.total is not None else float("inf")
        self.idle_until = now + patience.idle if patience.idle is not None else float("inf")
        self.heard: deque[Frame] | None = None
        self.outcome: Frame | InterlockError | None = None
        self._wake: asyncio.Future[None] | None = None
        self._listening: asyncio.Task[Any] | None = None
        self._interrupted = False
        self._held = self._failures = 0
        self.progress = float("-inf")

    def with_token(self, params: Mapping[str, Any] | None, meta: Mapping[str, Any]) -> dict[str, Any]:
        """The params of the request, with this `_meta`: the id doubles as progress token."""
        return {**(params or {}), "_meta": {**meta, "progressToken": self.id}}

    @property
    def deadline(self) -> float:
        return min(self.until, self.idle_until)

    def alive(self, now: float) -> None:
        """A sign of life: the idle deadline moves, the total one does not."""
        if self.patience.idle is not None:
            self.idle_until = now + self.patience.idle

    def hear(self, frame: Frame) -> None:
        if self.told is not None and self.outcome is None:
            if self.heard is None:
                self.heard = deque()
            if len(self.heard) >= _HELD and frame.method == "notifications/progress":
                self._drop_oldest_progress()
            self.heard.append(frame)
            self._held += _size(frame)
            if len(self.heard) > _MOST_HEARD or self._held > _MOST_HEARD_BYTES:
                told = f"{_MOST_HEARD} notifications, or {_MOST_HEARD_BYTES} bytes of them,"
                self.settle(RemoteError(f"{self.method}: more than {told} nobody took yet"))
            self.wake()

    def _drop_oldest_progress(self) -> None:
        assert self.heard is not None
        for frame in self.heard:
            if frame.method == "notifications/progress":
                self.heard.remove(frame)
                self._held -= _size(frame)
                return

    def settle(self, outcome: Frame | InterlockError) -> None:
        if self.outcome is None:
            self.outcome = outcome
            self.wake()
            if (
                self._listening is not None
                and isinstance(outcome, InterlockError)
                and self._listening is not _current_task()
            ):
                self._interrupted = True
                self._listening.cancel()  # a listener that hangs must not hold the deadline

    def wake(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    async def answer(self) -> Frame:
        """Wait; what is told meanwhile is handled in the caller's own task, in order, unless the call has failed: a
        deadline is not kept waiting by a listener that takes its time with each of many notifications."""
        while True:
            while self.heard and not isinstance(self.outcome, InterlockError):
                frame = self.heard.popleft()
                self._held -= _size(frame)
                await self._handle(frame)
            if isinstance(self.outcome, InterlockError):
                self.heard = None
                raise self.outcome
            if self.outcome is not None:
                return self.outcome
            self._wake = asyncio.get_running_loop().create_future()
            await self._wake

    async def _handle(self, frame: Frame) -> None:
        assert self.told is not None
        task = self._listening = asyncio.current_task()
        try:
            handled = self.told(cast(str, frame.method), frame)
            if handled is not None:
                await handled
            if self._interrupted and task is not None:
                task.uncancel()  # the listener swallowed what was meant for it alone
        except asyncio.CancelledError:
            if not self._interrupted or (task is not None and task.uncancel() > 0):
                raise
        except Exception:
            self._failures += 1
            if self._failures <= _FAILURES_LOGGED:
                log.exception("! a listener failed on %r; the call goes on", display(cast(str, frame.method), 200))
        finally:
            self._listening = None


def _size(frame: Frame) -> int:
    return len(cast(bytes, frame.params)) if frame.params is not UNSET else 0


def _current_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


class Calls:
    """All calls of one connection, at most so many at once. A single timer stands at the earliest deadline."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        withdraw: Callable[[int, str, bool], None],
        most: int = DEFAULT_LIMITS.waiting,
        after: int = 0,
        owes: Callable[[], object] = bool,
    ) -> None:
        self._loop = loop
        self._withdraw = withdraw
        self._most = most
        self._owes = owes
        """Does the peer wait for an answer of ours? Then it is not silent: it may need that to go on."""
        self._last_id = after
        self.waiting: dict[int | str, Call] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = float("inf")

    def add(self, method: str, patience: Patience, told: Told | None, cancellable: bool) -> Call:
        """A new call with an id never used before on this connection."""
        if len(self.waiting) >= self._most:
            raise LocalError(f"{self._most} calls are waiting already: await some before making more")
        self._last_id += 1
        call = Call(self._last_id, method, patience, told, cancellable, self._loop.time())
        self.waiting[call.id] = call
        if call.deadline < self._timer_at:
            self._set_timer(call.deadline)
        return call

    def remove(self, call: Call) -> None:
        """The timer is left where it is: most calls are over before it rings, and the next one can use it."""
        self.waiting.pop(call.id, None)

    def resolve(self, frame: Frame) -> bool:
        """Hand an answer to its call. False: nobody asked (late, repeated or odd)."""
        id = frame.id
        call = self.waiting.pop(id, None) if isinstance(id, int | str) else None
        if call is None:
            return False
        call.settle(frame)
        return True

    def spoil(self, id: int | str, error: InterlockError) -> bool:
        """Fail the call of that id: what came for it is no answer. False: nobody waits for it."""
        call = self.waiting.pop(id, None)
        if call is not None:
            call.settle(error)
        return call is not None

    def move(self, id: int | str, seconds: float) -> None:
        """Both deadlines of that call, by so many seconds."""
        call = self.waiting.get(id)
        if call is not None:
            call.until += seconds
            call.idle_until += seconds
            if call.deadline < self._timer_at:
                self._set_timer(call.deadline)

    def all_alive(self) -> None:
        """The peer has what it waited for: whatever it owes us counts from now on."""
        now = self._loop.time()
        for call in self.waiting.values():
            call.alive(now)

    def progressed(self, token: int | str | None, frame: Frame) -> None:
        """Progress for one of our active tokens; others are ignored. Only what increases is a sign of life."""
        call = self.waiting.get(token) if token is not None else None
        if call is not None:
            value = _read_progress(frame).progress
            if isinstance(value, int | float) and value > call.progress:
                call.progress = value
                call.alive(self._loop.time())
            call.hear(frame)

    def told(self, id: int | str, frame: Frame) -> bool:
        call = self.waiting.get(id)
        if call is None:
            return False
        call.alive(self._loop.time())
        call.hear(frame)
        return True

    def fail(self, error: ConnectionEnded, delivered: int | None) -> None:
        calls, self.waiting = list(self.waiting.values()), {}
        for call in calls:
            call.settle(error.for_call(call.method, _was_sent(call.position, delivered)))
        if self._timer is not None:
            self._timer.cancel()

    def _set_timer(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = when
        self._timer = self._loop.call_at(when, self._expire) if when != float("inf") else None

    def _expire(self) -> None:
        now = self._loop.time()
        if self._owes():
            self.all_alive()
        for call in [call for call in self.waiting.values() if call.deadline <= now]:
            if self.waiting.pop(call.id, None) is None:
                continue  # telling the peer of the one before ended the connection
            total = call.until <= now
            seconds = cast(float, call.patience.total if total else call.patience.idle)
            call.settle(CallTimeout(call.method, seconds, "total" if total else "idle"))
            self._withdraw(call.id, "the deadline passed", call.cancellable)
        self._timer = None
        self._set_timer(min((call.deadline for call in self.waiting.values()), default=float("inf")))


def _was_sent(position: int | None, delivered: int | None) -> bool | None:
    """False only when provably no byte of the message left this process."""
    if position is None or delivered is None:
        return None
    return delivered > position
