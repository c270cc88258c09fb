"""Connections of the first HTTP transport at an endpoint that several processes serve.

The GET is the connection, so it lives where that came. A POST that reaches another worker is handed on: the store knows
whose each connection is and where.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from ....web.asgi.message import HttpRefusal
from ....wire.errors import InternalError
from ....wire.exchange import Principal
from ..server.legacy_sse import ACCEPTED, OldConnections
from ..server.request import HttpCall
from ..server.session_headers import UNKNOWN
from .membership import UNUSABLE, Sharing, owner_of
from .message_bus import Mail

__all__ = ["SharedOldConnections"]

_LASTS = 300.0  # seconds that a connection is found, unless its worker says again that it is there
_SIGNS = 3  # that it says so in this time
_NO_STORE = InternalError("The store of the connections does not answer: try again")
_FAILED = HttpRefusal.saying(503, _NO_STORE, ("retry-after", "1"))


class SharedOldConnections(OldConnections):
    def __init__(self, sharing: Sharing, *arguments: Any, **facts: Any) -> None:
        super().__init__(*arguments, **facts)
        self._sharing = sharing
        self._signing: dict[str, asyncio.Task[None]] = {}
        sharing.hear(old=self._forwarded)

    async def _opened(self, id: str, principal: Principal) -> None:
        await self._sign(id, principal)
        self._signing[id] = asyncio.get_running_loop().create_task(self._go_on_signing(id, principal))

    async def _go_on_signing(self, id: str, principal: Principal) -> None:
        while True:
            await asyncio.sleep(_LASTS / _SIGNS)
            try:
                await self._sign(id, principal)
            except UNUSABLE:
                pass  # there are more to come

    async def _sign(self, id: str, principal: Principal) -> None:
        number = b"%d" % self._sharing.colleagues.number
        until = time.time() + _LASTS
        await self._sharing.state.put(self._key(id), number, until=until, owner=owner_of(principal))

    async def _closed(self, id: str, principal: Principal) -> None:
        signing = self._signing.pop(id, None)
        if signing is not None:
            signing.cancel()
            self._sharing.spawn(self._forget(id, principal))

    async def _forget(self, id: str, principal: Principal) -> None:
        await self._sharing.state.delete(self._key(id), owner=owner_of(principal))

    def _key(self, id: str) -> str:
        return f"{self._sharing.space}/old/{id}"

    async def listen(self, call: HttpCall, principal: Principal, messages: str) -> None:
        try:
            await super().listen(call, principal, messages)
        except UNUSABLE:
            await call.refuse(_FAILED)

    async def post(self, call: HttpCall, body: bytes, query: bytes, principal: Principal) -> None:
        id = self._named(query)
        if id is None or id in self._by_id:
            await super().post(call, body, query, principal)
            return
        try:
            found = await self._hand_on(id, body, principal)
        except UNUSABLE:
            await call.refuse(_FAILED)
            return
        await call.refuse(ACCEPTED if found else UNKNOWN)

    async def _hand_on(self, id: str, body: bytes, principal: Principal) -> bool:
        entry = await self._sharing.state.get(self._key(id), owner=owner_of(principal))
        return entry is not None and await self._sharing.colleagues.send(int(entry.value), Mail("old", id, body))

    async def _forwarded(self, mail: Mail) -> None:
        connection = self._by_id.get(mail.session)
        if connection is None:
            return
        if self._is_busy(connection, mail.data):
            connection.refuse(mail.data)
        else:
            connection.received(mail.data)
