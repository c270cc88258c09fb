"""Two ends in one process: every message is handed over as the bytes it would be on a wire."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from ..wire.channel import Receiver
from ..wire.errors import ConnectionClosed, ConnectionEnded, NotOpen, PeerClosed

__all__ = ["MemoryChannel", "memory_pair"]


class MemoryChannel:
    """One end. Delivery is a plain call: the receiver never blocks and never raises."""

    def __init__(self) -> None:
        self._other: MemoryChannel | None = None
        self._receiver: Receiver | None = None
        self._early: list[bytes] = []
        self._end: ConnectionEnded | None = None
        self.after_close: Callable[[], Awaitable[None]] | None = None
        """What has to end with it before `close` is over: the other end is in this process too."""

    async def open(self, receiver: Receiver) -> None:
        self.attach(receiver)

    def attach(self, receiver: Receiver) -> None:
        """Begin to deliver, at once and in order: nothing has to be connected here."""
        while self._early:
            receiver.received(self._early.pop(0))
        self._receiver = receiver
        if self._end is not None:
            self._tell_end()

    def send(self, message: bytes) -> int | None:
        if self._other is None:
            raise NotOpen("the memory channel is closed")
        self._other.deliver(message)
        return None

    def deliver(self, message: bytes) -> None:
        if self._receiver is not None:
            self._receiver.received(message)
        else:
            self._early.append(message)

    @property
    def delivered(self) -> int | None:
        return None

    @property
    def backlog(self) -> int:
        return 0

    async def drain(self) -> None:
        """Nothing ever waits here."""

    async def close(self) -> None:
        other, self._other = self._other, None
        self._finish(ConnectionClosed("the connection was closed"))
        if other is not None:
            other.lose()
        if self.after_close is not None:
            await self.after_close()

    def lose(self) -> None:
        """The other end is gone."""
        self._other = None
        self._finish(PeerClosed("the other end was closed"))

    def _finish(self, end: ConnectionEnded) -> None:
        if self._end is None:
            self._end = end
            self._tell_end()

    def _tell_end(self) -> None:
        if self._receiver is not None and self._end is not None:
            self._receiver.ended(self._end)


def memory_pair() -> tuple[MemoryChannel, MemoryChannel]:
    """Two connected ends."""
    near, far = MemoryChannel(), MemoryChannel()
    near._other, far._other = far, near  # pyright: ignore[reportPrivateUsage]
    return near, far
