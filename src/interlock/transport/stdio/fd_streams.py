"""File descriptors as streams of bytes on the event loop: read when there is something, write when there is room.

Pipes, sockets and the like are driven by the loop. What a selector refuses (regular files) or where it cannot watch
descriptors at all (Windows) is read by a thread and written directly.
"""

from __future__ import annotations

import asyncio
import os
import stat
import sys
import threading
from collections.abc import Callable

if sys.platform == "linux":
    import fcntl
    import termios

__all__ = ["FdReader", "FdWriter"]

_CHUNK = 256 * 1024
_MANY = 2048  # bytes at once: a peer that has much under way has written more while these were worked on
_TURN = 16 * 1024  # bytes after which the others on the loop get a turn
_REST = 16  # reads for what a dead writer left: a pipe holds 64 KiB, 1 MiB at the most


class FdReader:
    """Hands every chunk to `on_data`, then calls `on_end` once. Owns the descriptor."""

    def __init__(self, fd: int, on_data: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        self._fd = fd
        self._on_data = on_data
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._open = True
        self._watched = False

    def start(self) -> None:
        try:
            self._loop.add_reader(self._fd, self._readable)
        except (OSError, NotImplementedError):
            threading.Thread(target=self._read_in_thread, name="interlock-reader", daemon=True).start()
            return
        os.set_blocking(self._fd, False)
        self._watched = True

    def _readable(self) -> None:
        room = _TURN
        while room > 0:
            try:
                chunk = os.read(self._fd, _CHUNK)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                chunk = b""
            self._took(chunk)
            if len(chunk) < _MANY or not self._open or os.get_blocking(self._fd):
                return  # who shares our end, as a launcher does, may have made it wait: then only the loop knows
            room -= len(chunk)

    def _took(self, chunk: bytes) -> None:
        if not self._open:
            return
        if chunk:
            self._on_data(chunk)
        else:
            self.close()
            self._on_end()

    def _read_in_thread(self) -> None:
        while self._open:
            try:
                chunk = os.read(self._fd, _CHUNK)
            except OSError:
                chunk = b""
            try:
                self._loop.call_soon_threadsafe(self._took, chunk)
            except RuntimeError:
                return  # the loop is closed
            if not chunk:
                os.close(self._fd)
                return

    def read_rest(self) -> None:
        """Take what is there already, for a writer that is gone. Bounded: somebody else may go on writing."""
        for _ in range(_REST):
            if not self._open or not self._watched:
                return
            try:
                chunk = os.read(self._fd, _CHUNK)
            except OSError:
                return
            if not chunk:
                return
            self._on_data(chunk)

    def close(self) -> None:
        if not self._open:
            return
        self._open = False
        if self._watched:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
        # Without a watcher a thread may still sit in read(): it owns the descriptor until the process ends.


class FdWriter:
    """Takes bytes at once and writes them together, once per turn of the loop. Owns the descriptor."""

    def __init__(self, fd: int, on_broken: Callable[[OSError], None]) -> None:
        self._fd = fd
        self._on_broken = on_broken
        self._loop = asyncio.get_running_loop()
        self._buffer = bytearray()
        self._scheduled = False
        self._held = False
        self._watching = False
        self._open = True
        self._ended_unread = False
        self._drained: list[tuple[int, asyncio.Future[None]]] = []
        self.taken = 0
        self.written = 0
        self._selectable = _is_selectable(fd)
        if self._selectable:
            os.set_blocking(fd, False)

    @property
    def backlog(self) -> int:
        """Bytes taken and not yet written."""
        return self.taken - self.written

    @property
    def is_unread(self) -> bool:
        """True where the system tells (Linux) that not a byte of what was written has been read."""
        if self._open:
            return 0 < self.taken <= self.backlog + _waiting_in(self._fd)
        return self._ended_unread

    def write(self, data: bytes) -> int:
        """Take `data`; returns the position at which it starts."""
        start = self.taken
        if self._open:
            self._buffer += data
            self.taken = start + len(data)
            if not self._held and not self._scheduled and not self._watching:
                self._scheduled = True
                self._loop.call_soon(self._flush_scheduled)
        return start

    def hold(self) -> None:
        """Schedule nothing until `release`: whoever holds writes."""
        self._held = True

    def release(self) -> None:
        self._held = False
        self.flush()

    def _flush_scheduled(self) -> None:
        self._scheduled = False
        self.flush()

    def flush(self) -> None:
        """Write what the descriptor takes now; the rest follows when there is room."""
        if not self._buffer or not self._open:
            return
        while self._buffer and self._open:
            try:
                count = self._write_some()
            except (BlockingIOError, InterruptedError):
                break
            except OSError as error:
                self._break(error)
                return
            self.written += count
            del self._buffer[:count]
        self._watch(bool(self._buffer))
        if self._drained:
            self._wake()

    def _write_some(self) -> int:
        if len(self._buffer) <= _CHUNK:
            return os.write(self._fd, self._buffer)
        with memoryview(self._buffer) as view:
            return os.write(self._fd, view[:_CHUNK])

    def _watch(self, wanted: bool) -> None:
        if wanted and not self._watching and self._selectable:
            self._watching = True
            self._loop.add_writer(self._fd, self.flush)
        elif not wanted and self._watching:
            self._watching = False
            self._loop.remove_writer(self._fd)

    def _wake(self) -> None:
        for item in [item for item in self._drained if len(self._buffer) <= item[0]]:
            self._drained.remove(item)
            if not item[1].done():
                item[1].set_result(None)

    def _break(self, error: OSError) -> None:
        self.close()
        self._on_broken(error)

    async def drain(self, below: int = 0) -> None:
        """Wait until at most `below` bytes are left, or the descriptor is closed."""
        if len(self._buffer) > below and self._open:
            waiter: asyncio.Future[None] = self._loop.create_future()
            self._drained.append((below, waiter))
            await waiter

    def close(self) -> None:
        if not self._open:
            return
        self._ended_unread = self.is_unread
        self._open = False
        self._watch(False)
        os.close(self._fd)
        for _, waiter in self._drained:
            if not waiter.done():
                waiter.set_result(None)
        self._drained.clear()


def _waiting_in(pipe: int) -> int:
    """Bytes in a pipe that its reader has not taken; 0 where the system does not tell the writer."""
    if sys.platform != "linux":
        return 0
    try:
        return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)
    except OSError:
        return 0


def _is_selectable(fd: int) -> bool:
    mode = os.fstat(fd).st_mode
    return os.name == "posix" and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISCHR(mode))
