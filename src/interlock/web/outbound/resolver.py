"""Names become addresses here, once per connection, and each address is judged before anybody connects to it.

What was judged is what is connected to: the name is not asked for again in between, so that an answer which changes
from one question to the next (DNS rebinding) changes nothing. Host and the name in TLS stay those of the URL.
"""

from __future__ import annotations

import socket
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from .address_policy import Permit

if TYPE_CHECKING:
    from aiohttp.abc import AbstractResolver

__all__ = ["permit_in_force", "judging_resolver", "check_peer"]

permit_in_force: ContextVar[Permit] = ContextVar("interlock permit")
"""Of the request that is being made in this task; without one nothing is resolved and no connection used."""


def judging_resolver() -> AbstractResolver:
    """For the connector of the HTTP library; addresses in URLs do not pass here, they were judged with the URL."""
    import aiohttp
    from aiohttp.abc import AbstractResolver

    class Judging(AbstractResolver):
        def __init__(self) -> None:
            self._inner = aiohttp.ThreadedResolver()

        async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC) -> list[Any]:
            found = await self._inner.resolve(host, port, family)
            permit = permit_in_force.get()
            for each in found:
                permit.check(each["host"])  # one that is not allowed spoils them all: which one is used is chance
            return list(found)

        async def close(self) -> None:
            await self._inner.close()

    return Judging()


def check_peer(transport: Any) -> None:
    """A socket of the pool may have been opened for somebody who is allowed more; OSError if it is dead already."""
    peer = None if transport is None else transport.get_extra_info("peername")
    if not peer:
        raise ConnectionResetError("the connection was closed as soon as it was there")
    permit_in_force.get().check(peer[0])
