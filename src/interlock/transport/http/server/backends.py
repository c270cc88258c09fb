"""How an application becomes one of several that share a store; one that shares nothing loads nothing of it."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....protocol.input.strategy import Asker
from ....revisions.revision import Revision
from ....state.rate_table import RateTable
from ....state.sealing import Seal
from ....state.store import State
from ....web.asgi.message import HttpRefusal
from ....wire.errors import InternalError, StoreError
from ....wire.exchange import Filter, Handler
from .legacy_sse import OldConnections
from .request import HttpCall
from .sessions import Sessions
from .stateless import HttpSide

if TYPE_CHECKING:
    from ..cluster.membership import Sharing
else:
    Sharing = Any  # named in annotations only

__all__ = ["Shared", "Sharing", "endpoint_name", "joined", "old_of", "sessions_of", "share", "side_of"]

log = logging.getLogger("interlock.http")
_NO_STATE = HttpRefusal.saying(503, InternalError("The state of this server cannot be used"), ("retry-after", "5"))

Shared = State | str | os.PathLike[str]
"""A store that other processes see too, or the path of one in a file."""


def endpoint_name(handler: Handler, path: str) -> str:
    """What all processes that serve `handler` at `path` call it."""
    return f"{getattr(getattr(handler, 'info', None), 'name', '')}\n{path}"


def share(state: Shared | None, handler: Handler, path: str, asker: Asker, *, lease: float) -> Sharing | None:
    """The part of `handler` at `path` in what all who serve it share: sealing keys, used states, changes, sessions."""
    if state is None:
        return None
    from ..cluster.change_relay import ChangeRelay
    from ..cluster.membership import Sharing

    sharing = Sharing(state, endpoint_name(handler, path), lease=lease)
    sealer = asker.rules.sealer
    if isinstance(sealer, Seal):
        sharing.on_ready.append(lambda: sealer.share(sharing.state, sharing.space))
    ChangeRelay.between(handler, sharing)
    _share_rates(handler, sharing)
    return sharing


def _share_rates(handler: Handler, sharing: Sharing) -> None:
    """Callers have one rate with all workers, where these share a file; else each worker counts for itself."""
    share_rates: Callable[[RateTable | None, str], None] | None = getattr(handler, "share_rates", None)
    if share_rates is None:
        return
    tables: list[RateTable] = []

    async def start() -> None:
        path = getattr(sharing.state, "path", None)
        if not isinstance(path, Path) or not hasattr(os, "pread"):
            return
        try:
            tables.append(RateTable(path.with_name(f"{path.name}-rates")))
        except OSError as error:
            log.warning("! rates are counted by each worker: %s", error)
            return
        share_rates(tables[0], sharing.space)

    def end() -> None:
        while tables:
            share_rates(None, "")
            tables.pop().close()

    sharing.on_ready.append(start)
    sharing.on_leave.append(end)


def sessions_of(sharing: Sharing | None, *arguments: Any, **facts: Any) -> Sessions:
    if sharing is None:
        return Sessions(*arguments, **facts)
    from ..cluster.sessions import SharedSessions

    return SharedSessions(sharing, *arguments, **facts)


def side_of(
    sharing: Sharing | None,
    handler: Handler,
    rows: dict[str, Revision],
    *,
    asker: Asker,
    filter: Filter,
    sessions: bool,
) -> HttpSide:
    facts: Any = {"asker": asker, "filter": filter, "sessions": sessions}
    if sharing is None:
        return HttpSide(handler, rows, **facts)
    from ..cluster.parked_runs import ParkedSide

    return ParkedSide(sharing, asker.parking, handler, rows, **facts)


async def joined(sharing: Sharing, call: HttpCall) -> bool:
    """Is this process one of those that share? Else whoever calls was told so."""
    try:
        await sharing.ready()
    except StoreError as error:
        log.error("! the shared state cannot be used: %s", error)
        await call.refuse(_NO_STATE)
        return False
    return True


def old_of(sharing: Sharing | None, *arguments: Any, **facts: Any) -> OldConnections:
    if sharing is None:
        return OldConnections(*arguments, **facts)
    from ..cluster.legacy_sse import SharedOldConnections

    return SharedOldConnections(sharing, *arguments, **facts)
