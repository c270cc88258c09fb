"""What both eras share on the client side: a Handler whose far end is a server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET

from ...revisions.revision import Revision
from ...revisions.table import OFFICIAL_METHODS
from ...wire.channel import Link, Patience
from ...wire.errors import BadResult, LocalError
from ...wire.exchange import Exchange, Result
from ...wire.json.lenient import members_of, read_as
from ...wire.json.reader import read_members
from ...wire.messages import Frame
from ...wire.meta import SERVER_INFO
from ...wire.methods import METHODS
from ...wire.types.capabilities import ServerCapabilities
from ...wire.types.common import Implementation
from ..input.callback import result_of

__all__ = ["ClientEdge", "NotOffered", "params_of", "meta_of"]


class NotOffered(LocalError):
    """The server did not declare the capability this call stands behind; nothing was sent."""


def params_of(frame: Frame) -> dict[str, Any]:
    """The params of a message as a dict; malformed ones as none."""
    if frame.params is UNSET:
        return {}
    try:
        return read_members(frame.params)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}


def meta_of(members: Mapping[str, Any]) -> dict[str, Any]:
    """The `_meta` of params or of a result; anything but an object counts as none."""
    return members_of(members.get("_meta"))


class ClientEdge:
    """One open connection. Calling it makes a call; `discovered` is what the server said about itself."""

    def __init__(self, link: Link, revision: Revision, discovered: Mapping[str, Any]) -> None:
        self.link = link
        self.revision = revision
        self.discovered: Result = {**discovered}
        self._checked: set[str] = set()
        try:
            self.capabilities = read_as(discovered.get("capabilities", {}), ServerCapabilities)
        except msgspec.ValidationError as error:
            raise BadResult(f"the server's capabilities are malformed: {error}") from None

    @property
    def server_info(self) -> Implementation:
        """Who the server says it is: display data, possibly made up."""
        # Servers written from an early text of 2026-07-28 say it in the body (modern.md §3).
        found = meta_of(self.discovered).get(SERVER_INFO, self.discovered.get("serverInfo"))
        try:
            return read_as(found, Implementation)
        except msgspec.ValidationError:
            return Implementation(name="unknown", version="0")

    @property
    def ping_method(self) -> str:
        """The request that asks whether the server is alive; revisions without `ping` have another that all answer."""
        return "ping" if "ping" in self.revision.requests else "server/discover"

    async def __call__(self, exchange: Exchange) -> Result:
        raise NotImplementedError

    def check_offered(self, method: str) -> None:
        """Use only what was negotiated (basic/lifecycle#operation)."""
        if method in self._checked:
            return
        if method in OFFICIAL_METHODS and method not in self.revision.requests:
            raise NotOffered(f"{method} does not exist in revision {self.revision.name}, which the server speaks")
        row = METHODS.get(method)
        gate = row.gate if row else None
        # A capability that the revision does not have cannot be asked for: completions in the first one.
        exists = gate is not None and gate.partition(".")[0] in self.revision.server_capabilities
        if gate is not None and exists and not self.offers(gate):
            raise NotOffered(f"{method}: the server does not offer {gate}")
        if len(self._checked) < 256:
            self._checked.add(method)

    def offers(self, gate: str) -> bool:
        return self.capabilities.can(gate)

    def headers_of(self, method: str, params: Mapping[str, Any]) -> Mapping[str, str]:
        """What a carrier with headers says there of this request beside what it always says."""
        return {}

    async def carry(self, exchange: Exchange, params: Mapping[str, Any], meta: Mapping[str, Any]) -> Result:
        """Send it, pass on what is told meanwhile, give the members of the result."""

        async def told(method: str, frame: Frame) -> None:
            await exchange.notify(method, params_of(frame))

        frame = await self.link.call(exchange.method, params, meta, patience=exchange.patience or Patience(), told=told)
        return result_of(frame, exchange.method, self.revision)

    def heard(self, frame: Frame) -> bool:
        """A notification outside of any call; True when it was taken."""
        return False

    async def close(self) -> None:
        await self.link.close()
