"""What a handler wants to know about the carriers that serve it: a `Server` has lifespans that go with them."""

from __future__ import annotations

import time
from typing import Any, Protocol

from ...protocol.input.settings import AskingRules
from ...protocol.input.strategy import Asker
from ...state.sealing import Seal
from ...wire.exchange import Handler

__all__ = [
    "Lives",
    "lives_of",
    "asker_of",
]


class Lives(Protocol):
    """The lifespans of a handler, as its carriers see them."""

    def enter(self, carrier: Any) -> None:
        """A connection, or an endpoint, begins to serve the handler."""
        ...

    def leave(self, carrier: Any) -> None:
        """It is over; what lived with it ends, once its last runs have."""
        ...

    async def start(self) -> None:
        """Begin what lives as long as the handler is served; raises `LocalError` when that fails."""
        ...

    async def settle(self) -> None:
        """Wait for the end of all that is ending."""
        ...


class _None:
    """Of a plain handler."""

    def enter(self, carrier: Any) -> None: ...

    def leave(self, carrier: Any) -> None: ...

    async def start(self) -> None: ...

    async def settle(self) -> None: ...


_NONE = _None()


def lives_of(handler: Handler) -> Lives:
    found: Lives | None = getattr(handler, "lives", None)
    return found or _NONE


def asker_of(handler: Handler) -> Asker:
    """A `Server` has one for all its connections."""
    found: Asker | None = getattr(handler, "asker", None)
    return found or Asker(AskingRules(sealer=Seal(), clock=time.time))
