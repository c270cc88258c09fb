"""A channel that writes down what passes through it, in both directions, byte for byte."""

from __future__ import annotations

from collections.abc import Callable

from ..wire.channel import Channel, Receiver
from ..wire.errors import ConnectionEnded
from .transcript import Transcript

__all__ = ["RecordingChannel", "recording"]


class RecordingChannel:
    """The client's end of a channel: what is sent is the client's, what is received the server's."""

    def __init__(self, channel: Channel, transcript: Transcript) -> None:
        self._channel, self._transcript = channel, transcript

    async def open(self, receiver: Receiver) -> None:
        await self._channel.open(_Listening(receiver, self._transcript))

    def send(self, message: bytes) -> int | None:
        self._transcript.add("client", message)
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


class _Listening:
    """Hands on what the other side says, after writing it down."""

    def __init__(self, receiver: Receiver, transcript: Transcript) -> None:
        self._receiver, self._transcript = receiver, transcript

    def received(self, message: bytes) -> None:
        self._transcript.add("server", message)
        self._receiver.received(message)

    def oversized(self, beginning: bytes, size: int) -> None:
        self._transcript.add("server", beginning)
        self._receiver.oversized(beginning, size)

    def ended(self, error: ConnectionEnded) -> None:
        self._receiver.ended(error)


def recording(make: Callable[[], Channel], transcript: Transcript) -> Callable[[], Channel]:
    """A target for a `Client` whose every frame goes into `transcript`; `make` gives a fresh channel each time."""
    return lambda: RecordingChannel(make(), transcript)
