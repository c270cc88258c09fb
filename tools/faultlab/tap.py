"""A channel that watches what passes: no answer may follow a cancellation. And a raw client on top of any channel."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from interlock.wire.channel import Channel, Receiver
from interlock.wire.errors import ConnectionEnded

from .frames import CANCELLED
from .lab import Problems

__all__ = ["Tap", "RawClient"]


class Tap:
    """Between a connection and its carrier.

    Where delivery is a plain call (`exact`), no answer at all may come after a cancellation was sent. Over a pipe an
    answer may cross it on the way; none may come once a later request was answered (`mark` before, `settle` after).
    """

    def __init__(self, channel: Channel, problems: Problems, *, exact: bool) -> None:
        self._channel = channel
        self._problems = problems
        self._exact = exact
        self._receiver: Receiver | None = None
        self.cancelled: set[Any] = set()
        self._settled: set[Any] = set()
        self._answered: set[Any] = set()
        self.crossed = 0

    def mark(self) -> set[Any]:
        return set(self.cancelled)

    def settle(self, marked: set[Any]) -> None:
        self._settled |= marked

    # what a connection calls
    async def open(self, receiver: Receiver) -> None:
        self._receiver = receiver
        await self._channel.open(self)

    def send(self, message: bytes) -> int | None:
        if CANCELLED.encode() in message:
            self.cancelled.add(json.loads(message)["params"]["requestId"])
        return self._channel.send(message)

    @property
    def delivered(self) -> int | None:
        return self._channel.delivered

    @property
    def backlog(self) -> int:
        return self._channel.backlog

    async def drain(self) -> None:
        await self._channel.drain()

    async def close(self) -> None:
        await self._channel.close()

    # what the carrier calls
    def received(self, message: bytes) -> None:
        assert self._receiver is not None
        frame = json.loads(message)
        if "method" not in frame:
            self._judge(frame.get("id"))
        self._receiver.received(message)

    def _judge(self, id: Any) -> None:
        if id in self._answered:
            self._problems.add(f"request {id} was answered twice")
        self._answered.add(id)
        if id in self._settled or (self._exact and id in self.cancelled):
            self._problems.add(f"request {id} was answered after it had been cancelled")
        elif id in self.cancelled:
            self.crossed += 1

    def oversized(self, beginning: bytes, size: int) -> None:
        self._problems.add(f"a message of {size} bytes")

    def ended(self, error: ConnectionEnded) -> None:
        assert self._receiver is not None
        self._receiver.ended(error)


class RawClient:
    """Sends bytes, keeps who waits for an answer. No Client of ours is involved."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self.waiting: dict[Any, asyncio.Future[dict[str, Any]]] = {}

    async def open(self) -> None:
        await self._channel.open(self)

    def send(self, line: bytes) -> None:
        self._channel.send(line)

    def ask(self, line: bytes) -> asyncio.Future[dict[str, Any]]:
        """Send a request; the future gets the whole answer."""
        answer = self.waiting[json.loads(line)["id"]] = asyncio.get_running_loop().create_future()
        self.send(line)
        return answer

    def received(self, message: bytes) -> None:
        frame = json.loads(message)
        waiter = self.waiting.pop(frame.get("id"), None)
        if waiter is not None and not waiter.done():
            waiter.set_result(frame)

    def oversized(self, beginning: bytes, size: int) -> None:
        """The tap tells it."""

    def ended(self, error: ConnectionEnded) -> None:
        for waiter in self.waiting.values():
            if not waiter.done():
                waiter.set_exception(error)

    async def close(self) -> None:
        self.waiting.clear()
        await self._channel.close()
