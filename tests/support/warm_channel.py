"""A warm server process as a channel: what `ChildChannel` is to a cold one."""

from __future__ import annotations

from pathlib import Path

from interlock.transport.lines import LineChannel
from interlock.wire.errors import ConnectionClosed
from support.warm import Process

__all__ = ["WarmChannel"]


class WarmChannel(LineChannel):
    def __init__(self, path: Path) -> None:
        self._process = Process(path)
        super().__init__(self._process.read_fd, self._process.write_fd)

    def stderr_tail(self) -> str:
        return self._process.stderr()

    async def close(self) -> None:
        await self.finish()
        self.close_input()
        await self._process.end()
        self.lose(ConnectionClosed("the connection was closed"))
