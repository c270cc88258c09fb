"""What servers log, as notices to the user: escaped, cut, and no more of it than anybody can read."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgspec

from ...wire.escaping import display

__all__ = ["ServerLogs"]

_MOST = 20  # messages of one server in `_SECONDS`; of the others only the number is told
_SECONDS = 1.0
_LONGEST = 2_000  # characters of one message
_encode = msgspec.json.Encoder().encode


class ServerLogs:
    """`tell` hears (server, text, level)."""

    def __init__(self, tell: Callable[[str, str, str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._tell, self._clock = tell, clock
        self._since: dict[str, float] = {}
        self._count: dict[str, int] = {}

    def listener(self, server: str) -> Callable[[str, Any, str | None], None]:
        """What the client of that server takes as `on_log`."""

        def on_log(level: str, data: Any, logger: str | None) -> None:
            if self._is_room(server):
                text = data if isinstance(data, str) else _encode(data).decode()
                name = f" ({display(logger, 60)})" if logger else ""
                told = f"{display(server, 60)}{name}: {display(level, 20)}: {display(text, _LONGEST)}"
                self._tell(server, told, level)

        return on_log

    def forget(self, server: str) -> None:
        self._since.pop(server, None)
        self._count.pop(server, None)

    def _is_room(self, server: str) -> bool:
        now = self._clock()
        if now - self._since.get(server, -_SECONDS) >= _SECONDS:
            over = self._count.get(server, 0) - _MOST
            self._since[server], self._count[server] = now, 0
            if over > 0:
                self._tell(server, f"{display(server, 60)} logged {over} more messages than can be shown", "notice")
        self._count[server] = self._count.get(server, 0) + 1
        return self._count[server] <= _MOST
