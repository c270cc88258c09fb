"""Pings when a connection is quiet, whose loss ends the connection.

Only a quiet one: while a call is in flight its own deadlines watch over it, and many servers cannot answer a ping
while they work (basic/utilities/ping leaves frequency and timeout to us).
"""

from __future__ import annotations

import asyncio
import logging

import msgspec

from ...wire.channel import Patience
from ...wire.errors import CallTimeout, ConnectionLost, InterlockError
from .connection import Duplex

__all__ = ["Keepalive", "Pinger"]

log = logging.getLogger("interlock.wire")


class Keepalive(msgspec.Struct, frozen=True):
    """Ping after so many quiet seconds, wait so long for the answer, end after so many losses in a row."""

    interval: float = 60.0
    timeout: float = 20.0
    losses: int = 2


class Pinger:
    def __init__(self, duplex: Duplex, keepalive: Keepalive) -> None:
        self._duplex = duplex
        self._keepalive = keepalive
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        lost = 0
        while self._duplex.end is None:
            heard = self._duplex.heard
            await asyncio.sleep(self._keepalive.interval if lost == 0 else 0)
            if self._duplex.heard != heard or not self._duplex.idle:
                lost = 0
                continue
            lost = 0 if await self._ping() or self._duplex.heard != heard else lost + 1
            if lost >= self._keepalive.losses:
                told = f"the peer did not answer {lost} pings within {self._keepalive.timeout:g} s each"
                self._duplex.fail(ConnectionLost(told))

    async def _ping(self) -> bool:
        try:
            await self._duplex.call("ping", None, patience=Patience(idle=None, total=self._keepalive.timeout))
        except CallTimeout:
            log.warning("! no answer to a ping within %g s", self._keepalive.timeout)
            return False
        except InterlockError:
            pass  # the connection ended: the loop sees it
        return True

    def close(self) -> None:
        self._task.cancel()
