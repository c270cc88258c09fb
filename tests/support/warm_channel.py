"""A warm server process as a channel: what `ChildChannel` is to a cold one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from interlock.transport.stdio.line_channel import LineChannel
from interlock.wire.errors import ConnectionClosed
from support.warm import Process, available

__all__ = ["WarmChannel", "warm_or_cold"]


def warm_or_cold(path: Path, command: Sequence[str], variables: Mapping[str, str] | None = None) -> Any:
    """What a client is to be pointed at: a warm process for each connection where there are any, or the command."""
    return (lambda: WarmChannel(path, variables)) if available() else command


class WarmChannel(LineChannel):
    def __init__(self, path: Path, variables: Mapping[str, str] | None = None) -> None:
        self._process = Process(path, variables or {})
        super().__init__(self._process.read_fd, self._process.write_fd)

    def stderr_tail(self) -> str:
        return self._process.stderr()

    async def close(self) -> None:
        await self.finish()
        self.close_input()
        await self._process.end()
        self.lose(ConnectionClosed("the connection was closed"))
