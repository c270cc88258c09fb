"""How long a tool may work, and how many calls of it at once. A tool without a bound is called as if this file was not.

What is over a bound is told to the model (`isError`), who can wait, or ask for less.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from time import monotonic
from typing import Any

import msgspec

from ...wire.errors import LocalError, ToolError
from ...wire.exchange import Exchange
from ...wire.json.lenient import is_number
from .invoke import Caller

__all__ = ["Concurrency", "Gate", "bounded", "check_seconds", "gate_of"]

_LONGEST = 7 * 24 * 3600.0


class Concurrency(msgspec.Struct, frozen=True):
    """How many calls run at once, and how many more wait for their turn; a further one is refused."""

    running: int
    waiting: int = 100


def gate_of(concurrency: Concurrency | int | None) -> Gate | None:
    """None where nothing is bounded; a mistake of the author's is told to them."""
    if concurrency is None:
        return None
    bound = Concurrency(concurrency) if isinstance(concurrency, int) else concurrency
    if bound.running < 1 or bound.waiting < 0:
        raise LocalError(f"concurrency={concurrency!r}: at least one call must run, and none less than none can wait")
    return Gate(bound)


def check_seconds(seconds: float | None) -> None:
    if seconds is not None and not (is_number(seconds) and 0 < seconds <= _LONGEST):
        raise LocalError(f"timeout={seconds!r}: give seconds, more than none and at most a week ({_LONGEST:.0f})")


def bounded(call: Caller, name: str, *, timeout: float | None, gates: list[Gate]) -> Caller:
    """`call` within these bounds: the gates from the inner to the outer one, then the time that it works."""
    if timeout is not None:
        call = _timed(call, name, timeout)
    for gate in gates:
        call = _gated(call, name, gate)
    return call


# --- time -----------------------------------------------------------------------------------------


class _Timer:
    """The time of one run. `exchange.deadline` shows it; questions stop it."""

    __slots__ = ("_left", "_loop", "_open", "_scope", "deadline")

    def __init__(self, scope: asyncio.Timeout, seconds: float) -> None:
        self._scope = scope
        self._loop = asyncio.get_running_loop()
        self._open = 0
        self._left = seconds
        self.deadline = monotonic() + seconds

    def pause(self) -> None:
        self._open += 1
        when = self._scope.when()
        if self._open == 1 and when is not None and not self._scope.expired():
            self._left = when - self._loop.time()
            self._reschedule(None)

    def resume(self) -> None:
        self._open -= 1
        if not self._open and not self._scope.expired():
            self.deadline = monotonic() + self._left
            self._reschedule(self._loop.time() + self._left)

    def _reschedule(self, when: float | None) -> None:
        try:
            self._scope.reschedule(when)
        except RuntimeError:
            pass  # the run is over: a task that it left behind asks in vain


def _timed(call: Caller, name: str, seconds: float) -> Caller:
    async def timed(arguments: dict[str, Any], exchange: Exchange) -> Any:
        scope = asyncio.timeout(seconds)
        try:
            async with scope:
                exchange.timer = _Timer(scope, seconds)
                value = await call(arguments, exchange)
        except TimeoutError:
            if not scope.expired():
                raise  # the author's own
        if scope.expired():  # also for one that swallows its cancellation: what it returns then is dropped
            raise ToolError(f"The tool {name} was stopped: it took longer than {seconds:g} s")
        return value  # pyright: ignore[reportPossiblyUnboundVariable]

    return timed


# --- number ---------------------------------------------------------------------------------------


class Gate:
    """Lets so many through at once. Whoever leaves hands the place to the one that waits longest, on any loop."""

    def __init__(self, bound: Concurrency) -> None:
        self.bound = bound
        self.running = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._lock = threading.Lock()  # one server may be served by several loops

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    async def enter(self) -> bool:
        """True inside; False: too many wait already."""
        with self._lock:
            if self.running < self.bound.running:
                self.running += 1
                return True
            if len(self._waiting) >= self.bound.waiting:
                return False
            place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            self._give_up(place)
            raise
        return True

    def _give_up(self, place: asyncio.Future[None]) -> None:
        with self._lock:
            try:
                self._waiting.remove(place)
                return
            except ValueError:
                pass  # it was taken out to be let in
        if not place.cancelled():
            self.leave()  # let in and cancelled in one turn: the place is free again

    def leave(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self.running -= 1
                    return
                place = self._waiting.popleft()
            try:
                place.get_loop().call_soon_threadsafe(self._let_in, place)
                return
            except RuntimeError:
                continue  # its loop is closed: the next one

    def _let_in(self, place: asyncio.Future[None]) -> None:
        if place.cancelled():
            self.leave()
        else:
            place.set_result(None)


def _gated(call: Caller, name: str, gate: Gate) -> Caller:
    async def gated(arguments: dict[str, Any], exchange: Exchange) -> Any:
        if not await gate.enter():
            told = f"{gate.bound.running} calls are running and {gate.bound.waiting} are waiting"
            raise ToolError(f"The tool {name} is busy: {told}. Try again later")
        try:
            return await call(arguments, exchange)
        finally:
            gate.leave()

    return gated
