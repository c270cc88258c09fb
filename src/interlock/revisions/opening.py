"""Which era speaks? The only place on the server side that looks, for every message on its own.

A request whose `params._meta` names a protocol version is stateless, whatever its method; all others belong to the
handshake session of this connection (modern.md §11). Both may be spoken on one process side by side.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import cast

import msgspec
from msgspec import UNSET, Raw

from ..wire.errors import BadFrame, ConnectionEnded, InvalidParams, MethodNotFound, Refused
from ..wire.exchange import LOCAL, Exchange, Handler, Principal, Work
from ..wire.frames import Frame, Id, encode_error
from ..wire.link import Outlet
from ..wire.meta import NO_META, RequestMeta
from ..wire.methods import AUTHOR_METHOD, METHODS
from ..wire.types.capabilities import ServerCapabilities
from ..wire.types.lifecycle import EmptyParams
from .answering import refuse
from .handshake_server import HandshakeServer
from .revision import Revision
from .shaping import plain
from .stateless_server import StatelessServer
from .table import NEWEST

__all__ = ["ServerSide"]

log = logging.getLogger("interlock.server")
_NOTHING = Raw(b"{}")
_NOTICES_AT_ONCE = 256  # notifications handled at once; further ones are dropped
_EDGE_NOTICES = frozenset({"notifications/initialized", "notifications/cancelled", "notifications/progress"})


class ServerSide:
    """The server's side of one two-way connection, in both eras."""

    def __init__(
        self,
        handler: Handler,
        rows: dict[str, Revision],
        *,
        strict: bool = False,
        principal: Principal = LOCAL,
        on_ready: Callable[[], None] | None = None,
        on_end: Callable[[], None] | None = None,
    ) -> None:
        self._handler = handler
        self._rows = rows
        self._strict = strict
        self._principal = principal
        self._on_ready = on_ready
        self._on_end = on_end
        self._stateless = StatelessServer(handler, rows, principal=principal)
        self._handshake: HandshakeServer | None = None
        self._outlet: Outlet | None = None
        self._noticing: set[asyncio.Task[None]] = set()

    def attach(self, outlet: Outlet) -> None:
        """Give it the connection it speaks through."""
        self._outlet = outlet
        self._handshake = HandshakeServer(
            self._handler,
            self._rows,
            outlet,
            strict=self._strict,
            principal=self._principal,
            on_ready=self._on_ready,
        )

    @property
    def handshake(self) -> HandshakeServer:
        assert self._handshake is not None, "attach() first"
        return self._handshake

    @property
    def batches(self) -> bool:
        revision = self.handshake.revision
        return revision is not None and revision.batches

    def request(self, frame: Frame) -> bytes | Work | None:
        id = cast(Id, frame.id)
        row = METHODS.get(cast(str, frame.method), AUTHOR_METHOD)
        raw = frame.params if frame.params is not UNSET else _NOTHING
        try:
            params = row.decoder.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return self._refuse_params(frame, id, raw, error), None
        meta: RequestMeta = params.meta if params.meta is not UNSET else NO_META
        edge = self.handshake if meta.version is UNSET else self._stateless
        return edge.begin(frame, id, params, meta, cast(Outlet, self._outlet))

    async def _refuse_params(self, frame: Frame, id: Id, raw: Raw, error: Exception) -> bytes:
        """Params of the wrong shape. The version and the method are judged before them (modern.md §4)."""
        method = cast(str, frame.method)
        revision = self.handshake.revision or NEWEST
        told = InvalidParams(f"Invalid params: {str(error).replace('`', chr(39))}")
        try:
            meta = AUTHOR_METHOD.decoder.decode(raw).meta
            if meta is not UNSET and meta.version is not UNSET:
                revision = self._stateless.admit(method, meta)
            if method not in revision.requests or not await self._offers(method):
                raise MethodNotFound(f"This server does not offer {method}")
        except Refused as refused:
            return refuse(revision, id, refused)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass  # not even `_meta` can be read
        return refuse(revision, id, told)

    async def _offers(self, method: str) -> bool:
        gate = METHODS[method].gate
        if gate is None:
            return True
        found = await self._handler(Exchange("server/discover", EmptyParams(), peer=self.handshake.peer))
        return msgspec.convert(plain(found.get("capabilities", {})), ServerCapabilities).can(gate)

    def notification(self, frame: Frame) -> None:
        method = cast(str, frame.method)
        if method == "notifications/initialized":
            self.handshake.initialized()
        elif self._is_for_handler(method) and len(self._noticing) < _NOTICES_AT_ONCE:
            task = asyncio.get_running_loop().create_task(self._notice(method, frame))
            self._noticing.add(task)
            task.add_done_callback(self._noticing.discard)

    def _is_for_handler(self, method: str) -> bool:
        # A request's method without an id is a mistake of the peer, never a way to run its handler unanswered.
        return method.startswith("notifications/") and method not in _EDGE_NOTICES

    async def _notice(self, method: str, frame: Frame) -> None:
        """A notification is an exchange nobody waits for; the handler ignores those it does not know."""
        try:
            raw = frame.params if frame.params is not UNSET else _NOTHING
            params = AUTHOR_METHOD.decoder.decode(raw)
            meta = params.meta if params.meta is not UNSET else NO_META
            await self._handler(Exchange(method, params, raw=raw, peer=self.handshake.peer, meta=meta))
        except (Refused, msgspec.DecodeError, UnicodeDecodeError):
            log.debug("= the notification %s was ignored", method)
        except Exception:
            log.exception("! handling the notification %s failed", method)

    def junk(self, line: bytes, bad: BadFrame) -> bytes | None:
        return None if bad.refusal is None else encode_error(bad.id, bad.refusal)

    def ended(self, error: ConnectionEnded) -> None:
        self.handshake.ended()
        for task in self._noticing:
            task.cancel()
        if self._on_end is not None:
            self._on_end()
