"""A channel of lines over two file descriptors: stdio's framing, for any reliable pair of byte streams."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ...wire.channel import Receiver
from ...wire.errors import ConnectionClosed, ConnectionEnded, ConnectionLost, NotOpen, PeerClosed
from ...wire.limits import DEFAULT_LIMITS, Limits
from ...wire.line_framing import LineFramer, Oversized
from .fd_streams import FdReader, FdWriter

__all__ = ["LineChannel"]

_TOGETHER = 32  # lines that are worked on before their answers are written
_FLUSH_WITHIN = 2.0  # seconds that a close waits for the peer to take what was said last


class LineChannel:
    """Newline-delimited messages. Owns both descriptors.

    With `on_eof` the end of input does not end the channel: a server may still answer what it has heard. With
    `on_broken` neither does a write that fails: what the peer said before it went can still be read.
    """

    def __init__(
        self,
        read_fd: int,
        write_fd: int,
        limits: Limits = DEFAULT_LIMITS,
        *,
        on_eof: Callable[[], None] | None = None,
        on_broken: Callable[[OSError], None] | None = None,
    ) -> None:
        self._fds = (read_fd, write_fd)
        self._limits = limits
        self._on_eof = on_eof
        self._on_broken = on_broken
        self._lost = False
        self._framer = LineFramer(limits.message_bytes)
        self._receiver: Receiver | None = None
        self._reader: FdReader | None = None
        self._writer: FdWriter | None = None

    async def open(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._writer = FdWriter(self._fds[1], self._broken)
        self._reader = FdReader(self._fds[0], self._read, self._eof)
        self._reader.start()

    def _read(self, chunk: bytes) -> None:
        """What is answered at once leaves in the same turn, many together, but the first need not wait for the last."""
        writer, receiver = self._writer, self._receiver
        assert writer is not None and receiver is not None
        lines = self._framer.feed(chunk)
        writer.hold()
        try:
            for first in range(0, len(lines), _TOGETHER):
                for line in lines[first : first + _TOGETHER]:
                    if type(line) is Oversized:
                        receiver.oversized(line.beginning, line.size)
                    elif type(line) is bytes and line and not line.isspace():
                        receiver.received(line)
                writer.flush()
        finally:
            writer.release()

    def _eof(self) -> None:
        self._read(b"\n")  # completes the last line of a peer that does not end its lines
        if self._on_eof is not None:
            self._on_eof()
        else:
            self.lose(PeerClosed("the peer closed the stream"))

    def _broken(self, error: OSError) -> None:
        if self._on_broken is not None:
            self._on_broken(error)
            return
        self.lose(ConnectionLost(f"writing to the peer failed: {error.strerror or error}"))

    def lose(self, error: ConnectionEnded) -> None:
        """The channel is gone; close what is left of it and say so."""
        if self._reader is not None:
            self._reader.close()
        if self._receiver is not None and not self._lost:
            self._lost = True
            self._receiver.ended(error)
        if self._writer is not None:
            self._writer.close()

    def send(self, message: bytes) -> int | None:
        writer = self._writer
        if writer is None:
            raise NotOpen("the channel is not open")
        return writer.write(message + b"\n")

    @property
    def delivered(self) -> int | None:
        return self._writer.written if self._writer else 0

    @property
    def backlog(self) -> int:
        return self._writer.backlog if self._writer else 0

    @property
    def is_unread(self) -> bool:
        """True where it is known that the peer has not read anything yet."""
        return self._writer is not None and self._writer.is_unread

    async def drain(self) -> None:
        if self._writer is not None:
            await self._writer.drain(self._limits.pressure_bytes // 2)

    def flush(self) -> None:
        if self._writer is not None:
            self._writer.flush()

    async def finish(self) -> None:
        """Wait, within bounds, until the peer has taken everything."""
        if self._writer is not None and self._writer.backlog:
            try:
                async with asyncio.timeout(_FLUSH_WITHIN):
                    await self._writer.drain()
            except TimeoutError:
                pass

    def read_rest(self) -> None:
        if self._reader is not None:
            self._reader.read_rest()

    def close_input(self) -> None:
        """Tell the peer that nothing more will come (stdin of a child)."""
        if self._writer is not None:
            self._writer.close()

    async def close(self) -> None:
        await self.finish()
        self.lose(ConnectionClosed("the connection was closed"))
